// SPDX-License-Identifier: Apache-2.0
#include "array_interface.hpp"

#include "process.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace usm_dlpack::python {
namespace {

/// Interned names, which dictionaries and types find soonest.
struct interface_names {
  PyObject* interface = PyUnicode_InternFromString("__sycl_usm_array_interface__");
  PyObject* version = PyUnicode_InternFromString("version");
  PyObject* data = PyUnicode_InternFromString("data");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* strides = PyUnicode_InternFromString("strides");
  PyObject* typestr = PyUnicode_InternFromString("typestr");
  PyObject* offset = PyUnicode_InternFromString("offset");
  PyObject* syclobj = PyUnicode_InternFromString("syclobj");
  /// Where arrays name the memory that they are a part of: those of dpctl.tensor and
  /// dpnp.tensor, those that are made like NumPy's, and those of dpnp.
  PyObject* memory[3] = {PyUnicode_InternFromString("usm_data"),
                         PyUnicode_InternFromString("base"), data};

  static const interface_names& get() {
    static const interface_names names;
    return names;
  }
};

constexpr int longest_chain = 64;  // of views of views

bool is_dpctl_memory(nb::handle object) {
  static kept_object kept;
  const nb::handle kinds = kept.get([] {
    const nb::object memory = nb::module_::import_("dpctl.memory");
    return nb::make_tuple(memory.attr("MemoryUSMDevice"), memory.attr("MemoryUSMHost"),
                          memory.attr("MemoryUSMShared"));
  });
  const int answer = PyObject_IsInstance(object.ptr(), kinds.ptr());
  if (answer < 0) {
    throw nb::python_error();
  }
  return answer == 1;
}

[[noreturn]] void refuse_field(PyObject* type, const std::string& found) {
  PyErr_SetString(type, found.c_str());
  throw nb::python_error();
}

nb::object required(nb::handle interface, PyObject* name) {
  return checked(PyObject_GetItem(interface.ptr(), name));
}

/// A field, or an invalid object where it is not.
nb::object optional(nb::handle interface, PyObject* name) {
  PyObject* const found = PyDict_GetItemWithError(interface.ptr(), name);
  if (found == nullptr && PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  return nb::borrow(found);
}

bool is_known_version(nb::handle version) {
  if (PyLong_CheckExact(version.ptr()) != 0) {
    return to_wide(version) == 1;
  }
  try {
    const nb::object same =
        checked(PyObject_RichCompare(version.ptr(), nb::int_(1).ptr(), Py_EQ));
    const int answer = PyObject_IsTrue(same.ptr());
    if (answer < 0) {
      throw nb::python_error();
    }
    return answer == 1;
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ValueError)) {  // of a NumPy array
      throw;
    }
    return false;
  }
}

/// The address as Python's int; the flag goes to `made`.
nb::object read_data(nb::handle data, array_interface& made) {
  try {
    const auto [address, flag] = to_pair(data);
    nb::object number = checked(PyNumber_Index(address.ptr()));
    const int readonly = PyObject_IsTrue(flag.ptr());
    if (readonly < 0) {
      throw nb::python_error();
    }
    made.readonly = readonly == 1;
    return number;
  } catch (const nb::python_error& error) {
    if (!is_wrong_value(error)) {
      throw;
    }
  }
  refuse_field(PyExc_ValueError, "the data " + text_of(data));
}

wide_int read_offset(nb::handle offset) {
  PyObject* const number = PyNumber_Index(offset.ptr());
  if (number == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Clear();
    refuse_field(PyExc_TypeError, "the offset " + text_of(offset));
  }
  return to_wide(checked(number));
}

constexpr wide_int one_past_addresses = wide_int{1} << 64;

bool is_address(wide_int address) noexcept {
  return address >= 0 && address < one_past_addresses;
}

/// Sets where the bytes begin and end. What is beyond all addresses is far enough.
void find_span(array_interface& made) {
  const std::vector<std::int64_t>& shape = made.shape.values;
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  wide_int low = 0;
  wide_int count = empty ? 0 : 1;
  for (std::size_t r = 0; r < shape.size() && !empty; ++r) {
    if (!made.strides) {
      count = std::min(count * std::max<std::int64_t>(shape[r], 0), one_past_addresses - 1);
    } else {
      const wide_int reach = (wide_int{shape[r]} - 1) * made.strides->values[r];
      low = std::max(low + std::min(reach, wide_int{0}), -one_past_addresses);
      count = std::min(count + (reach < 0 ? -reach : reach), one_past_addresses - 1);
    }
  }
  made.begin = made.first() + low * made.itemsize;
  made.end = made.begin + count * made.itemsize;
}

