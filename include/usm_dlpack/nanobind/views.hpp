// SPDX-License-Identifier: Apache-2.0
//
// nanobind's casters of views: an array as a parameter, in the order of nanobind's overloads,
// and a view with an owner or a usm_array as a result. What they share with
// pybind11's is in python/argument.hpp.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/nanobind/argument.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/argument.hpp>
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

/// Whether nanobind is in the first of its two rounds over the overloads, or the argument has
/// `noconvert()`. A function without overloads has only the second round.
inline bool is_first_round(std::uint32_t flags) noexcept {
  return (flags & static_cast<std::uint32_t>(nb::detail::cast_flags::convert)) == 0;
}

/// Records in a call's cleanup list that an overload matches an object in the first round, by
/// Ellipsis and the object. The object is last, because nanobind reads the last entry as the
/// argument.
inline void record_match(nb::handle object, nb::detail::cleanup_list& call) noexcept {
  call.append(nb::handle(Py_Ellipsis).inc_ref().ptr());
  call.append(object.inc_ref().ptr());
}
inline bool has_match(nb::handle object, const nb::detail::cleanup_list& call) noexcept {
  for (std::size_t i = 2; i < call.size(); ++i) {
    if (call[i] == object.ptr() && call[i - 1] == Py_Ellipsis) {
      return true;
    }
  }
  return false;
}

/// Imports a parameter that is a view. For an array that is not of the view's type, the next
/// overload is tried in the first round. In the second the array is refused, unless an
/// overload matched it in the first: then another argument is wrong.
/// @tparam Parameter the parameter's type
/// @tparam View of the parameter, or `any_view`
template <class Parameter, class View>
class view_parameter : public deferred_argument<Parameter> {
 protected:
  /// @param assign makes `value` of the array
  /// @return whether this overload accepts the object
  template <class Assign>
  bool load_array(nb::handle object, std::uint32_t flags, nb::detail::cleanup_list* call,
                  const Assign& assign) noexcept {
    return this->load_by(object, flags, call, [&] {
      const imported_argument array(object.ptr());
      const bool is_argument = call != nullptr && !is_cast(flags);
      const bool defers = is_argument && (is_first_round(flags) || has_match(object, *call));
      if (!array.is_array() || (defers && !array.template may_be<View>())) {
        return false;
      }
      try {
        assign(array);
      } catch (const conversion_error&) {  // not of the view's type
        if (defers) {
          return false;
        }
        throw;
      }
      if (is_argument) {
        record_match(object, *call);
      }
      return true;
    });
  }
};

}  // namespace usm_dlpack::detail

namespace nanobind::detail {

/// Caster of a view that lives as long as the call. A view has no queue, so the caster waits
/// for the array's.
template <typename View>
struct type_caster<View, enable_if_t<usm_dlpack::detail::is_view<View>>>
    : usm_dlpack::detail::view_parameter<View, View> {
  static constexpr auto Name = usm_dlpack::detail::parameter_descr<descr, View>;

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->load_array(source, flags, cleanup, [&](const auto& array) {
      if (usm_dlpack::detail::is_cast(flags)) {
        usm_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, "view",
                                   "a parameter of a function, which keeps the memory",
                                   "a cast, which would not", "cast to an owned_view");
      }
      this->value.emplace(array.template view<View>());
      if (cleanup != nullptr) {  // nb::isinstance has none
        array.wait();
        cleanup->append(handle(array.owner()).inc_ref().ptr());
      }
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
    return this->load_array(source, flags, cleanup, [&](const auto& array) {
      this->value.emplace(array.template own<View>());
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
    : usm_dlpack::detail::view_parameter<usm_dlpack::any_view, usm_dlpack::any_view> {
  static constexpr auto Name = const_name("@usm_dlpack.UsmArray@usm_dlpack.DLPackTensor@");

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return this->load_array(source, flags, cleanup,
                            [&](const auto& array) { this->value.emplace(array.own_any()); });
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
