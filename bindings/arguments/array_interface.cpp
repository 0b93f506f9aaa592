// SPDX-License-Identifier: Apache-2.0
#include "arguments/array_interface.hpp"

#include <algorithm>
#include <limits>

namespace usm_dlpack::python {
namespace {

/// Whether an object is a `dpctl.memory` of any USM kind.
bool is_dpctl_memory(nb::handle object) {
  static imported kinds[] = {{"dpctl.memory", "MemoryUSMDevice"},
                             {"dpctl.memory", "MemoryUSMShared"},
                             {"dpctl.memory", "MemoryUSMHost"}};
  return std::any_of(std::begin(kinds), std::end(kinds),
                     [&](const imported& kind) { return is_instance(object, kind); });
}

constexpr const char* interface_name = "__sycl_usm_array_interface__";

byte_range bytes_of(const tensor_structure& structure) {
  return {structure.lowest, structure.lowest + structure.nbytes};
}

/// The product of extents, at most INT64_MAX.
std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) {
      return 0;
    }
    if (__builtin_mul_overflow(count, extent, &count)) {
      count = std::numeric_limits<std::int64_t>::max();
    }
  }
  return count;
}

bool is_in_c_order(const array_view& view) {
  const auto ndim = view.shape.size();
  return !view.strides || count_of(view.shape) == 0 ||
         detail::compact_size(view.shape.data(), view.strides->data(), ndim, false) != 0;
}

array_view read_tensor(nb::handle object) {
  const proved_tensor& own = ready_tensor(object).get();
  const DLTensor& described = own.described;
  const auto data = reinterpret_cast<std::uintptr_t>(described.data);
  const std::size_t ndim = own.ndim();
  return {data,
          bytes_of(own.structure()),
          data,
          {described.shape, described.shape + ndim},
          std::vector(described.strides, described.strides + ndim),
          {described.dtype, own.storage()},
          own.readonly(),
          {}};
}

[[noreturn]] void refuse_object(nb::handle object) {
  const char* remedy = "pass dpctl.memory or a dpnp array";
  if (PyCapsule_CheckExact(object.ptr()) != 0) {
    remedy = "use from_dlpack(x)";
  } else if (type_has(object, nb::str("__dlpack__"))) {
    remedy = "use from_dlpack(x, device=(14, 0)), which also takes host memory";
  } else if (PyLong_Check(object.ptr()) != 0) {
    remedy = "for memory at an address, make such an object";
  } else if (numpy_converts(object)) {
    remedy =
        "pass dpctl.memory or a dpnp array, or copy with from_dlpack(numpy.asarray(x), "
        "device=(14, 0))";
  }
  refuse_argument(nb::exception_type::type_error, "obj",
                  std::string("an object with ") + interface_name,
                  "one of type " + name_of_type(object), remedy);
}

[[noreturn]] void refuse_interface(const std::string& found) {
  refuse_argument(
      nb::exception_type::value_error, interface_name,
      "data, shape, strides, typestr, version 1 and syclobj as dpctl documents them", found,
      "correct the object that offers it");
}

/// A field of an array interface, or an invalid object. The field is kept alive, because a
/// value that is read may remove others.
nb::object find_field(const nb::dict& fields, const char* name) {
  return fields.get(name, nb::handle());
}

nb::object read_field(const nb::dict& fields, const char* name) {
  nb::object field = find_field(fields, name);
  if (!field.is_valid()) {
    refuse_interface("no '" + std::string(name) + "'");
  }
  return field;
}

/// Reads an address. @return nothing if the object is no integer, or negative, or too large
std::optional<std::uintptr_t> find_address(nb::handle value) {
  const nb::object number = find_index(value);
  if (!number.is_valid()) {
    return std::nullopt;
  }
  const std::uintptr_t address = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) {
    static_cast<void>(checked_unless(PyExc_OverflowError, nullptr));
    return std::nullopt;
  }
  return address;
}

