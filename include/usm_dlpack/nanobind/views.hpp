// SPDX-License-Identifier: Apache-2.0
//
// Casters of views: how a parameter is written in a Python signature, how an array becomes a
// view (its tensor is read, compared with the view's type, proved and kept alive), and how a
// view with an owner or an array of the extension's becomes a DLPackTensor.
#pragma once

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/nanobind/overloads.hpp>
#include <usm_dlpack/nanobind/package.hpp>
#include <usm_dlpack/sycl/to_dlpack.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

namespace nb = nanobind;

constexpr std::size_t length_of(const char* text) noexcept {
  std::size_t length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}

/// The name of a type code, as text of a signature.
template <std::uint8_t Code, std::size_t... Is>
constexpr auto code_text(std::index_sequence<Is...>) {
  return (nb::detail::const_name("") + ... +
          nb::detail::const_name(type_code_rows[Code].name[Is]));
}

/// `float32`, `bool`, `bfloat16`, `float32x4`: as messages print a dtype, without its numbers.
template <class Element>
constexpr auto dtype_text() {
  using nb::detail::const_name;
  constexpr DLDataType dtype = data_type_v<Element>;
  constexpr type_code_row row = type_code_rows[dtype.code];
  constexpr bool says_width = row.bits == dtype.bits && dtype.code != kDLBfloat;
  return code_text<dtype.code>(std::make_index_sequence<length_of(row.name)>{}) +
         const_name<says_width>(const_name(""), const_name<dtype.bits>()) +
         const_name<dtype.lanes == 1>(const_name(""),
                                      const_name("x") + const_name<dtype.lanes>());
}

template <std::size_t Extent>
constexpr auto extent_text() {
  using nb::detail::const_name;
  if constexpr (Extent == dynamic_extent) {
    return const_name("None");
  } else {
    return const_name<Extent>();
  }
}

template <class Extents, std::size_t... Ranks>
constexpr auto shape_text(std::index_sequence<Ranks...>) {
  using nb::detail::const_name;
  return const_name("(") +
         nb::detail::concat(extent_text<Extents::static_extent(Ranks)>()...) +
         const_name<sizeof...(Ranks) == 1>(",", "") + const_name(")");
}

template <sycl::usm::alloc Kind>
constexpr auto kind_text() {
  using nb::detail::const_name;
  if constexpr (Kind == sycl::usm::alloc::unknown) {
    return const_name("");
  } else if constexpr (Kind == sycl::usm::alloc::device) {
    return const_name(", usm_type='device'");
  } else if constexpr (Kind == sycl::usm::alloc::shared) {
    return const_name(", usm_type='shared'");
  } else {
    return const_name(", usm_type='host'");
  }
}

/// `typing.Annotated[usm_dlpack.UsmArray, dict(dtype='float32', shape=(None, 3))]`
template <class View>
constexpr auto parameter_text() {
  using nb::detail::const_name;
  using extents_type = typename View::extents_type;
  return const_name("typing.Annotated[usm_dlpack.UsmArray, dict(dtype='") +
         dtype_text<element_of<View>>() + const_name("', shape=") +
         shape_text<extents_type>(std::make_index_sequence<extents_type::rank()>{}) +
         kind_text<usm_kind_v<View>>() +
         const_name<has_const_elements<View>>(", writable=False", "") + const_name(")]");
}

/// A view with an owner is taken as a view, and given as a DLPackTensor.
template <class View>
constexpr auto owned_text() {
  using nb::detail::const_name;
  return const_name("@") + parameter_text<View>() + const_name("@usm_dlpack.DLPackTensor@");
}

/// What an array offers, and the reference that keeps it.
class array_offer {
 public:
  /// @throws nb::python_error what the array raises
  explicit array_offer(nb::handle array) : array_(array.ptr()) {
    const offer answer = package_interface::get().ask(array.ptr(), offered_);
    if (answer == offer::failed) {
      throw nb::python_error();
    }
    is_array_ = answer == offer::made;
  }
  array_offer(const array_offer&) = delete;
  array_offer& operator=(const array_offer&) = delete;
  ~array_offer() { Py_XDECREF(offered_.owner); }

