// SPDX-License-Identifier: Apache-2.0
//
// Errors in Python: the package's exceptions, wrong arguments, and the texts of objects. How
// an error becomes an exception of Python is decided here; the codes are in core/error.hpp.
#pragma once

#include "order/guarded.hpp"

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/python/error.hpp>

#include <string>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// Defines `error_table`, and `_set_exceptions`, by which the package passes its exception
/// classes when it is imported.
void register_errors(guarded_module& module);

/// Sets the Python error of a refusal, by the name of its code.
void set_conversion_error(const char* code, const char* field, const char* expected,
                          const char* found, const char* remedy) noexcept;

/// Sets the Python error of the exception that is being handled.
void set_python_error() noexcept;

/// Runs a function that may throw; returns 0, or -1 with the Python error set.
template <class Function>
int guarded(Function&& function) noexcept {
  try {
    function();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

/// Raises the error for a wrong argument. It has no code.
[[noreturn]] void refuse_argument(nb::exception_type kind, const std::string& field,
                                  const std::string& expected, const std::string& found,
                                  const std::string& remedy);

/// Runs a function of usm_dlpack/python/, and throws its Python exception as nanobind's.
template <class Function>
auto raising(Function&& function) {
  try {
    return function();
  } catch (const detail::python_exception& error) {
    error.restore();
    throw nb::python_error();
  }
}

/// Hands an object over to usm_dlpack/python/.
inline detail::python_object keep(nb::object object) noexcept {
  return detail::python_object(object.release().ptr());
}

/// Takes a new reference. @throws nb::python_error if it is null: the error that is set
nb::object checked(PyObject* reference);
/// Takes a new reference. If it is null and the error that is set is of the kind `ignored`,
/// clears the error and returns an invalid object.
nb::object checked_unless(PyObject* ignored, PyObject* reference);

/// An attribute, or an invalid object if it raises `ignored`.
/// @throws nb::python_error any other error
nb::object find_attribute(nb::handle object, const char* name, PyObject* ignored);
/// An attribute, or an invalid object if there is none. An AttributeError that is raised
/// inside a property of the object's type does not mean that there is none, and is thrown.
/// @param name a Python str
/// @throws nb::python_error whatever a property or `__getattr__` raises
nb::object find_attribute(nb::handle object, nb::handle name);
/// Whether the type of an object has an attribute; false if its metaclass raises an Exception.
bool type_has(nb::handle object, nb::handle name);

/// The name of an object's type in ASCII, whatever its metaclass says.
std::string name_of_type(nb::handle object);
/// "an object of type ..."
std::string text_of_type(nb::handle object);
/// The object's `ascii()`. If that shows an address or raises an exception, the object's type.
std::string text_of(nb::handle object);

}  // namespace usm_dlpack::python