std::vector<std::int64_t> read_sequence(const char* field, nb::handle values,
                                        std::int64_t lowest) {
  auto read = find_integers(field, values, lowest);
  if (!read) {
    refuse_interface("the " + std::string(field) + " " + text_of(values));
  }
  return *std::move(read);
}

array_view read_fields(const nb::dict& fields) {
  array_view view;
  if (const nb::object version = read_field(fields, "version");
      find_integer(version, PyExc_Exception) != 1) {
    refuse_interface("the version " + text_of(version));
  }
  const nb::object data = read_field(fields, "data");
  const bool is_pair = PyTuple_Check(data.ptr()) != 0 && PyTuple_Size(data.ptr()) == 2;
  const auto address = is_pair ? find_address(PyTuple_GetItem(data.ptr(), 0)) : std::nullopt;
  if (!address) {
    refuse_interface("the data " + text_of(data));
  }
  view.data = *address;
  const int readonly = PyObject_IsTrue(PyTuple_GetItem(data.ptr(), 1));
  if (readonly < 0) {
    static_cast<void>(checked_unless(PyExc_Exception, nullptr));
    refuse_interface("the data " + text_of(data));
  }
  view.readonly = readonly == 1;
  view.shape = read_sequence("shape", read_field(fields, "shape"), 0);
  const nb::object strides = find_field(fields, "strides");
  if (strides.is_valid() && !strides.is_none()) {
    view.strides = read_sequence("strides", strides, std::numeric_limits<std::int64_t>::min());
    if (view.strides->size() != view.shape.size()) {
      refuse_interface(std::to_string(view.strides->size()) + " strides for " +
                       std::to_string(view.shape.size()) + " dimensions");
    }
  }
  const nb::object typestr = read_field(fields, "typestr");
  const std::optional<element_type> element = find_typestr_element(typestr);
  if (!element) {
    refuse_interface("the typestr " + text_of(typestr));
  }
  view.element = *element;
  const nb::object offset = find_field(fields, "offset");
  const std::optional<std::int64_t> elements =
      offset.is_valid() ? find_integer(offset) : std::optional<std::int64_t>(0);
  std::int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, view.element.bits() / 8, &bytes) ||
      __builtin_add_overflow(view.data, bytes, &view.first)) {
    refuse_interface("the offset " + text_of(offset));
  }
  view.syclobj = read_field(fields, "syclobj");
  view.bytes = bytes_of(check_structure(describe(view), view.element.storage));
  return view;
}

array_view read_object(nb::handle object) {
  if (has_tensor_type(object)) {
    return read_tensor(object);
  }
  static PyObject* const name = PyUnicode_InternFromString(interface_name);
  const nb::object interface = find_attribute(object, nb::handle(name));
  if (!interface.is_valid() || PyDict_Check(interface.ptr()) == 0) {
    refuse_object(object);
  }
  array_view view = read_fields(nb::borrow<nb::dict>(interface));
  // dpctl.memory reports writable memory as read-only.
  view.readonly = view.readonly && !is_dpctl_memory(object);
  return view;
}

/// The number of elements of a type in all bytes after an offset.
/// @pre the array is in C order without gaps
std::int64_t count_after(const array_view& view, const element_type& element,
                         std::int64_t offset, nb::handle byte_offset) {
  const std::int64_t bits = element.bits();
  if (offset == 0 && bits == view.element.bits()) {
    return count_of(view.shape);
  }
  const std::uintptr_t nbytes = view.bytes.end - view.bytes.begin;
  std::int64_t behind = 0;
  if (__builtin_sub_overflow(nbytes, offset, &behind) || behind < 0) {
    refuse_argument(nb::exception_type::value_error, "byte_offset",
                    "at most " + detail::digits(nbytes) + ", the bytes of the array",
                    text_of(byte_offset), "correct byte_offset");
  }
  // An object that claims more than an eighth of all addresses is refused by its bounds.
  behind = std::min(behind, std::numeric_limits<std::int64_t>::max() / 8);
  if (behind * 8 % bits != 0) {
    refuse_argument(nb::exception_type::value_error, offset == 0 ? "dtype" : "byte_offset",
                    "whole elements of " + dtype_name(element.dtype) + " (" +
                        std::to_string(bits) + " bits) from byte " + std::to_string(offset) +
                        " on",
                    std::to_string(behind) + " bytes",
                    "correct byte_offset or dtype, or pass each extent as shape");
  }
  return behind * 8 / bits;
}

