// SPDX-License-Identifier: Apache-2.0
//
// Python's side of the module: functions of the Python package, errors, readers of arguments,
// and the SYCL objects that Python code passes: dpctl's, or capsules.
#pragma once

#include "process.hpp"

#include <usm_dlpack/nanobind/dpctl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// A function or table that the Python package handed over when it was imported, by
/// `_set_functions`. @throws nb::python_error ImportError before, and after the module is
/// cleared
nb::object python_function(const char* name);

/// Calls such a function.
template <class... Arguments>
nb::object call_python(const char* name, const Arguments&... arguments) {
  return python_function(name)(arguments...);
}

/// Defines the tables `error_table` and `type_codes`, and `_set_functions`.
void register_python_objects(nb::module_& module);

/// Sets the Python error of a refusal, by the name of its code; if making it raises, sets
/// that.
void set_error(const char* code, const char* field, const char* expected, const char* found,
               const char* remedy) noexcept;

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

/// An attribute, or an invalid object if it raises `ignored`.
/// @throws nb::python_error any other error
nb::object find_attribute(nb::handle object, const char* name, PyObject* ignored);
/// An attribute, or an invalid object if there is none. An AttributeError that is raised
/// inside a property of the object's type is an error like others.
/// @param name a string of Python
/// @throws nb::python_error whatever a property or `__getattr__` raises
nb::object find_attribute(nb::handle object, nb::handle name);
/// Whether an object may have an attribute: true if its type computes attributes, otherwise
/// only for one that can be read. Much cheaper than a lookup that fails.
bool may_have(nb::handle object, nb::handle name);

/// Takes a new reference. @throws nb::python_error the error that is set, for null
nb::object checked(PyObject* made);
/// The same, or an invalid object if the error that is set is of the kind.
nb::object checked_unless(PyObject* ignored, PyObject* made);

/// Reads a tuple of two integers that fit int64_t; false for anything else.
bool read_pair(nb::handle object, std::int64_t (&pair)[2]);

/// An object for a sentence: "an object of type ..." or its own text.
std::string text_of_type(nb::handle object);
std::string text_of(nb::handle object);

/// Raises the error of a wrong argument, which has no code.
[[noreturn]] void refuse_argument(nb::exception_type kind, const std::string& field,
                                  const std::string& expected, const std::string& found,
                                  const std::string& remedy);

/// The queue of a `dpctl.SyclQueue` or a capsule "SyclQueueRef"; nothing for anything else.
std::optional<sycl::queue> find_queue(nb::handle object);
/// The context of a `dpctl.SyclContext`, `dpctl.SyclQueue`, or a capsule "SyclContextRef" or
/// "SyclQueueRef"; a capsule is read, never consumed. @throws nb::type_error for anything else
sycl::context to_context(nb::handle object);
/// The queue that `find_queue` finds. @throws nb::type_error if there is none
sycl::queue to_queue(nb::handle object);
/// The device of a `dpctl.SyclDevice`. @throws nb::type_error for anything else
sycl::device to_device(nb::handle object);

/// A new object of dpctl, which queries the runtime. @throws conversion_error `process_forked`
template <class Object>
nb::object to_dpctl(const Object& object) {
  check_process();
  return detail::make_dpctl(object);
}

}  // namespace usm_dlpack::python
