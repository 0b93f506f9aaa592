// SPDX-License-Identifier: Apache-2.0
//
// SYCL objects as parameters and results of nanobind functions: dpctl's objects, or capsules
// of them, in Python.
#pragma once

#include <usm_dlpack/dpctl_objects.hpp>

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace usm_dlpack::detail {

/// A SYCL object as a parameter, copied from dpctl's, and as a result.
template <class Object>
class dpctl_caster {
 public:
  template <class T>
  using Cast = nb::detail::movable_cast_t<T>;
  template <class>
  bool can_cast() const noexcept {
    return refused_ == nullptr && value_.has_value();
  }

  bool from_python(nb::handle source, std::uint32_t, nb::detail::cleanup_list*) noexcept {
    value_.reset();  // a container takes all its elements with one caster
    if (source.is_none()) {
      return true;
    }
    try {
      const Object* found = in_capsule<Object>(source);
      found = found == nullptr ? in_dpctl<Object>(source) : found;
      if (found != nullptr) {
        value_ = *found;
      }
      return found != nullptr;
    } catch (...) {
      refused_ = std::current_exception();
      return true;
    }
  }

  static nb::handle from_cpp(const Object& object, nb::rv_policy,
                             nb::detail::cleanup_list*) noexcept {
    try {
      return make_dpctl(object).release();
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    }
    return {};
  }
  static nb::handle from_cpp(const Object* object, nb::rv_policy policy,
                             nb::detail::cleanup_list* cleanup) noexcept {
    return object == nullptr ? nb::none().release() : from_cpp(*object, policy, cleanup);
  }

  explicit operator Object&() { return get(); }
  /// Null for None, which a parameter says that it takes by `"x"_a.none()`.
  explicit operator Object*() {
    check();
    return value_ ? &*value_ : nullptr;
  }
  explicit operator Object&&() { return std::move(get()); }

 private:
  void check() const {
    if (refused_ != nullptr) {
      std::rethrow_exception(refused_);
    }
  }
  Object& get() {
    check();
    if (!value_) {  // None
      throw nb::next_overload();
    }
    return *value_;
  }

  std::optional<Object> value_;
  std::exception_ptr refused_;
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