/// Computes the extent that is -1, as `numpy.reshape` does.
/// @param count computes the number of all elements
template <class Count>
void fill_in_extent(std::vector<std::int64_t>& extents, nb::handle shape, const Count& count) {
  const auto unknown = std::find(extents.begin(), extents.end(), -1);
  if (unknown == extents.end()) {
    return;
  }
  const auto refuse = [&](const std::string& expected) {
    refuse_argument(nb::exception_type::value_error, "shape", expected, text_of(shape),
                    "correct shape");
  };
  if (std::count(extents.begin(), extents.end(), -1) != 1) {
    refuse("at most one extent of -1");
  }
  const std::int64_t all = count();
  *unknown = 1;
  const std::int64_t others = count_of(extents);
  if (others == 0 || all % others != 0) {
    refuse("extents whose product divides the " + std::to_string(all) + " elements");
  }
  *unknown = all / others;
}

}  // namespace

DLTensor describe(const array_view& view) {
  DLTensor described{};
  described.data = reinterpret_cast<void*>(view.first);
  described.ndim = static_cast<std::int32_t>(view.shape.size());
  described.shape = const_cast<std::int64_t*>(view.shape.data());
  described.strides = view.strides ? const_cast<std::int64_t*>(view.strides->data()) : nullptr;
  described.dtype = view.element.dtype;
  return described;
}

array_view read_array_view(nb::handle obj, nb::handle shape, nb::handle dtype,
                           nb::handle strides, nb::handle byte_offset) {
  const array_view array = read_object(obj);
  array_view view = array;
  const std::int64_t offset = read_integer("byte_offset", byte_offset);
  if (!dtype.is_none()) {
    view.element = read_dtype(dtype);
  }
  if (!strides.is_none() && shape.is_none() && (!dtype.is_none() || offset != 0)) {
    refuse_argument(nb::exception_type::value_error, "strides",
                    "a shape with them, since dtype or byte_offset is given", "none",
                    "pass shape too");
  }
  const auto count = [&] {
    if (!strides.is_none()) {
      refuse_argument(nb::exception_type::value_error, "shape",
                      "each extent, since strides are given", text_of(shape),
                      "replace -1 by the extent");
    }
    return count_after(array, view.element, offset, byte_offset);
  };
  const bool same =
      shape.is_none() && offset == 0 && view.element.bits() == array.element.bits();
  if (!same && strides.is_none() && !is_in_c_order(view)) {
    refuse_argument(nb::exception_type::value_error, "strides",
                    "one for each dimension, since the object is not in C order without gaps",
                    "none",
                    array.element.bits() % 8 != 0
                        ? "pass shape and strides (in elements)"
                        : "pass shape and strides (in elements), or copy the object first by "
                          "from_dlpack(x, order=\"C\")");
  }
  if (!shape.is_none()) {
    view.shape = read_integers("shape", shape, -1);
    fill_in_extent(view.shape, shape, count);
    view.strides.reset();
  } else if (!same) {
    view.shape = {count()};
    view.strides.reset();
  }
  if (!strides.is_none()) {
    view.strides = read_integers("strides", strides, std::numeric_limits<std::int64_t>::min());
    if (view.strides->size() != view.shape.size()) {
      refuse_argument(nb::exception_type::value_error, "strides",
                      std::to_string(view.shape.size()) + ", one for each dimension",
                      std::to_string(view.strides->size()),
                      "correct shape or strides (in elements)");
    }
  }
  if (__builtin_add_overflow(array.first, offset, &view.first)) {
    refuse_argument(nb::exception_type::value_error, "byte_offset",
                    "an offset within the address space", text_of(byte_offset),
                    "correct byte_offset");
  }
  return view;
}

}  // namespace usm_dlpack::python
