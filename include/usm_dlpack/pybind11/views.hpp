// SPDX-License-Identifier: Apache-2.0
//
// pybind11's casters of views: an array as a parameter, in the order of pybind11's overloads,
// and a view with an owner or a usm_array as a result. What they share with
// nanobind's is in python/argument.hpp.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/pybind11/argument.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/argument.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/python/signature.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <pybind11/pybind11.h>

#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// The texts of a type as a parameter and as a result. Before pybind11 3 a type has one text
/// for both.
template <std::size_t N, std::size_t M>
constexpr auto parameter_and_result(const pybind11::detail::descr<N>& parameter,
                                    const char (&result)[M]) {
  using pybind11::detail::const_name;
  if constexpr (PYBIND11_VERSION_MAJOR >= 3) {
    return const_name("@") + parameter + const_name("@") + const_name(result) +
           const_name("@");
  } else {
    return parameter;
  }
}

/// Imports a parameter that is a view. For an array that is not of the view's type, the next
/// overload is tried.
/// @tparam Parameter the parameter's type
/// @tparam View of the parameter, or `any_view`
template <class Parameter, class View>
class pybind11_view_parameter : public argument_value<Parameter> {
 protected:
  /// @param assign makes `value` of the array
  template <class Assign>
  bool load_array(pybind11::handle object, bool convert, const Assign& assign) {
    return this->load_by(object, convert, [&] {
      const imported_argument array(object.ptr());
      if (!array.template may_be<View>()) {
        return false;
      }
      try {
        assign(array);
      } catch (const conversion_error&) {
        return false;
      }
      return true;
    });
  }
};

}  // namespace usm_dlpack::detail

namespace pybind11::detail {

/// Caster of a view that lives as long as the call. A view has no queue, so the caster waits
/// for the array's. `py::cast` to a view works only within a call.
template <typename View>
class type_caster<View, enable_if_t<usm_dlpack::detail::is_view<View>>>
    : public usm_dlpack::detail::pybind11_view_parameter<View, View> {
 public:
  static constexpr auto name = usm_dlpack::detail::parameter_descr<descr, View>;

  bool load(handle source, bool convert) {
    return this->load_array(source, convert, [&](const auto& array) {
      this->value.emplace(array.template view<View>());
      loader_life_support::add_patient(array.owner());
      array.wait();
    });
  }

  template <class T>
  static handle cast(T&&, return_value_policy, handle) {
    static_assert(!std::is_same_v<View, View>,
                  "return: expected a view with an owner, found a view alone, whose memory "
                  "nothing keeps; return an owned_view or a usm_array");
    return {};
  }
};

template <typename View>
class type_caster<usm_dlpack::owned_view<View>>
    : public usm_dlpack::detail::pybind11_view_parameter<usm_dlpack::owned_view<View>, View> {
 public:
  static constexpr auto name = usm_dlpack::detail::parameter_and_result(
      usm_dlpack::detail::parameter_descr<descr, View>, "usm_dlpack.DLPackTensor");

  bool load(handle source, bool convert) {
    return this->load_array(source, convert, [&](const auto& array) {
      this->value.emplace(array.template own<View>());
    });
  }

  template <class T>
  static handle cast(const T&, return_value_policy, handle) = delete;  // keep the tensor
  static handle cast(usm_dlpack::owned_view<View>&& value, return_value_policy, handle) {
    return usm_dlpack::detail::not_null(usm_dlpack::detail::to_python(std::move(value)));
  }
};

template <>
class type_caster<usm_dlpack::any_view>
    : public usm_dlpack::detail::pybind11_view_parameter<usm_dlpack::any_view,
                                                         usm_dlpack::any_view> {
 public:
  static constexpr auto name = usm_dlpack::detail::parameter_and_result(
      const_name("usm_dlpack.UsmArray"), "usm_dlpack.DLPackTensor");

  bool load(handle source, bool convert) {
    return this->load_array(source, convert,
                            [&](const auto& array) { this->value.emplace(array.own_any()); });
  }

  template <class T>
  static handle cast(const T&, return_value_policy, handle) = delete;  // keep the tensor
  static handle cast(usm_dlpack::any_view&& value, return_value_policy, handle) {
    return usm_dlpack::detail::not_null(usm_dlpack::detail::to_python(std::move(value)));
  }
};

template <typename View>
class type_caster<usm_dlpack::usm_array<View>> {
  using array = usm_dlpack::usm_array<View>;

 public:
  static constexpr auto name = const_name("usm_dlpack.DLPackTensor");
  template <class T>
  using cast_op_type = movable_cast_op_type<T>;

  bool load(handle, bool) {
    static_assert(!std::is_same_v<View, View>,
                  "parameter: expected a view, found a usm_array, which would own memory that "
                  "is Python's; take the mdspan type, or an owned_view");
    return false;
  }

  template <class T>
  static handle cast(const T&, return_value_policy, handle) = delete;  // keep the tensor
  static handle cast(array&& value, return_value_policy, handle) {
    return usm_dlpack::detail::not_null(usm_dlpack::detail::to_python(std::move(value)));
  }

  operator array&();
  operator array&&() &&;
};

}  // namespace pybind11::detail
