// SPDX-License-Identifier: Apache-2.0
//
// For authors of nanobind extensions: functions take and return views of USM and SYCL objects,
// and Python calls them with arrays of any library and with dpctl's objects.
//
// Parameters: any mdspan type of USM, with a kind or without; `owned_view` where the memory is
// needed after the call; `sycl::queue`, `sycl::context`, `sycl::device`, `sycl::event`.
// Results: `usm_array`, `owned_view`, and the SYCL objects. At run time the extension needs
// the Python package usm_dlpack, whose DLPackTensor the results are, and dpctl.
//
// Every array is proved by the import protocol before the function runs, and lives as long as
// the call. A wrong Python type, dtype, rank, static extent or layout lets the next overload
// try; a wrong device, context, USM kind, bounds or a read-only array raises
// `usm_dlpack.ConversionError`. Of an array in a container (std::optional, std::vector), which
// must not throw there, it is the last overload that raises it (see `explain_refusals`); a
// view that may be None is better taken as `const View*` with `"x"_a.none()`. Nothing is
// converted, copied or synchronised: a kernel goes to the array's queue, or waits for it.
// Whether a queue and a view fit together only `check_queue` says, because each comes as an
// argument of its own.
#pragma once

#include <usm_dlpack/argument_refusals.hpp>
#include <usm_dlpack/dpctl_casters.hpp>
#include <usm_dlpack/ndarray_bridge.hpp>
#include <usm_dlpack/owned_view.hpp>
#include <usm_dlpack/usm.hpp>
#include <usm_dlpack/view_import.hpp>
#include <usm_dlpack/view_signature.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

/// Gives a view with an owner to Python, proved, or a null handle, and the Python error set.
template <class View>
nb::handle to_python(owned_view<View>&& made) noexcept {
  try {
    if (made.managed() == nullptr) {
      refuse(errc::request_unsupported, "return", "a view with an owner",
             "one that was moved from or released", "return it before that");
    }
    const std::optional<sycl::queue> queue = made.queue();
    nb::object tensor = nb::steal(package_interface::get().make_tensor(
        std::move(made).release().release(), queue ? &*queue : nullptr));
    if (tensor.is_valid() && usm_kind_v<View> != sycl::usm::alloc::unknown) {
      array_offer(tensor).template check_kind<View>();
    }
    return tensor.release();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const conversion_error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return {};
}

template <class View>
nb::handle to_python(usm_array<View>&& made) noexcept {
  try {
    return to_python(owned_view<View>(std::move(made)));
  } catch (const conversion_error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return {};
}

/// What the casters of views share: what the array became, or None, or why it was refused.
/// @tparam Made the parameter's type: the view, or the view with an owner
template <class Made, class View>
class view_parameter {
 public:
  template <class T>
  using Cast = nb::detail::movable_cast_t<T>;

  /// Containers ask: whether the value can be had without throwing.
  template <class>
  bool can_cast() const noexcept {
    return import_.is_good() && made_.has_value();
  }

  explicit operator Made&() { return get(); }
  explicit operator Made&&() { return std::move(get()); }
  /// Null for None, which a parameter says that it takes by `"x"_a.none()`.
  explicit operator Made*() {
    import_.check();
    return made_ ? &*made_ : nullptr;
  }

 protected:
  template <class Keep>
  bool take(nb::handle source, nb::detail::cleanup_list* cleanup, Keep&& keep) noexcept {
    made_.reset();  // a container takes all its elements with one caster
    return source.is_none() || import_.take(source, cleanup, keep);
  }

  template <class Value>
  void emplace(Value&& value) {
    made_.emplace(std::forward<Value>(value));
  }

 private:
  Made& get() {
    import_.check();
    if (!made_) {  // None
      throw nb::next_overload();
    }
    return *made_;
  }

  view_import<View> import_;
  std::optional<Made> made_;
};

/// A proved view, and all that keeps its memory.
template <class View>
owned_view<View> own_array(nb::handle object, const View& view, array_offer& array) {
  std::optional<sycl::queue> queue = array.queue();
  if (!queue && package_interface::get().find_queue(object.ptr(), queue) == offer::failed) {
    throw nb::python_error();
  }
  const DLTensor tensor = array.tensor();
  const std::uint64_t flags = array.flags() & ~flag::is_copied;
  return {view, std::move(queue),
          usm_dlpack::to_managed_tensor(tensor, python_owner(array.release()), flags)};
}

}  // namespace detail

/// Imports the Python package usm_dlpack, which makes the CPU driver of a wheel known before
/// the first device is asked for, and lets a `conversion_error` that a function throws become
/// `usm_dlpack.ConversionError`. To be called once, at the beginning of `NB_MODULE`.
/// @throws nb::python_error ImportError where there is none, or one of another version
inline void load_package() {
  detail::package_interface::get();
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const conversion_error& error) {
      detail::set_error(error);
    }
  });
}

