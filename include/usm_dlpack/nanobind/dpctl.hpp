// SPDX-License-Identifier: Apache-2.0
//
// Converts between SYCL objects and dpctl's by the functions that dpctl's modules export,
// without its headers or Cython; and nanobind's casters, for which Python has dpctl's objects.
#pragma once

#include <usm_dlpack/nanobind/argument.hpp>
#include <usm_dlpack/nanobind/package.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

namespace usm_dlpack::detail {

/// dpctl's name for a SYCL object: `Queue` of the module `dpctl._sycl_queue`, the class
/// `SyclQueue`, its functions `SyclQueue_GetQueueRef` and `SyclQueue_Make`, and the capsule
/// "SyclQueueRef".
template <class Object>
inline constexpr auto dpctl_name = nullptr;
template <>
inline constexpr auto dpctl_name<sycl::queue> = nb::detail::const_name("Queue");
template <>
inline constexpr auto dpctl_name<sycl::context> = nb::detail::const_name("Context");
template <>
inline constexpr auto dpctl_name<sycl::device> = nb::detail::const_name("Device");
template <>
inline constexpr auto dpctl_name<sycl::event> = nb::detail::const_name("Event");

template <class Object>
std::string lower_dpctl_name() {
  std::string name = dpctl_name<Object>.text;
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  return name;
}

/// dpctl's class of a SYCL object, looked up once and kept for the life of the process.
template <class Object>
struct dpctl_class {
  PyTypeObject* type;
  const void* (*get)(PyObject*);          ///< borrows the SYCL object; null with an error set
  PyObject* (*make)(const void* object);  ///< a new object that holds a copy

  static const dpctl_class& found() {
    // No lock: an import lets other threads run, which would wait for it with the GIL held.
    static std::atomic<const dpctl_class*> kept{nullptr};
    const dpctl_class* known = kept.load(std::memory_order_acquire);
    if (known == nullptr) {
      known = new dpctl_class(find());
      kept.store(known, std::memory_order_release);
    }
    return *known;
  }

 private:
  static dpctl_class find() {
    const std::string capital = dpctl_name<Object>.text;
    const std::string name = "Sycl" + capital;
    const nb::module_ module =
        nb::module_::import_(("dpctl._sycl_" + lower_dpctl_name<Object>()).c_str());
    nb::object type = module.attr(name.c_str());
    return {reinterpret_cast<PyTypeObject*>(type.release().ptr()),
            reinterpret_cast<const void* (*)(PyObject*)>(
                exported_function(module, name + "_Get" + capital + "Ref")),
            reinterpret_cast<PyObject* (*)(const void*)>(
                exported_function(module, name + "_Make"))};
  }

  static void* exported_function(nb::handle module, const std::string& name) {
    const nb::object capsule = module.attr("__pyx_capi__")[name.c_str()];
    void* function = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (function == nullptr) {
      throw nb::python_error();
    }
    return function;
  }
};

/// Borrows the SYCL object in a capsule, which is not consumed, or in a dpctl object; null for
/// anything else. dpctl makes no capsules of devices. Checks the real type, because
/// `__class__` can lie.
/// @throws nb::python_error TypeError if the object's `__init__` never ran
template <class Object>
const Object* find_sycl(nb::handle object) {
  constexpr auto name =
      nb::detail::const_name("Sycl") + dpctl_name<Object> + nb::detail::const_name("Ref");
  if (!std::is_same_v<Object, sycl::device> && PyCapsule_IsValid(object.ptr(), name.text)) {
    return static_cast<const Object*>(PyCapsule_GetPointer(object.ptr(), name.text));
  }
  const auto& known = dpctl_class<Object>::found();
  if (PyType_IsSubtype(Py_TYPE(object.ptr()), known.type) == 0) {
    return nullptr;
  }
  const void* held = known.get(object.ptr());
  if (held == nullptr && PyErr_Occurred() == nullptr) {
    const std::string sentence =
        lower_dpctl_name<Object>() + ": expected one that was made, found a Sycl" +
        dpctl_name<Object>.text + " without content; pass one of dpctl's objects";
    PyErr_SetString(PyExc_TypeError, sentence.c_str());
  }
  if (held == nullptr) {
    throw nb::python_error();
  }
  return static_cast<const Object*>(held);
}

/// Finds the SYCL object of an argument.
/// @throws nb::python_error also in a child of fork(), where nothing can be done with it
template <class Object>
const Object* find_argument(nb::handle object) {
  const Object* found = find_sycl<Object>(object);
  if (found != nullptr && package_interface::get().check_process() != 0) {
    throw nb::python_error();
  }
  return found;
}

template <class Object>
nb::object make_dpctl(const Object& object) {
  PyObject* made = dpctl_class<Object>::found().make(&object);
  if (made == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(made);
}

/// Caster of a SYCL object: a copy of dpctl's as a parameter, a dpctl object as a result.
template <class Object>
class dpctl_caster : public kept_argument<Object> {
 public:
  static constexpr auto Name = nb::detail::const_name("dpctl.Sycl") + dpctl_name<Object>;

  bool from_python(nb::handle source, std::uint32_t flags,
                   nb::detail::cleanup_list* call) noexcept {
    static constexpr auto sentence = nb::detail::const_name("object: expected a ") + Name +
                                     nb::detail::const_name(", found another; pass dpctl's");
    return this->keep(source, flags, call, sentence.text, [&] {
      const Object* found = find_argument<Object>(source);
      if (found != nullptr) {
        this->value = *found;
      }
      return found != nullptr;
    });
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
