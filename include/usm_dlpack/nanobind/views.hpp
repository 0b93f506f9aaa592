// SPDX-License-Identifier: Apache-2.0
//
// nanobind's casters of views: an array as a parameter, in the order of nanobind's overloads,
// and a view with an owner or a usm_array as a result.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/nanobind/argument.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/argument.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/python/signature.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

namespace nb = nanobind;

/// The TypeError of a cast of an object that is no array.
inline void set_no_array(nb::handle object) noexcept {
  PyErr_Format(PyExc_TypeError,
               "array: expected one with __dlpack__ or USM, found an object of type %s; pass "
               "an array, such as usm_dlpack.from_dlpack(numpy.asarray(x), device=(14, 0))",
               Py_TYPE(object.ptr())->tp_name);
}

/// Whether an overload leaves an array to another one: in the first round, and in the second
/// if more fitted another overload. A note in the call's cleanup list is how much fitted, as a
/// number, and the array, which is last, because nanobind takes what is last for the argument.
inline bool leaves(nb::handle array, fit reached, std::uint32_t flags,
                   nb::detail::cleanup_list* call) noexcept {
  if (call == nullptr || is_cast(flags)) {  // nb::isinstance, nb::cast
    return false;
  }
  const long fits = static_cast<long>(reached);
  long most = 0;
  for (std::size_t i = 2; i < call->size(); ++i) {
    if ((*call)[i] == array.ptr() && PyLong_CheckExact((*call)[i - 1])) {
      most = PyLong_AsLong((*call)[i - 1]);  // each note is of more than the one before
    }
  }
  if (is_first_round(flags) && fits > most) {
    call->append(PyLong_FromLong(fits));  // cannot fail: Python keeps small numbers
    call->append(array.inc_ref().ptr());
  }
  return reached != fit::type && (is_first_round(flags) || fits < most);
}

/// Imports a parameter that is a view. Errors are kept, and raised when the function would
/// take its arguments.
/// @tparam Made the parameter's type: the view, or the view with an owner
template <class Made, class View>
class view_parameter : public kept_argument<Made> {
 protected:
  /// @param use takes the view and the offer if both are good
  /// @return whether this overload accepts the object
  template <class Use>
  bool take(nb::handle object, std::uint32_t flags, nb::detail::cleanup_list* call,
            const Use& use) noexcept {
    return this->keep(object, flags, call, [&] {
      const bool taken = take_array<View>(
          object.ptr(), [&](fit reached) { return leaves(object, reached, flags, call); },
          use);
      if (!taken && is_cast(flags)) {
        set_no_array(object);
      }
      return taken;
    });
  }
};

}  // namespace usm_dlpack::detail

namespace nanobind::detail {

/// Caster of a view that lives as long as the call. It knows no queue, so the array's is
/// waited for.
template <typename View>
struct type_caster<View, enable_if_t<usm_dlpack::detail::is_view<View>>>
    : usm_dlpack::detail::view_parameter<View, View> {
  static constexpr auto Name = usm_dlpack::detail::parameter_descr<descr, View>;

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->take(source, flags, cleanup, [&](const View& view, auto& array) {
      if (usm_dlpack::detail::is_cast(flags)) {
        usm_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, "view",
                                   "a parameter of a function, which keeps the memory",
                                   "a cast, which would not", "cast to an owned_view");
      }
      if (cleanup != nullptr) {  // nb::isinstance has none
        array.wait();
        cleanup->append(handle(array.owner()).inc_ref().ptr());
      }
      this->value.emplace(view);
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

template <typename View>
struct type_caster<usm_dlpack::owned_view<View>>
    : usm_dlpack::detail::view_parameter<usm_dlpack::owned_view<View>, View> {
  // nanobind's `@input@output@`
  static constexpr auto Name = const_name("@") +
                               usm_dlpack::detail::parameter_descr<descr, View> +
                               const_name("@usm_dlpack.DLPackTensor@");

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->take(source, flags, cleanup, [&](const View& view, auto& array) {
      this->value.emplace(array.own(view));
    });
  }

  template <class T>
  static handle from_cpp(const T&, rv_policy, cleanup_list*) = delete;  // keep the tensor
  static handle from_cpp(usm_dlpack::owned_view<View>&& value, rv_policy,
                         cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python(std::move(value));
  }
};

template <>
struct type_caster<usm_dlpack::any_view>
    : usm_dlpack::detail::kept_argument<usm_dlpack::any_view> {
  static constexpr auto Name = const_name("@usm_dlpack.UsmArray@usm_dlpack.DLPackTensor@");

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    namespace detail = usm_dlpack::detail;
    return this->keep(source, flags, cleanup, [&] {
      const bool taken = detail::take_any(
          source.ptr(), [&] { detail::leaves(source, detail::fit::type, flags, cleanup); },
          [&](const auto& array) { this->value.emplace(array.own()); });
      if (!taken && detail::is_cast(flags)) {
        detail::set_no_array(source);
      }
      return taken;
    });
  }

  template <class T>
  static handle from_cpp(const T&, rv_policy, cleanup_list*) = delete;  // keep the tensor
  static handle from_cpp(usm_dlpack::any_view&& value, rv_policy, cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python(std::move(value));
  }
};

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

  template <class T>
  static handle from_cpp(const T&, rv_policy, cleanup_list*) = delete;  // keep the tensor
  static handle from_cpp(array&& value, rv_policy, cleanup_list*) noexcept {
    return usm_dlpack::detail::to_python(std::move(value));
  }

  explicit operator array&();
  explicit operator array&&();
};

}  // namespace nanobind::detail
