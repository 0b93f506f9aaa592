// SPDX-License-Identifier: Apache-2.0
#include "arguments/arguments.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

namespace usm_dlpack::python {

nb::handle imported::get() const {
  PyObject* attribute = attribute_;
  if (attribute == nullptr) {
    attribute_ = attribute =
        nb::object(nb::module_::import_(module_).attr(name_)).release().ptr();
  }
  return attribute;
}

bool is_instance(nb::handle object, nb::handle type) noexcept {
  return PyType_IsSubtype(Py_TYPE(object.ptr()),
                          reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
}

bool is_instance(nb::handle object, const imported& type) {
  return is_instance(object, type.get());
}

nb::object find_index(nb::handle value, PyObject* ignored) {
  return PyBool_Check(value.ptr()) != 0 ? nb::object()
                                        : checked_unless(ignored, PyNumber_Index(value.ptr()));
}

std::optional<std::int64_t> find_integer(nb::handle value, PyObject* ignored) {
  static imported enumeration{"enum", "Enum"};
  nb::object number = nb::borrow(value);
  if (PyLong_CheckExact(value.ptr()) == 0) {
    number = find_index(value, ignored);
    if (!number.is_valid() && is_instance(value, enumeration)) {
      number = find_index(nb::object(value.attr("value")), ignored);
    }
    if (!number.is_valid()) {
      return std::nullopt;
    }
  }
  int overflow = 0;
  const std::int64_t read = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return overflow == 0  ? read
         : overflow > 0 ? std::numeric_limits<std::int64_t>::max()
                        : std::numeric_limits<std::int64_t>::min();
}

bool read_pair(nb::handle object, std::int64_t (&pair)[2]) {
  if (PyTuple_Check(object.ptr()) == 0 || PyTuple_Size(object.ptr()) != 2) {
    return false;
  }
  for (Py_ssize_t i = 0; i < 2; ++i) {
    const nb::object number = nb::borrow(PyTuple_GetItem(object.ptr(), i));
    const std::optional<std::int64_t> read = find_integer(number, PyExc_Exception);
    if (!read) {
      return false;
    }
    pair[i] = *read;
  }
  return true;
}

std::int64_t read_integer(const char* field, nb::handle value) {
  using limits = std::numeric_limits<std::int64_t>;
  const std::optional<std::int64_t> read = find_integer(value);
  if (!read) {
    refuse_argument(nb::exception_type::type_error, field, "an int", text_of(value),
                    "pass one");
  }
  if (*read == limits::max() || *read == limits::min()) {  // it may be beyond
    refuse_argument(nb::exception_type::value_error, field, "an int64_t", text_of(value),
                    "correct the value");
  }
  return *read;
}

std::int32_t read_int32(const char* field, nb::handle value) {
  const std::int64_t read = read_integer(field, value);
  if (read < INT32_MIN || read > INT32_MAX) {
    refuse_argument(nb::exception_type::value_error, field, "an int32_t", text_of(value),
                    "correct the value");
  }
  return static_cast<std::int32_t>(read);
}

namespace {

/// Adds an integer to a sequence; false if the object is no integer.
bool append_integer(const char* field, nb::handle value, std::int64_t lowest,
                    std::vector<std::int64_t>& sequence) {
  const nb::object number = find_index(value);
  if (!number.is_valid()) {
    return false;
  }
  int overflow = 0;
  const std::int64_t read = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || read < lowest) {
    refuse_argument(nb::exception_type::value_error,
                    field + ("[" + std::to_string(sequence.size())) + "]",
                    "from " + std::to_string(lowest) + " to 9223372036854775807 elements",
                    text_of(number), "correct the value");
  }
  sequence.push_back(read);
  return true;
}

/// The items of a sequence, or an invalid object. A text is no sequence of numbers, and bytes
/// are not meant as one.
nb::object find_items(nb::handle values) {
  const bool is_sequence =
      PySequence_Check(values.ptr()) != 0 && PyUnicode_Check(values.ptr()) == 0 &&
      PyBytes_Check(values.ptr()) == 0 && PyByteArray_Check(values.ptr()) == 0;
  return is_sequence ? checked_unless(PyExc_TypeError, PySequence_Tuple(values.ptr()))
                     : nb::object();
}

[[noreturn]] void refuse_name(nb::exception_type kind, const char* field, nb::handle value,
                              std::initializer_list<const char*> names) {
  std::string expected = "None";
  for (const char* const* name = names.begin(); name != names.end(); ++name) {
    expected += name + 1 == names.end() ? " or \"" : ", \"";
    expected += std::string(*name) + "\"";
  }
  refuse_argument(kind, field, expected, text_of(value), "pass one of these");
}

}  // namespace

std::optional<std::vector<std::int64_t>> find_integers(const char* field, nb::handle values,
                                                       std::int64_t lowest) {
  std::vector<std::int64_t> sequence;
  if (PyTuple_CheckExact(values.ptr()) == 0 &&
      append_integer(field, values, lowest, sequence)) {
    return sequence;
  }
  const nb::object items = find_items(values);
  if (!items.is_valid()) {
    return std::nullopt;
  }
  for (const nb::handle item : nb::borrow<nb::tuple>(items)) {
    if (!append_integer(field, item, lowest, sequence)) {
      return std::nullopt;
    }
  }
  return sequence;
}

std::vector<std::int64_t> read_integers(const char* field, nb::handle values,
                                        std::int64_t lowest) {
  auto read = find_integers(field, values, lowest);
  if (!read) {
    refuse_argument(nb::exception_type::type_error, field, "a sequence of integers",
                    text_of(values), "pass a tuple of int");
  }
  return *std::move(read);
}

std::vector<nb::object> read_names(const char* field, nb::handle values) {
  const nb::object items =
      PyUnicode_Check(values.ptr()) != 0
          ? nb::object(nb::make_tuple(values))
          : checked_unless(PyExc_TypeError, PySequence_Tuple(values.ptr()));
  std::vector<nb::object> names;
  if (items.is_valid()) {
    for (const nb::handle item : nb::borrow<nb::tuple>(items)) {
      names.push_back(nb::borrow(item));
    }
  }
  const bool all = std::all_of(names.begin(), names.end(), [](const nb::object& name) {
    return PyUnicode_Check(name.ptr()) != 0;
  });
  if (!items.is_valid() || !all) {
    refuse_argument(nb::exception_type::type_error, field, "a sequence of str",
                    text_of(values), "pass names");
  }
  return names;
}

std::optional<std::size_t> read_choice(const char* field, nb::handle value,
                                       std::initializer_list<const char*> names) {
  if (value.is_none()) {
    return std::nullopt;
  }
  if (PyUnicode_Check(value.ptr()) == 0) {
    refuse_name(nb::exception_type::type_error, field, value, names);
  }
  for (const char* const* name = names.begin(); name != names.end(); ++name) {
    if (PyUnicode_CompareWithASCIIString(value.ptr(), *name) == 0) {
      return static_cast<std::size_t>(name - names.begin());
    }
  }
  refuse_name(nb::exception_type::value_error, field, value, names);
}

std::optional<bool> find_truth(nb::handle value) {
  static imported bool_of_numpy{"numpy", "bool_"};
  if (PyBool_Check(value.ptr()) == 0 && !is_instance(value, bool_of_numpy)) {
    return std::nullopt;
  }
  return PyObject_IsTrue(value.ptr()) == 1;
}

bool numpy_converts(nb::handle x) {
  if (PyType_Check(x.ptr()) != 0 || PyUnicode_Check(x.ptr()) != 0 ||
      PyBytes_Check(x.ptr()) != 0) {
    return false;
  }
  return PyList_Check(x.ptr()) != 0 || PyTuple_Check(x.ptr()) != 0 ||
         PyFloat_Check(x.ptr()) != 0 || PyComplex_Check(x.ptr()) != 0 ||
         PyObject_CheckBuffer(x.ptr()) != 0 || type_has(x, nb::str("__array__")) ||
         type_has(x, nb::str("__array_interface__"));
}

std::optional<bool> read_flag(const char* field, nb::handle value) {
  if (value.is_none()) {
    return std::nullopt;
  }
  if (const std::optional<bool> read = find_truth(value)) {
    return read;
  }
  refuse_argument(nb::exception_type::type_error, field, "None, True or False", text_of(value),
                  "pass one");
}

}  // namespace usm_dlpack::python
