// SPDX-License-Identifier: Apache-2.0
//
// Converts between SYCL objects and dpctl's by the functions that dpctl's modules export,
// without its headers or Cython. A new type is a pair of functions here.
#pragma once

#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <atomic>
#include <cstring>
#include <string>
#include <type_traits>

namespace usm_dlpack::detail {

/// dpctl's names for a SYCL object: the class `SyclQueue` of the module `dpctl._sycl_queue`,
/// and the capsule "SyclQueueRef". The class's functions are `SyclQueue_GetQueueRef` and
/// `SyclQueue_Make`.
struct dpctl_names {
  const char* type;
  const char* module;
  const char* capsule;  ///< null for devices: dpctl makes no capsules of them
};
template <class Object>
inline constexpr dpctl_names dpctl_name{};
template <>
inline constexpr dpctl_names dpctl_name<sycl::queue>{"SyclQueue", "dpctl._sycl_queue",
                                                     "SyclQueueRef"};
template <>
inline constexpr dpctl_names dpctl_name<sycl::context>{"SyclContext", "dpctl._sycl_context",
                                                       "SyclContextRef"};
template <>
inline constexpr dpctl_names dpctl_name<sycl::device>{"SyclDevice", "dpctl._sycl_device",
                                                      nullptr};
template <>
inline constexpr dpctl_names dpctl_name<sycl::event>{"SyclEvent", "dpctl._sycl_event",
                                                     "SyclEventRef"};

/// dpctl's class of a SYCL object, loaded once for the life of the process.
template <class Object>
struct dpctl_class {
  PyTypeObject* type;
  const void* (*get)(PyObject*);          ///< borrows the SYCL object; null with an error set
  PyObject* (*make)(const void* object);  ///< a new object that holds a copy

  static const dpctl_class& loaded() {
    // No lock: an import lets other threads run, which would wait for it with the GIL held.
    static std::atomic<const dpctl_class*> cache{nullptr};
    const dpctl_class* dpctl = cache.load(std::memory_order_acquire);
    if (dpctl == nullptr) {
      dpctl = new dpctl_class(load());
      cache.store(dpctl, std::memory_order_release);
    }
    return *dpctl;
  }

 private:
  static dpctl_class load() {
    const std::string name = dpctl_name<Object>.type;
    const std::string getter = name + "_Get" + name.substr(std::strlen("Sycl")) + "Ref";
    const python_object module = checked(PyImport_ImportModule(dpctl_name<Object>.module));
    python_object type = checked(PyObject_GetAttrString(module.get(), name.c_str()));
    const auto get =
        reinterpret_cast<const void* (*)(PyObject*)>(exported_function(module.get(), getter));
    const auto make = reinterpret_cast<PyObject* (*)(const void*)>(
        exported_function(module.get(), name + "_Make"));
    return {reinterpret_cast<PyTypeObject*>(type.release()), get, make};
  }

  static void* exported_function(PyObject* module, const std::string& name) {
    const python_object functions = checked(PyObject_GetAttrString(module, "__pyx_capi__"));
    const python_object capsule =
        checked(PyMapping_GetItemString(functions.get(), name.c_str()));
    void* function = PyCapsule_GetPointer(capsule.get(), PyCapsule_GetName(capsule.get()));
    if (function == nullptr) {
      throw python_exception();
    }
    return function;
  }
};

/// Borrows the SYCL object in a capsule, which is not consumed, or in a dpctl object; null for
/// anything else. Checks the type itself, because `__class__` can be overridden.
/// @throws python_exception TypeError if the object's `__init__` never ran
template <class Object>
const Object* find_sycl(PyObject* object) {
  constexpr dpctl_names name = dpctl_name<Object>;
  if (name.capsule != nullptr && PyCapsule_IsValid(object, name.capsule) != 0) {
    return static_cast<const Object*>(PyCapsule_GetPointer(object, name.capsule));
  }
  const auto& dpctl = dpctl_class<Object>::loaded();
  if (PyType_IsSubtype(Py_TYPE(object), dpctl.type) == 0) {
    return nullptr;
  }
  const void* reference = dpctl.get(object);
  if (reference == nullptr && PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_TypeError,
                 "%s: expected one that was made, found a %s without content; pass one of "
                 "dpctl's objects",
                 name.module + std::strlen("dpctl._sycl_"), name.type);
  }
  if (reference == nullptr) {
    throw python_exception();
  }
  return static_cast<const Object*>(reference);
}

/// Finds the SYCL object of an argument.
/// @throws python_exception also in a child of fork(), where the object cannot be used
template <class Object>
const Object* find_argument(PyObject* object) {
  const Object* sycl_object = find_sycl<Object>(object);
  if (sycl_object != nullptr && package_interface::get().check_process() != 0) {
    throw python_exception();
  }
  return sycl_object;
}

template <class Object>
python_object make_dpctl(const Object& object) {
  return checked(dpctl_class<Object>::loaded().make(&object));
}

}  // namespace usm_dlpack::detail
