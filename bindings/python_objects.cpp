// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include <nanobind/stl/pair.h>

namespace usm_dlpack::python {
namespace {

/// The dictionary of the functions; null before the package is imported, and after the module
/// is cleared. Owned by the module, because a static owner would outlive the interpreter.
std::atomic<PyObject*> functions{nullptr};

void forget_functions(PyObject*) noexcept { functions = nullptr; }

void set_functions(nb::handle module, nb::kwargs given) {
  // A capsule must point to something.
  given["end"] = checked(PyCapsule_New(&functions, nullptr, &forget_functions));
  module.attr("_functions") = given;  // drops those of an earlier import, if any
  functions = given.ptr();
}

[[noreturn]] void refuse_type(const char* field, const char* expected, nb::handle found) {
  refuse_argument(nb::exception_type::type_error, field, expected, text_of_type(found),
                  "pass one of dpctl's objects");
}

}  // namespace

nb::object python_function(const char* name) {
  PyObject* known = functions;
  PyObject* found = known == nullptr ? nullptr : PyDict_GetItemString(known, name);
  if (found == nullptr) {
    PyErr_SetString(
        PyExc_ImportError,
        "usm_dlpack._core: expected the functions of the Python package, found none; "
        "import usm_dlpack first");
    throw nb::python_error();
  }
  return nb::borrow(found);
}

void register_python_objects(nb::module_& module) {
  module.def("error_table", [] {
    std::vector<std::tuple<const char*, const char*, bool>> rows;
    for (const detail::error_row& row : detail::error_table) {
      rows.emplace_back(row.name, row.meaning,
                        row.raised == detail::python_class::binding_error);
    }
    return rows;
  });
  module.def("type_codes", [] {
    std::vector<std::pair<const char*, int>> rows;
    for (const detail::type_code_row& row : detail::type_code_rows) {
      rows.emplace_back(row.name, row.bits);
    }
    return rows;
  });
  const nb::handle owner = module;
  module.def("_set_functions", [owner](nb::kwargs given) { set_functions(owner, given); });
}

void set_error(const char* code, const char* field, const char* expected, const char* found,
               const char* remedy) noexcept {
  try {
    const nb::object made = call_python("from_parts", code, field, expected, found, remedy);
    PyErr_SetObject(made.type().ptr(), made.ptr());
  } catch (nb::python_error& raised) {
    raised.restore();
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
    set_error(to_string(error.code()), error.field().c_str(), error.expected().c_str(),
              error.found().c_str(), error.remedy().c_str());
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

nb::object find_attribute(nb::handle object, const char* name, PyObject* ignored) {
  return checked_unless(ignored, PyObject_GetAttrString(object.ptr(), name));
}

nb::object find_attribute(nb::handle object, nb::handle name) {
  const bool is_of_type = PyObject_HasAttr(object.type().ptr(), name.ptr()) == 1;
  if (!is_of_type && !may_have(object, name)) {
    return {};
  }
  PyObject* found = PyObject_GetAttr(object.ptr(), name.ptr());
  return is_of_type ? checked(found) : checked_unless(PyExc_AttributeError, found);
}

bool may_have(nb::handle object, nb::handle name) {
  auto* type = reinterpret_cast<PyTypeObject*>(object.type().ptr());
  const bool computes = PyType_GetSlot(type, Py_tp_getattro) !=
                        reinterpret_cast<void*>(&PyObject_GenericGetAttr);
  return computes || PyObject_HasAttr(object.ptr(), name.ptr()) == 1;
}

nb::object checked(PyObject* made) {
  if (made == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(made);
}

nb::object checked_unless(PyObject* ignored, PyObject* made) {
  if (made == nullptr && PyErr_ExceptionMatches(ignored) != 0) {
    PyErr_Clear();
    return {};
  }
  return checked(made);
}

bool read_pair(nb::handle object, std::int64_t (&pair)[2]) {
  if (PyTuple_Check(object.ptr()) == 0 || PyTuple_Size(object.ptr()) != 2) {
    return false;
  }
  for (Py_ssize_t i = 0; i < 2; ++i) {
    nb::object number = nb::borrow(PyTuple_GetItem(object.ptr(), i));
    if (PyLong_CheckExact(number.ptr()) == 0) {
      number = checked_unless(
          PyExc_Exception,
          PyObject_CallFunctionObjArgs(python_function("index").ptr(), number.ptr(), nullptr));
    }
    int overflow = 0;
    pair[i] = number ? PyLong_AsLongLongAndOverflow(number.ptr(), &overflow) : 0;
    if (!number || overflow != 0) {
      return false;
    }
  }
  return true;
}

std::string text_of_type(nb::handle object) {
  return "an object of type " + nb::cast<std::string>(call_python("type_name", object));
}

std::string text_of(nb::handle object) {
  return nb::cast<std::string>(call_python("shown", object));
}

void refuse_argument(nb::exception_type kind, const std::string& field,
                     const std::string& expected, const std::string& found,
                     const std::string& remedy) {
  const std::string sentence =
      field + ": expected " + expected + ", found " + found + "; " + remedy;
  throw nb::builtin_exception(kind, sentence.c_str());
}

std::optional<sycl::queue> find_queue(nb::handle object) {
  const auto* found = detail::find_sycl<sycl::queue>(object);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

sycl::queue to_queue(nb::handle object) {
  if (std::optional<sycl::queue> queue = find_queue(object)) {
    return *std::move(queue);
  }
  refuse_type("queue", "a dpctl.SyclQueue or a capsule \"SyclQueueRef\"", object);
}

sycl::context to_context(nb::handle object) {
  if (const auto queue = find_queue(object)) {
    return queue->get_context();
  }
  if (const auto* context = detail::find_sycl<sycl::context>(object)) {
    return *context;
  }
  refuse_type("syclobj", "a dpctl.SyclContext, a dpctl.SyclQueue or a capsule of either",
              object);
}

sycl::device to_device(nb::handle object) {
  if (const auto* device = detail::find_sycl<sycl::device>(object)) {
    return *device;
  }
  refuse_type("device", "a dpctl.SyclDevice", object);
}

}  // namespace usm_dlpack::python
