// SPDX-License-Identifier: Apache-2.0
#include "arguments/errors.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace usm_dlpack::python {
namespace {

/// The package's exception classes, kept for the life of the process. Null before the package
/// is imported.
std::atomic<PyObject*> conversion_class{nullptr};
std::atomic<PyObject*> binding_class{nullptr};

void set_exceptions(nb::object conversion, nb::object binding) {
  conversion_class = conversion.release().ptr();
  binding_class = binding.release().ptr();
}

/// The remedy if there is no device, because the package was imported after the first device
/// query. This is assumed if a driver is registered and no selector excludes it. Otherwise
/// null.
/// @pre the code is `no_device`, so the device table was made
const char* remedy_of_late_import() {
  const bool is_late = std::getenv("OCL_ICD_FILENAMES") != nullptr &&
                       std::getenv("ONEAPI_DEVICE_SELECTOR") == nullptr &&
                       detail::device_table::get().devices.empty();
  return is_late ? "import usm_dlpack before the first device query of the process, which "
                   "found no driver, or run python -m usm_dlpack"
                 : nullptr;
}

/// The row of a code, or null for a name that is no code.
const detail::error_row* find_row(const char* code) noexcept {
  for (const detail::error_row& row : detail::error_table) {
    if (std::strcmp(row.name, code) == 0) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

void register_errors(guarded_module& module) {
  module.def("error_table", [] {
    std::vector<std::pair<const char*, bool>> rows;
    for (const detail::error_row& row : detail::error_table) {
      rows.emplace_back(row.name, row.raised == detail::python_class::binding_error);
    }
    return rows;
  });
  module.def("_set_exceptions", &set_exceptions, nb::arg("conversion_error"),
             nb::arg("binding_error"));
  module.def("text_of", &text_of, nb::arg("value").none());
}

void set_conversion_error(const char* code, const char* field, const char* expected,
                          const char* found, const char* remedy) noexcept {
  const inside_module inside;
  const detail::error_row* row = find_row(code);
  PyObject* const raised = row != nullptr && row->raised == detail::python_class::binding_error
                               ? binding_class
                               : conversion_class;
  if (raised == nullptr) {
    PyErr_SetString(PyExc_ImportError,
                    "usm_dlpack._core: expected the exceptions of the Python package, found "
                    "none; import usm_dlpack first");
    return;
  }
  try {
    const bool has_no_device = std::strcmp(code, to_string(errc::no_device)) == 0;
    if (const char* better = has_no_device ? remedy_of_late_import() : nullptr) {
      remedy = better;
    }
    // The exception is made here, because Python 3.11 would make it later from its arguments,
    // outside this module.
    const std::string_view whole(remedy);
    const std::string_view of_callers = whole.substr(0, whole.find(", or in C++ "));
    const nb::object error = nb::handle(raised)(code, field, expected, found,
                                                nb::str(of_callers.data(), of_callers.size()));
    PyErr_SetObject(raised, error.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  } catch (...) {
    PyErr_NoMemory();
  }
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const conversion_error& error) {
    set_conversion_error(to_string(error.code()), error.field().c_str(),
                         error.expected().c_str(), error.found().c_str(),
                         error.remedy().c_str());
  } catch (const nb::builtin_exception& error) {
    const bool is_type = error.type() == nb::exception_type::type_error;
    PyErr_SetString(is_type ? PyExc_TypeError : PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "usm_dlpack: unknown C++ exception");
  }
}

void refuse_argument(nb::exception_type kind, const std::string& field,
                     const std::string& expected, const std::string& found,
                     const std::string& remedy) {
  const std::string sentence =
      field + ": expected " + expected + ", found " + found + "; " + remedy;
  throw nb::builtin_exception(kind, sentence.c_str());
}

nb::object checked(PyObject* reference) {
  if (reference == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(reference);
}

nb::object checked_unless(PyObject* ignored, PyObject* reference) {
  if (reference == nullptr && PyErr_ExceptionMatches(ignored) != 0) {
    PyErr_Clear();
    return {};
  }
  return checked(reference);
}

nb::object find_attribute(nb::handle object, const char* name, PyObject* ignored) {
  return checked_unless(ignored, PyObject_GetAttrString(object.ptr(), name));
}

nb::object find_attribute(nb::handle object, nb::handle name) {
  if (type_has(object, name)) {
    return checked(PyObject_GetAttr(object.ptr(), name.ptr()));
  }
  auto* type = reinterpret_cast<PyTypeObject*>(object.type().ptr());
  const bool computes = PyType_GetSlot(type, Py_tp_getattro) !=
                        reinterpret_cast<void*>(&PyObject_GenericGetAttr);
  // Much cheaper than a lookup that fails.
  if (!computes && PyObject_HasAttr(object.ptr(), name.ptr()) == 0) {
    return {};
  }
  return checked_unless(PyExc_AttributeError, PyObject_GetAttr(object.ptr(), name.ptr()));
}

bool type_has(nb::handle object, nb::handle name) {
  const nb::handle type = object.type();
  if (type.type().is(&PyType_Type)) {  // which runs no Python code, and is quick
    return PyObject_HasAttr(type.ptr(), name.ptr()) == 1;
  }
  return checked_unless(PyExc_Exception, PyObject_GetAttr(type.ptr(), name.ptr())).is_valid();
}

std::string name_of_type(nb::handle object) {
  static PyObject* const descriptor = [] {
    const nb::object names = nb::handle(&PyType_Type).attr("__dict__");
    return nb::object(names["__name__"]).release().ptr();
  }();
  const nb::object name = nb::handle(descriptor).attr("__get__")(object.type());
  const std::string quoted = nb::cast<std::string>(checked(PyObject_ASCII(name.ptr())));
  return quoted.substr(1, quoted.size() - 2);
}

std::string text_of_type(nb::handle object) {
  return "an object of type " + name_of_type(object);
}

std::string text_of(nb::handle object) {
  const nb::object shown = checked_unless(PyExc_Exception, PyObject_ASCII(object.ptr()));
  if (shown.is_valid()) {
    std::string text = nb::cast<std::string>(shown);
    // A str shows no address. A sentence ends at a zero character.
    if (PyUnicode_CheckExact(object.ptr()) != 0 ||
        (text.find("0x") == std::string::npos && text.find('\0') == std::string::npos)) {
      return text;
    }
  } else if (PyLong_CheckExact(object.ptr()) != 0) {  // it has more digits than Python prints
    const nb::object bits = object.attr("bit_length")();
    return "an int of " + std::string(nb::str(bits).c_str()) + " bits";
  }
  return text_of_type(object);
}

}  // namespace usm_dlpack::python