/// Takes an array as a parameter `owned_view<View>` does, from a Python object at hand: where
/// `nb::cast` would only say that it cannot.
/// @pre the GIL is held
/// @throws conversion_error as `validate` and `to_mdspan`; nb::python_error what the array
///         raises; nb::type_error for an object that is no array
template <class View>
[[nodiscard]] owned_view<View> to_owned_view(nanobind::handle object) {
  detail::array_offer array(object);
  if (!array.is_array()) {
    throw nanobind::type_error(
        "x: expected an array with __dlpack__ or USM, found another "
        "object; pass the array itself");
  }
  const View view = detail::view_of<View>(array);
  return detail::own_array(object, view, array);
}

}  // namespace usm_dlpack

namespace nanobind::detail {

/// A view of an array, which lives as long as the call.
template <typename View>
struct type_caster<View, enable_if_t<usm_dlpack::detail::is_view<View>>>
    : usm_dlpack::detail::view_parameter<View, View> {
  static constexpr auto Name = usm_dlpack::detail::parameter_text<View>();

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->take(source, cleanup, [&](const View& view, auto& array) {
      if (cleanup == nullptr ||
          (flags & static_cast<std::uint32_t>(cast_flags::manual)) != 0) {
        usm_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, "view",
                                   "a parameter of a function, which keeps the memory",
                                   "a cast, which would not", "use to_owned_view");
      }
      this->emplace(view);
      cleanup->append(array.release());
    });
  }

  template <class T>
  static handle from_cpp(T&&, rv_policy, cleanup_list*) {
    static_assert(!std::is_same_v<View, View>,
                  "return: expected a view with an owner, found a view alone, whose memory "
                  "nothing keeps; return an owned_view or a usm_array");
    return {};
  }
};

/// A view that keeps the array.
template <typename View>
struct type_caster<usm_dlpack::owned_view<View>>
    : usm_dlpack::detail::view_parameter<usm_dlpack::owned_view<View>, View> {
  static constexpr auto Name = usm_dlpack::detail::owned_text<View>();

  bool from_python(handle source, std::uint32_t, cleanup_list* cleanup) noexcept {
    return this->take(source, cleanup, [&](const View& view, auto& array) {
      this->emplace(usm_dlpack::detail::own_array(source, view, array));
    });
  }

  static handle from_cpp(usm_dlpack::owned_view<View>&& value, rv_policy,
                         cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python(std::move(value));
  }
};

/// An array of the extension's own, which becomes a DLPackTensor.
template <typename View>
struct type_caster<usm_dlpack::usm_array<View>> {
  using array = usm_dlpack::usm_array<View>;
  static constexpr auto Name = const_name("usm_dlpack.DLPackTensor");
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle, std::uint32_t, cleanup_list*) noexcept {
    static_assert(!std::is_same_v<View, View>,
                  "parameter: expected a view, found a usm_array, which would own memory that "
                  "is Python's; take the mdspan type, or an owned_view");
    return false;
  }

  static handle from_cpp(array&& value, rv_policy, cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python(std::move(value));
  }

  explicit operator array&();
  explicit operator array&&();
};

}  // namespace nanobind::detail