void read_fields(nb::handle interface, array_interface& made) {
  const interface_names& names = interface_names::get();
  const nb::object version = required(interface, names.version);
  if (!is_known_version(version)) {
    refuse_field(PyExc_ValueError, "the version " + text_of(version));
  }
  const nb::object address = read_data(required(interface, names.data), made);
  made.shape = read_integers("shape", required(interface, names.shape));
  const nb::object strides = optional(interface, names.strides);
  if (strides.is_valid() && !strides.is_none()) {
    made.strides = read_integers("strides", strides);
  }
  const nb::object typestr = required(interface, names.typestr);
  const nb::object offset = optional(interface, names.offset);
  made.offset = offset.is_valid() ? read_offset(offset) : 0;
  made.syclobj = required(interface, names.syclobj);
  if (!is_address(to_wide(address))) {
    refuse_field(PyExc_ValueError, "the address " + text_of(address));
  }
  made.data = static_cast<std::uintptr_t>(to_wide(address));
  if (PyUnicode_Check(typestr.ptr()) == 0) {  // NumPy reads None as float64
    refuse_field(PyExc_TypeError, "the typestr " + text_of(typestr));
  }
  if (made.strides && made.strides->values.size() != made.shape.values.size()) {
    refuse_field(PyExc_ValueError,
                 std::to_string(made.strides->values.size()) + " strides for " +
                     std::to_string(made.shape.values.size()) + " dimensions");
  }
  std::tie(made.element.dtype, made.itemsize) = read_typestr(typestr);
  made.bits = 8 * made.itemsize;
  if (!is_address(made.first())) {
    refuse_field(PyExc_ValueError,
                 "the offset " + text_of(offset) + ", which leads to no address");
  }
  find_span(made);
}

/// The text of an exception.
std::string text_of_error(const nb::python_error& error) {
  const nb::object text = nb::str(error.value());
  const char* plain = PyUnicode_AsUTF8AndSize(text.ptr(), nullptr);
  PyErr_Clear();  // of lone surrogates
  return plain == nullptr ? text_of(text) : plain;
}

/// What the interface says, and for dtypes for which it has no words.
array_interface read_tensor(nb::handle object) {
  check_ready(object);
  const tensor& source = *nb::inst_ptr<tensor>(object);
  const DLTensor described = source.get();
  array_interface made;
  made.own = &source;
  made.data = reinterpret_cast<std::uintptr_t>(described.data);
  made.element = {source.dtype(), detail::storage_of(source.flags())};
  made.readonly = source.readonly();
  made.shape.values.assign(source.shape(), source.shape() + source.ndim());
  made.strides.emplace().values.assign(source.strides(), source.strides() + source.ndim());
  made.bits = made.element.bits();
  made.itemsize = (made.bits + 7) / 8;
  made.begin = source.proof().structure().lowest;
  made.end = made.begin + source.proof().structure().nbytes;
  return made;
}

nb::object find_interface(nb::handle object) {
  PyObject* const name = interface_names::get().interface;
  nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (found.is_valid()) {
    return found;
  }
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
    throw nb::python_error();
  }
  nb::python_error raised;
  if (PyObject_HasAttr(object.type().ptr(), name) == 1) {  // the object says why it has none
    const std::string text = text_of_error(raised);
    nb::raise_from(raised, PyExc_TypeError, "%s", text.c_str());
  }
  return nb::none();
}

/// The memory that an array says it is a part of, if its first element is there.
bool find_memory(nb::object& object, array_interface& base) {
  for (PyObject* const name : interface_names::get().memory) {
    try {
      const nb::object memory = checked(PyObject_GetAttr(object.ptr(), name));
      array_interface found = read_array_interface(memory);
      found.shape.check("shape", 0);
      if (found.begin <= base.first() && base.first() <= found.end) {
        object = memory;
        base = std::move(found);
        return true;
      }
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) {
        throw;
      }
    } catch (const conversion_error&) {  // of a tensor without memory
    }
  }
  return false;
}

}  // namespace