  bool is_array() const noexcept { return is_array_; }
  const DLTensor& tensor() const noexcept { return offered_.tensor; }
  std::uint64_t flags() const noexcept { return offered_.flags; }
  const std::optional<sycl::queue>& queue() const noexcept { return offered_.queue; }
  /// Gives the reference away.
  PyObject* release() noexcept { return std::exchange(offered_.owner, nullptr); }

  /// An array without elements has no memory that could be of another kind.
  /// @throws conversion_error `usm_type_not_accepted` if the memory, proved before, is not of
  ///         the kind that the view's type names
  template <class View>
  void check_kind() const {
    const DLTensor& proved = offered_.tensor;
    if (std::count(proved.shape, proved.shape + proved.ndim, 0) == 0) {
      check_usm_type(offered_.proved_kind, require_kind<View>({}));
    }
  }

  /// The view, once the memory is proved to be what its type says; nothing is proved twice.
  /// @throws conversion_error as `validate`, `check_context`, then `to_mdspan`;
  ///         nb::python_error what the array raises when its queue is asked for
  template <class View>
  View prove() const {
    const requirements wanted = require_kind<View>({});
    const subbyte storage = storage_of(offered_.flags);
    if (wanted.writable) {
      check_writable<View>(offered_.flags);
    }
    if (offered_.proved_kind != sycl::usm::alloc::unknown) {
      check_kind<View>();
      return detail::convert<View>(offered_.tensor, storage);
    }
    const usm_allocation proved = detail::import_tensor(offered_.tensor, wanted, storage);
    check_producer(proved);
    return detail::make_view<View>(offered_.tensor, proved.structure(), storage);
  }

 private:
  // OpenCL's CPU driver tells contexts apart by itself.
  void check_producer(const usm_allocation& proved) const {
    const sycl::device& root = proved.root_device();
    if (root.get_backend() == sycl::backend::opencl && root.is_cpu()) {
      return;
    }
    std::optional<sycl::queue> queue = offered_.queue;
    if (!queue && package_interface::get().find_queue(array_, queue) == offer::failed) {
      throw nb::python_error();
    }
    if (queue) {
      check_context(proved, *queue);
    }
  }

  PyObject* array_;
  array_description offered_;
  bool is_array_ = false;
};

/// What a view's type says of an array before anything is proved of its memory: for the next
/// overload to try.
template <class View>
void check_type(const array_offer& array) {
  detail::check_element_type<View>(array.tensor(), storage_of(array.flags()));
  detail::check_rank<View>(array.tensor());
}

/// The view of an array, proved.
/// @throws conversion_error of the first broken rule: dtype and rank, as `validate`, then as
///         `to_mdspan`
template <class View>
View view_of(const array_offer& array) {
  check_type<View>(array);
  return array.template prove<View>();
}

/// What stands between a Python object and a parameter that is a view. Wrong types, dtypes,
/// ranks, extents and layouts are for the next overload; everything else that is wrong is
/// raised, once all parameters of this one have taken their arguments.
template <class View>
class view_import {
 public:
  /// @param keep takes the view and the offer, when both are good
  /// @return whether this is the parameter for that object
  template <class Keep>
  bool take(nb::handle object, nb::detail::cleanup_list* cleanup, Keep&& keep) noexcept {
    const nb::object alive = nb::borrow(object);  // its __dlpack__ may empty the list it is in
    try {
      return try_to_take(object, cleanup, keep);
    } catch (nb::python_error&) {
      refused_ = std::current_exception();
      try {
        record_refusal(object, cleanup, refused_);
      } catch (...) {
        refused_ = std::current_exception();
      }
      return true;
    } catch (...) {
      refused_ = std::current_exception();
      return true;
    }
  }

  /// Whether `check` throws nothing. A container asks before it takes an element's view, which
  /// must not throw there.
  bool is_good() const noexcept { return refused_ == nullptr; }

  /// @throws nb::python_error what was wrong, if anything
  void check() const {
    if (refused_ != nullptr) {
      try {
        std::rethrow_exception(refused_);
      } catch (const conversion_error& error) {
        set_error(error);
      }
      throw nb::python_error();
    }
  }

