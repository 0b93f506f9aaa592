// SPDX-License-Identifier: Apache-2.0
//
// nanobind casters of SYCL objects: Python has dpctl's.
#pragma once

#include <usm_dlpack/nanobind/dpctl.hpp>
#include <usm_dlpack/nanobind/overloads.hpp>

namespace usm_dlpack::detail {

/// Caster of a SYCL object: a copy of dpctl's as a parameter, a dpctl object as a result.
template <class Object>
class dpctl_caster : public kept_argument<Object> {
 public:
  static constexpr auto Name = nb::detail::const_name("dpctl.Sycl") + dpctl_name<Object>;

  bool from_python(nb::handle source, std::uint32_t flags,
                   nb::detail::cleanup_list* call) noexcept {
    this->value.reset();
    if (source.is_none()) {
      return true;
    }
    if (search_ended(flags, call)) {
      return false;
    }
    try {
      const Object* found = in_capsule<Object>(source);
      found = found == nullptr ? in_dpctl<Object>(source) : found;
      if (found != nullptr) {
        this->value = *found;
      } else {
        record_refusal(source, call);
      }
      return found != nullptr;
    } catch (...) {
      this->error = std::current_exception();
      return true;
    }
  }

  static nb::handle from_cpp(const Object& object, nb::rv_policy,
                             nb::detail::cleanup_list*) noexcept {
    return made_or_error([&] { return make_dpctl(object); });
  }
  static nb::handle from_cpp(const Object* object, nb::rv_policy policy,
                             nb::detail::cleanup_list* cleanup) noexcept {
    return object == nullptr ? nb::none().release() : from_cpp(*object, policy, cleanup);
  }
};

}  // namespace usm_dlpack::detail

namespace nanobind::detail {

template <>
struct type_caster<sycl::queue> : usm_dlpack::detail::dpctl_caster<sycl::queue> {};
template <>
struct type_caster<sycl::context> : usm_dlpack::detail::dpctl_caster<sycl::context> {};
template <>
struct type_caster<sycl::device> : usm_dlpack::detail::dpctl_caster<sycl::device> {};
template <>
struct type_caster<sycl::event> : usm_dlpack::detail::dpctl_caster<sycl::event> {};

}  // namespace nanobind::detail
