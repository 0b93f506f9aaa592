// SPDX-License-Identifier: Apache-2.0
//
// Converts between SYCL objects and dpctl's by the functions that dpctl's modules export,
// without its headers or Cython.
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
  const char* capsule;  ///< null for devices, of which dpctl makes no capsules
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
/// anything else. Checks the real type, because `__class__` can lie.
/// @throws python_exception TypeError if the object's `__init__` never ran
template <class Object>
const Object* find_sycl(PyObject* object) {
  constexpr dpctl_names name = dpctl_name<Object>;
  if (name.capsule != nullptr && PyCapsule_IsValid(object, name.capsule) != 0) {
    return static_cast<const Object*>(PyCapsule_GetPointer(object, name.capsule));
  }
  const auto& known = dpctl_class<Object>::found();
  if (PyType_IsSubtype(Py_TYPE(object), known.type) == 0) {
    return nullptr;
  }
  const void* held = known.get(object);
  if (held == nullptr && PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_TypeError,
                 "%s: expected one that was made, found a %s without content; pass one of "
                 "dpctl's objects",
                 name.module + std::strlen("dpctl._sycl_"), name.type);
  }
  if (held == nullptr) {
    throw python_exception();
  }
  return static_cast<const Object*>(held);
}

/// Finds the SYCL object of an argument.
/// @throws python_exception also in a child of fork(), where nothing can be done with it
template <class Object>
const Object* find_argument(PyObject* object) {
  const Object* found = find_sycl<Object>(object);
  if (found != nullptr && package_interface::get().check_process() != 0) {
    throw python_exception();
  }
  return found;
}

template <class Object>
python_object make_dpctl(const Object& object) {
  return checked(dpctl_class<Object>::found().make(&object));
}

}  // namespace usm_dlpack::detail
