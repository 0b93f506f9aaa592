// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <algorithm>
#include <limits>

namespace usm_dlpack::python {
namespace {

bool is_plain(nb::handle values) {
  return PyTuple_CheckExact(values.ptr()) != 0 || PyList_CheckExact(values.ptr()) != 0;
}

bool is_iterable(nb::handle value) {
  static kept_object iterable;
  return is_plain(value) || is_instance(value, iterable.get([] {
           return nb::module_::import_("collections.abc").attr("Iterable");
         }));
}

/// Text, a mapping or a set, which NumPy does not take for a shape, even if empty.
bool is_no_sequence(nb::handle value) {
  static kept_object kinds;
  return is_instance(value, kinds.get([] {
    const nb::object abc = nb::module_::import_("collections.abc");
    const auto type = [](PyTypeObject& known) {
      return nb::handle(reinterpret_cast<PyObject*>(&known));
    };
    return nb::make_tuple(type(PyUnicode_Type), type(PyBytes_Type), type(PyByteArray_Type),
                          abc.attr("Mapping"), abc.attr("Set"));
  }));
}

template <class Take>
void for_each(nb::handle values, Take&& take) {
  const nb::object iterator = checked(PyObject_GetIter(values.ptr()));
  while (PyObject* item = PyIter_Next(iterator.ptr())) {
    const nb::object held = nb::steal(item);
    take(held);
  }
  if (PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
}

integers collect(nb::handle values) {
  integers made;
  const auto append = [&](nb::handle value) {
    made.append(PyLong_CheckExact(value.ptr()) != 0 ? nb::borrow(value)
                                                    : checked(PyNumber_Index(value.ptr())));
  };
  if (!is_plain(values) && is_no_sequence(values)) {
    PyErr_SetNone(PyExc_TypeError);
    throw nb::python_error();
  }
  if (is_iterable(values)) {
    for_each(values, append);
  } else {
    append(values);
  }
  return made;
}

}  // namespace

void refuse_argument(PyObject* type, const std::string& field, const std::string& expected,
                     const std::string& found, const std::string& remedy) {
  const std::string sentence =
      field + ": expected " + expected + ", found " + found + "; " + remedy;
  PyErr_SetString(type, sentence.c_str());
  throw nb::python_error();
}

nb::object find_attribute(nb::handle object, const char* name, PyObject* ignored) {
  PyObject* found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) {
    if (PyErr_ExceptionMatches(ignored) == 0) {
      throw nb::python_error();
    }
    PyErr_Clear();
  }
  return nb::steal(found);
}

nb::object checked(PyObject* made) {
  if (made == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(made);
}

bool is_instance(nb::handle value, nb::handle types) {
  const int answer = PyObject_IsInstance(value.ptr(), types.ptr());
  if (answer < 0) {
    throw nb::python_error();
  }
  return answer == 1;
}

nb::object to_index(nb::handle value) {
  static kept_object enumeration;
  if (PyLong_CheckExact(value.ptr()) != 0) {
    return nb::borrow(value);
  }
  const nb::handle base =
      enumeration.get([] { return nb::module_::import_("enum").attr("Enum"); });
  const bool is_member =
      PyType_IsSubtype(Py_TYPE(value.ptr()), reinterpret_cast<PyTypeObject*>(base.ptr())) != 0;
  const nb::object number = is_member ? nb::getattr(value, "value") : nb::borrow(value);
  return checked(PyNumber_Index(number.ptr()));
}

wide_int to_wide(nb::handle number) noexcept {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) {
    return value;
  }
  constexpr wide_int large = wide_int{1} << 100;
  if (overflow < 0) {
    return -large;
  }
  const unsigned long long positive = PyLong_AsUnsignedLongLong(number.ptr());
  const bool fits = PyErr_Occurred() == nullptr;
  PyErr_Clear();
  return fits ? wide_int{positive} : large;
}

nb::object from_wide(wide_int value) {
  return checked(PyLong_FromString(detail::digits(value).c_str(), nullptr, 10));
}

std::pair<nb::object, nb::object> to_pair(nb::handle pair) {
  if (PyTuple_CheckExact(pair.ptr()) != 0 && PyTuple_Size(pair.ptr()) == 2) {
    return {nb::borrow(PyTuple_GetItem(pair.ptr(), 0)),
            nb::borrow(PyTuple_GetItem(pair.ptr(), 1))};
  }
  const nb::object iterator = checked(PyObject_GetIter(pair.ptr()));
  nb::object parts[3];  // a third part shows that it is no pair
  for (nb::object& part : parts) {
    part = nb::steal(PyIter_Next(iterator.ptr()));
    if (!part.is_valid()) {
      break;
    }
  }
  if (PyErr_Occurred() == nullptr && (!parts[1].is_valid() || parts[2].is_valid())) {
    PyErr_SetNone(PyExc_ValueError);
  }
  if (PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  return {parts[0], parts[1]};
}

void integers::append(nb::handle number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 && !too_large.is_valid()) {
    too_large = nb::borrow(number);
    too_large_at = values.size();
  }
  values.push_back(overflow == 0  ? value
                   : overflow > 0 ? std::numeric_limits<std::int64_t>::max()
                                  : std::numeric_limits<std::int64_t>::min());
}

void integers::check(const char* field, std::int64_t lowest) const {
  for (std::size_t r = 0; r < values.size(); ++r) {
    const bool fits = !too_large.is_valid() || r != too_large_at;
    if (!fits || values[r] < lowest) {
      refuse_argument(PyExc_ValueError, detail::indexed(field, r),
                      "from " + detail::digits(lowest) + " to 9223372036854775807 elements",
                      fits ? std::string(detail::digits(values[r])) : text_of(too_large),
                      "correct the value");
    }
  }
}

integers read_integers(const char* field, nb::handle values) {
  if (auto found = attempt({PyExc_TypeError}, [&] { return collect(values); })) {
    return *std::move(found);
  }
  refuse_argument(PyExc_TypeError, field, "a sequence of integers", text_of(values),
                  "pass a tuple of int");
}

nb::object read_integer(const char* field, nb::handle value) {
  if (auto number = attempt({PyExc_TypeError}, [&] { return to_index(value); })) {
    return *std::move(number);
  }
  refuse_argument(PyExc_TypeError, field, "an int", text_of(value), "pass one");
}

std::int32_t read_int32(const char* field, nb::handle value) {
  const nb::object number = read_integer(field, value);
  const wide_int wide = to_wide(number);
  if (wide < INT32_MIN || wide > INT32_MAX) {
    refuse_argument(PyExc_ValueError, field, "an int32_t", text_of(number),
                    "correct the value");
  }
  return static_cast<std::int32_t>(wide);
}

std::optional<bool> read_flag(const char* field, nb::handle value) {
  if (value.is_none()) {
    return std::nullopt;
  }
  if (PyBool_Check(value.ptr()) == 0) {
    refuse_argument(PyExc_TypeError, field, "None, True or False", text_of(value), "pass one");
  }
  return value.is(Py_True);
}

std::vector<std::string> read_names(const char* field, nb::handle values) {
  std::vector<std::string> names;
  bool all_text = true;
  nb::object strange;
  const auto append = [&](nb::handle name) {
    all_text = all_text && PyUnicode_Check(name.ptr()) != 0;
    if (!all_text) {
      return;
    }
    // Null for lone surrogates.
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    PyErr_Clear();
    names.emplace_back(text == nullptr ? "\xff" : std::string(text, size));
    const bool ascii = std::all_of(names.back().begin(), names.back().end(),
                                   [](char c) { return static_cast<signed char>(c) >= 0; });
    if (!ascii && !strange.is_valid()) {
      strange = nb::borrow(name);
    }
  };
  if (PyUnicode_Check(values.ptr()) != 0) {
    append(values);
  } else if (is_iterable(values)) {
    for_each(values, append);
  } else {
    all_text = false;
  }
  if (!all_text) {
    refuse_argument(PyExc_TypeError, field, "a sequence of str", text_of(values),
                    "pass names");
  }
  if (strange.is_valid()) {
    refuse_argument(PyExc_ValueError, field, "names in ASCII", text_of(strange),
                    "correct the name");
  }
  return names;
}

std::optional<bool> find_truth(nb::handle value) {
  static kept_object numpy_bool;
  const nb::handle type = value.type();
  if (PyLong_Check(value.ptr()) != 0) {  // also a bool
    const wide_int number = to_wide(value);
    return number == 0 || number == 1 ? std::optional<bool>(number == 1) : std::nullopt;
  }
  if (type.is(numpy_bool.get([] { return nb::module_::import_("numpy").attr("bool_"); }))) {
    return PyObject_IsTrue(value.ptr()) == 1;
  }
  return std::nullopt;
}

nb::object find_filtered(nb::handle text) {
  const nb::object dpctl = nb::module_::import_("dpctl");
  const nb::object failure = dpctl.attr("SyclDeviceCreationError");
  const nb::object plain = checked(PyUnicode_FromObject(text.ptr()));
  // dpctl reads only up to the first zero character.
  const nb::object zero = checked(PyUnicode_FromStringAndSize("\0", 1));
  if (PyUnicode_Contains(plain.ptr(), zero.ptr()) != 0) {
    return {};
  }
  return attempt({failure.ptr(), PyExc_ValueError},
                 [&] { return nb::object(dpctl.attr("SyclDevice")(plain)); })
      .value_or(nb::object());
}

bool names_device_type(nb::handle device, DLDeviceType type) {
  if (PyTuple_Check(device.ptr()) == 0 || PyTuple_Size(device.ptr()) != 2) {
    return false;
  }
  const auto named =
      attempt({PyExc_TypeError}, [&] { return to_index(PyTuple_GetItem(device.ptr(), 0)); });
  return named && to_wide(*named) == type;
}

std::int32_t read_device_id(nb::handle device) {
  if (PyTuple_Check(device.ptr()) != 0) {
    if (!names_device_type(device, kDLOneAPI)) {
      refuse_argument(PyExc_ValueError, "device", "(14, device_id)", text_of(device),
                      "pass the pair that __dlpack_device__ gives");
    }
    return read_int32("device", PyTuple_GetItem(device.ptr(), 1));
  }
  nb::object meant = nb::borrow(device);
  if (PyUnicode_Check(device.ptr()) != 0) {
    meant = find_filtered(device);
    if (!meant.is_valid()) {
      refuse_argument(PyExc_ValueError, "device", "the filter string of a device",
                      text_of(device), "`python -m usm_dlpack devices` shows them");
    }
  }
  const auto* found = detail::in_dpctl<sycl::device>(meant);
  if (found == nullptr) {
    const nb::object index =
        nb::steal(PyBool_Check(device.ptr()) != 0 ? nullptr : PyNumber_Index(device.ptr()));
    PyErr_Clear();
    const wide_int value = index.is_valid() ? to_wide(index) : -1;
    const std::string number =
        value >= 0 && value <= INT32_MAX ? std::string(detail::digits(value)) : "device_id";
    refuse_argument(PyExc_TypeError, "device",
                    "(14, device_id), a filter string or a dpctl.SyclDevice", text_of(device),
                    "pass (14, " + number + ")");
  }
  return device_id(*found);
}

}  // namespace usm_dlpack::python