 private:
  template <class Keep>
  static bool try_to_take(nb::handle object, nb::detail::cleanup_list* cleanup, Keep& keep) {
    array_offer array(object);
    if (!array.is_array()) {
      return false;
    }
    try {
      keep(view_of<View>(array), array);
      record_taken(object, cleanup);
      return true;
    } catch (const conversion_error& error) {
      record_refusal(object, cleanup, std::current_exception());
      if (!is_of_type(error.code())) {
        throw;
      }
      return false;
    }
  }

  std::exception_ptr refused_;
};

}  // namespace usm_dlpack::detail

namespace usm_dlpack {

/// A view with an owner. As a return value it becomes a `usm_dlpack.DLPackTensor`, which
/// shares the memory; as a parameter it keeps the array, or what the array handed out, for as
/// long as it lives, on whatever thread it goes. Moved, never copied.
///
/// Nothing here waits: whoever uses the memory after work on it waits, or orders his own
/// behind it.
template <class View>
class owned_view {
 public:
  using view_type = View;

  /// A result. Python gets it proved: `validate` refuses there what is not USM of the queue's
  /// root device.
  /// @param queue works on the memory: it is what the tensor in Python knows as `sycl_queue`
  /// @param owner anything movable that keeps the memory alive; its destructor must not throw,
  ///        and runs on any thread, with the GIL or without
  /// @throws conversion_error `context_not_default`, `device_without_id`, and as
  ///         `to_managed_tensor(view, device, owner)`; `owner` is then untouched
  template <class Owner>
  owned_view(const View& view, const sycl::queue& queue, Owner&& owner)
      : view_(view),
        queue_(queue),
        managed_(usm_dlpack::to_managed_tensor(
            view, DLDevice{kDLOneAPI, detail::export_id(queue)}, std::forward<Owner>(owner))) {
  }

  /// A result of an array that owns its memory, of the same type of view or one that this
  /// type can be made of. The array waits when it goes, without the GIL.
  /// @param kept what the work on the array's queue reads, other views with owners for
  ///        example: it goes after the array, hence when that work is done
  template <class Made, class... Kept,
            std::enable_if_t<std::is_constructible_v<View, const Made&>, int> = 0>
  owned_view(usm_array<Made>&& array, Kept&&... kept)
      : view_(array.view()),
        queue_(array.queue()),
        managed_(own(std::move(array), std::forward<Kept>(kept)...)) {}

  /// An import, proved. Const elements make the tensor read-only from here on: who gets it
  /// next may write no more than the view. @pre `view` was made of `managed`
  owned_view(const View& view, std::optional<sycl::queue> queue, managed_tensor managed)
      : view_(view), queue_(std::move(queue)), managed_(std::move(managed)) {
    if (managed_ != nullptr) {
      managed_.get()->flags |= detail::flags_of<View>();
    }
  }

  const View& view() const noexcept { return view_; }
  /// The queue that may still work on the memory, as far as the array says it.
  const std::optional<sycl::queue>& queue() const noexcept { return queue_; }
  /// What keeps the memory alive, to be looked at; null once it was released.
  const DLManagedTensorVersioned* managed() const noexcept { return managed_.get(); }
  /// The same, given away; null once it was released.
  managed_tensor release() && noexcept { return std::move(managed_); }

 private:
  // The array is destroyed first: it waits.
  template <class Made, class... Kept>
  struct array_and_kept {
    std::tuple<Kept...> kept;
    usm_array<Made> array;
  };

  template <class Made, class... Kept>
  static managed_tensor own(usm_array<Made>&& array, Kept&&... kept) {
    const View view(array.view());
    const DLDevice device{kDLOneAPI, array.device_id()};
    return usm_dlpack::to_managed_tensor(view, device,
                                         array_and_kept<Made, std::decay_t<Kept>...>{
                                             {std::forward<Kept>(kept)...}, std::move(array)});
  }

  View view_;
  std::optional<sycl::queue> queue_;
  managed_tensor managed_;
};

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