bool array_interface::is_compact() const noexcept {
  const std::vector<std::int64_t>& extents = shape.values;
  if (!strides || std::find(extents.begin(), extents.end(), 0) != extents.end()) {
    return true;
  }
  wide_int expected = 1;
  for (std::size_t r = extents.size(); r-- > 0;) {
    if (extents[r] != 1 && strides->values[r] != expected) {
      return false;
    }
    expected *= extents[r];  // at most 2^126: it was an int64_t
  }
  return true;
}

array_interface read_array_interface(nb::handle object) {
  if (has_tensor_type(object)) {
    return read_tensor(object);
  }
  const nb::object interface = find_interface(object);
  if (PyDict_Check(interface.ptr()) == 0) {
    refuse_argument(PyExc_TypeError, "obj", "an object with __sycl_usm_array_interface__",
                    "one of type " + name_of_type(object),
                    "pass dpctl.memory or a dpnp array, or use from_dlpack");
  }
  array_interface made;
  try {
    read_fields(interface, made);
  } catch (nb::python_error& error) {
    const bool missing = error.matches(PyExc_KeyError);
    if (!missing && !is_wrong_value(error)) {
      throw;
    }
    const std::string text = (missing ? "none of " : "") + text_of_error(error);
    nb::raise_from(
        error, PyExc_ValueError,
        "__sycl_usm_array_interface__: expected data, shape, strides, typestr, "
        "version 1 and syclobj as dpctl documents them, found %s; correct the object "
        "that offers it",
        text.c_str());
  }
  // dpctl.memory says True of memory that everybody may write.
  made.readonly = made.readonly && !is_dpctl_memory(object);
  return made;
}

byte_range bytes_behind(nb::handle object, const array_interface& base) {
  nb::object holder = nb::borrow(object);
  array_interface found;
  const array_interface* last = &base;
  for (int i = 0; i < longest_chain; ++i) {
    if (has_tensor_type(holder) || is_dpctl_memory(holder)) {
      break;
    }
    if (i == 0) {
      found = base;
      last = &found;
    }
    if (!find_memory(holder, found)) {
      break;
    }
  }
  return {static_cast<std::uintptr_t>(std::max(last->begin, wide_int{0})),
          static_cast<std::uintptr_t>(std::min(last->end, one_past_addresses - 1))};
}

nb::object resolve_syclobj(nb::handle syclobj) {
  if (detail::in_dpctl<sycl::queue>(syclobj) != nullptr ||
      detail::in_dpctl<sycl::context>(syclobj) != nullptr ||
      PyType_Check(syclobj.ptr()) != 0) {
    return nb::borrow(syclobj);
  }
  if (PyUnicode_Check(syclobj.ptr()) == 0) {
    const nb::object get = nb::getattr(syclobj, "_get_capsule", nb::none());
    return get.is_none() ? nb::borrow(syclobj) : get();
  }
  check_process();
  const nb::object device = find_filtered(syclobj);
  if (!device.is_valid()) {
    refuse_argument(PyExc_ValueError, "syclobj", "the filter string of a device",
                    text_of(syclobj), "correct the object that offers it");
  }
  return nb::module_::import_("dpctl").attr("SyclContext")(device);
}

void register_array_interface(nb::module_& module) {
  module.def(
      "to_integers", [](nb::handle values) { return read_integers("shape", values).values; },
      nb::arg("values").none(), nb::sig("def to_integers(values: typing.Any) -> list[int]"));
  module.def(
      "read_array_interface",
      [](nb::handle object) {
        const array_interface found = read_array_interface(object);
        const byte_range bytes = bytes_behind(object, found);
        nb::dict fields;
        fields["data"] = found.data;
        fields["shape"] = found.shape.values;
        fields["strides"] = found.strides ? nb::cast(found.strides->values) : nb::none();
        fields["offset"] = from_wide(found.offset);
        fields["itemsize"] = found.itemsize;
        fields["syclobj"] = found.own == nullptr ? found.syclobj : place_of(*found.own);
        fields["bytes"] = nb::make_tuple(bytes.first, bytes.second);
        return fields;
      },
      nb::arg("obj").none(),
      nb::sig("def read_array_interface(obj: typing.Any) -> dict[str, typing.Any]"));
}

}  // namespace usm_dlpack::python
