// SPDX-License-Identifier: Apache-2.0
//
// References to Python objects and Python's exceptions in C++, by Python's C API alone: below
// the layers for nanobind and pybind11, which have such types of their own. Nothing here may
// include a binding.
#pragma once

#include <Python.h>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

struct drop_reference {
  void operator()(PyObject* object) const noexcept { Py_DECREF(object); }
};
/// Owns a reference to a Python object, or null. @pre the GIL is held when it is dropped
using python_object = std::unique_ptr<PyObject, drop_reference>;

/// Adds a reference to an object, which may be null.
inline python_object borrow(PyObject* object) noexcept {
  Py_XINCREF(object);
  return python_object(object);
}

/// A Python exception, thrown in C++. Each layer converts it to its own type, or sets it
/// again.
/// @pre the GIL is held when it is constructed, restored or destroyed
class python_exception : public std::exception {
 public:
  /// Consumes the current Python error.
  python_exception() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    const python_object type_owner(type), traceback_owner(traceback);
    if (traceback != nullptr) {
      PyException_SetTraceback(value, traceback);
    }
    value_ = std::shared_ptr<PyObject>(value, drop_reference());
  }

  /// The exception object, borrowed.
  PyObject* value() const noexcept { return value_.get(); }
  /// Sets the Python error again.
  void restore() const noexcept {
    PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(value()));
    PyErr_Restore(borrow(type).release(), borrow(value()).release(),
                  PyException_GetTraceback(value()));
  }
  const char* what() const noexcept override { return "a Python exception"; }

 private:
  std::shared_ptr<PyObject> value_;  // shared: copying the exception must not throw
};

/// Owns a new reference. @throws python_exception, the current Python error, if it is null
inline python_object checked(PyObject* object) {
  if (object == nullptr) {
    throw python_exception();
  }
  return python_object(object);
}

/// Whether a type is a Python object of nanobind or pybind11: a handle, or an accessor like
/// `self.attr("memory")`.
template <class T, class = void>
inline constexpr bool is_python_object = false;
template <class T>
inline constexpr bool
    is_python_object<T, std::void_t<decltype(std::declval<const T&>().ptr())>> =
        std::is_same_v<decltype(std::declval<const T&>().ptr()), PyObject*>;

}  // namespace usm_dlpack::detail
