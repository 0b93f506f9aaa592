// SPDX-License-Identifier: Apache-2.0
//
// pybind11's casters of SYCL objects, which are dpctl's objects in Python. A new type of SYCL
// is a caster here, one in nanobind/dpctl.hpp, and a conversion in python/dpctl.hpp.
#pragma once

#include <usm_dlpack/pybind11/argument.hpp>
#include <usm_dlpack/python/dpctl.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <pybind11/pybind11.h>

namespace usm_dlpack::detail {

/// Caster of a SYCL object: a copy of dpctl's as a parameter, a dpctl object as a result.
template <class Object>
class pybind11_dpctl_caster : public argument_value<Object> {
 public:
  bool load(pybind11::handle source, bool convert) {
    return this->load_by(source, convert, [&] {
      const Object* object = find_argument<Object>(source.ptr());
      if (object != nullptr) {
        this->value = *object;
      }
      return object != nullptr;
    });
  }

  static pybind11::handle cast(const Object& object, pybind11::return_value_policy,
                               pybind11::handle) {
    return not_null(object_or_null([&] { return make_dpctl(object); }));
  }
  static pybind11::handle cast(const Object* object, pybind11::return_value_policy policy,
                               pybind11::handle parent) {
    return object == nullptr ? pybind11::none().release() : cast(*object, policy, parent);
  }
};

}  // namespace usm_dlpack::detail

namespace pybind11::detail {

template <>
class type_caster<sycl::queue>
    : public usm_dlpack::detail::pybind11_dpctl_caster<sycl::queue> {
 public:
  static constexpr auto name = const_name("dpctl.SyclQueue");
};
template <>
class type_caster<sycl::context>
    : public usm_dlpack::detail::pybind11_dpctl_caster<sycl::context> {
 public:
  static constexpr auto name = const_name("dpctl.SyclContext");
};
template <>
class type_caster<sycl::device>
    : public usm_dlpack::detail::pybind11_dpctl_caster<sycl::device> {
 public:
  static constexpr auto name = const_name("dpctl.SyclDevice");
};
template <>
class type_caster<sycl::event>
    : public usm_dlpack::detail::pybind11_dpctl_caster<sycl::event> {
 public:
  static constexpr auto name = const_name("dpctl.SyclEvent");
};

}  // namespace pybind11::detail
