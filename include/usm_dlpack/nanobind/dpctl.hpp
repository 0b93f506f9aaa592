// SPDX-License-Identifier: Apache-2.0
//
// nanobind's casters of SYCL objects, which are dpctl's objects in Python. A new type of SYCL
// is a caster here, one in pybind11/dpctl.hpp, and a conversion in python/dpctl.hpp.
#pragma once

#include <usm_dlpack/nanobind/argument.hpp>
#include <usm_dlpack/python/dpctl.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>

namespace usm_dlpack::detail {

/// Caster of a SYCL object: a copy of dpctl's as a parameter, a dpctl object as a result.
template <class Object>
class dpctl_caster : public deferred_argument<Object> {
 public:
  bool from_python(nb::handle source, std::uint32_t flags,
                   nb::detail::cleanup_list* call) noexcept {
    return this->load_by(source, flags, call, [&] {
      const Object* object = find_argument<Object>(source.ptr());
      if (object != nullptr) {
        this->value = *object;
      }
      return object != nullptr;
    });
  }

  static nb::handle from_cpp(const Object& object, nb::rv_policy,
                             nb::detail::cleanup_list*) noexcept {
    return object_or_null([&] { return make_dpctl(object); });
  }
  static nb::handle from_cpp(const Object* object, nb::rv_policy policy,
                             nb::detail::cleanup_list* cleanup) noexcept {
    return object == nullptr ? nb::none().release() : from_cpp(*object, policy, cleanup);
  }
};

}  // namespace usm_dlpack::detail

namespace nanobind::detail {

template <>
struct type_caster<sycl::queue> : usm_dlpack::detail::dpctl_caster<sycl::queue> {
  static constexpr auto Name = const_name("dpctl.SyclQueue");
};
template <>
struct type_caster<sycl::context> : usm_dlpack::detail::dpctl_caster<sycl::context> {
  static constexpr auto Name = const_name("dpctl.SyclContext");
};
template <>
struct type_caster<sycl::device> : usm_dlpack::detail::dpctl_caster<sycl::device> {
  static constexpr auto Name = const_name("dpctl.SyclDevice");
};
template <>
struct type_caster<sycl::event> : usm_dlpack::detail::dpctl_caster<sycl::event> {
  static constexpr auto Name = const_name("dpctl.SyclEvent");
};

}  // namespace nanobind::detail
