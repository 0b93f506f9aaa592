// SPDX-License-Identifier: Apache-2.0
#include "array_interface.hpp"

#include <algorithm>
#include <limits>

namespace usm_dlpack::python {
namespace {

constexpr const char* interface_name = "__sycl_usm_array_interface__";

/// Wide enough for sums of addresses and sizes. Each term is limited to `farthest`.
__extension__ using wide = __int128;
constexpr wide farthest = wide{1} << 100;
constexpr wide address_count = wide{1} << 64;

wide limited(wide value) { return std::clamp(value, -farthest, farthest); }

/// Whether `find_integer` may have read an integer beyond int64_t.
bool is_limit(std::int64_t read) {
  return read == std::numeric_limits<std::int64_t>::max() ||
         read == std::numeric_limits<std::int64_t>::min();
}

/// The product of extents, limited to `farthest`.
wide count_of(const std::vector<std::int64_t>& shape) {
  wide count = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) {
      return 0;
    }
    count = count > farthest / extent ? farthest : count * extent;
  }
  return count;
}

/// An array as an object describes it.
struct described_array {
  array_view view;
  // The addresses of the lowest element and of the end of the highest. They may lie outside
  // the address space.
  wide begin = 0;
  wide end = 0;
};

described_array read_tensor(nb::handle object) {
  const proved_tensor& own = ready_tensor(object).get();
  const DLTensor& described = own.described;
  const tensor_structure& spanned = own.structure();
  const auto data = reinterpret_cast<std::uintptr_t>(described.data);
  const std::size_t ndim = own.ndim();
  described_array read;
  read.view = {data,
               {},
               data,
               {described.shape, described.shape + ndim},
               std::vector(described.strides, described.strides + ndim),
               {described.dtype, own.storage()},
               own.readonly(),
               {}};
  read.begin = spanned.lowest;
  read.end = read.begin + spanned.nbytes;
  return read;
}

[[noreturn]] void refuse_object(nb::handle object) {
  const char* remedy = "pass dpctl.memory or a dpnp array";
  if (PyCapsule_CheckExact(object.ptr()) != 0) {
    remedy = "use from_dlpack(x)";
  } else if (type_has(object, nb::str("__dlpack__"))) {
    remedy = "use from_dlpack(x, device=(14, 0)), which copies host memory";
  } else if (PyLong_Check(object.ptr()) != 0) {
    remedy =
        "for memory at an address, make an object as in docs/how-to/dpctl.md, \"An address and "
        "an owner\"";
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

/// The names of the fields, interned; never destroyed.
struct field_names {
  nb::handle data = PyUnicode_InternFromString("data");
  nb::handle shape = PyUnicode_InternFromString("shape");
  nb::handle strides = PyUnicode_InternFromString("strides");
  nb::handle typestr = PyUnicode_InternFromString("typestr");
  nb::handle offset = PyUnicode_InternFromString("offset");
  nb::handle version = PyUnicode_InternFromString("version");
  nb::handle syclobj = PyUnicode_InternFromString("syclobj");
};

const field_names& fields_named() {
  static const field_names interned;
  return interned;
}

/// A field of an array interface, or an invalid object. The field is kept alive, because a
/// value that is read may remove others.
nb::object find_field(const nb::dict& fields, nb::handle name) {
  PyObject* found = PyDict_GetItemWithError(fields.ptr(), name.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  return nb::borrow(found);
}

nb::object read_field(const nb::dict& fields, nb::handle name) {
  nb::object field = find_field(fields, name);
  if (!field.is_valid()) {
    refuse_interface("no " + text_of(name));
  }
  return field;
}

/// Whether an object equals 1. If comparing it fails, as for an array, it does not.
bool is_one(nb::handle version) {
  static PyObject* const one = PyLong_FromLong(1);
  const int equal = PyObject_RichCompareBool(version.ptr(), one, Py_EQ);
  if (equal < 0) {
    static_cast<void>(checked_unless(PyExc_Exception, nullptr));
  }
  return equal == 1;
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

described_array read_fields(const nb::dict& fields) {
  described_array read;
  array_view& view = read.view;
  if (const nb::object version = read_field(fields, fields_named().version);
      !is_one(version)) {
    refuse_interface("the version " + text_of(version));
  }
  nb::object data = read_field(fields, fields_named().data);
  if (PyList_Check(data.ptr()) != 0) {
    data = checked(PyList_AsTuple(data.ptr()));
  }
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
  view.shape = read_sequence("shape", read_field(fields, fields_named().shape), 0);
  const nb::object strides = find_field(fields, fields_named().strides);
  if (strides.is_valid() && !strides.is_none()) {
    view.strides = read_sequence("strides", strides, std::numeric_limits<std::int64_t>::min());
    if (view.strides->size() != view.shape.size()) {
      refuse_interface(std::to_string(view.strides->size()) + " strides for " +
                       std::to_string(view.shape.size()) + " dimensions");
    }
  }
  const nb::object typestr = read_field(fields, fields_named().typestr);
  const std::optional<element_type> element = find_typestr_element(typestr);
  if (!element) {
    refuse_interface("the typestr " + text_of(typestr));
  }
  view.element = *element;
  const wide itemsize = view.element.bits() / 8;
  const nb::object offset = find_field(fields, fields_named().offset);
  const std::optional<std::int64_t> elements =
      offset.is_valid() ? find_integer(offset) : std::optional<std::int64_t>(0);
  const wide first = view.data + elements.value_or(0) * itemsize;
  if (!elements || is_limit(*elements) || first < 0 || first >= address_count) {
    refuse_interface("the offset " + text_of(offset));
  }
  view.first = static_cast<std::uintptr_t>(first);
  view.syclobj = read_field(fields, fields_named().syclobj);
  wide low = 0;
  wide count = count_of(view.shape);
  if (count != 0 && view.strides) {
    wide high = 0;
    for (std::size_t r = 0; r < view.shape.size(); ++r) {
      const wide reach = wide{view.shape[r] - 1} * (*view.strides)[r];
      wide& side = reach < 0 ? low : high;
      side = limited(side + limited(reach));
    }
    count = high - low + 1;
  }
  read.begin = first + low * itemsize;
  read.end = read.begin + count * itemsize;
  return read;
}

described_array read_object(nb::handle object) {
  if (has_tensor_type(object)) {
    return read_tensor(object);
  }
  static PyObject* const name = PyUnicode_InternFromString(interface_name);
  const nb::object interface = find_attribute(object, nb::handle(name));
  if (!interface.is_valid() || PyDict_Check(interface.ptr()) == 0) {
    refuse_object(object);
  }
  described_array read = read_fields(nb::borrow<nb::dict>(interface));
  // dpctl.memory reports writable memory as read-only.
  read.view.readonly = read.view.readonly && !is_dpctl_memory(object);
  return read;
}

/// The memory that an array is a part of.
struct whole_memory {
  nb::object object;
  described_array array;
};

std::optional<whole_memory> find_memory_of(nb::handle object, std::uintptr_t first) {
  // The attributes that hold an array's memory: the first in dpctl.tensor and dpnp.tensor, the
  // second in arrays like NumPy's, the third in dpnp.
  for (const char* name : {"usm_data", "base", "data"}) {
    try {
      nb::object memory = find_attribute(object, name, PyExc_Exception);
      if (!memory.is_valid()) {
        continue;
      }
      described_array read = read_object(memory);
      if (read.begin <= first && first <= read.end) {
        return whole_memory{std::move(memory), std::move(read)};
      }
    } catch (const nb::builtin_exception&) {  // the attribute is no memory
    } catch (const conversion_error&) {
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) {
        throw;
      }
    }
  }
  return std::nullopt;
}

/// The bytes of an object, or of the memory that it is a part of and that holds its first
/// element.
byte_range bytes_behind(nb::handle object, const described_array& array) {
  constexpr int longest_chain = 64;
  wide begin = array.begin;
  wide end = array.end;
  nb::object owner = nb::borrow(object);
  for (int i = 0; i < longest_chain && !has_tensor_type(owner) && !is_dpctl_memory(owner);
       ++i) {
    std::optional<whole_memory> found = find_memory_of(owner, array.view.first);
    if (!found) {
      break;
    }
    owner = std::move(found->object);
    begin = found->array.begin;
    end = found->array.end;
  }
  return {static_cast<std::uintptr_t>(std::max(begin, wide{0})),
          static_cast<std::uintptr_t>(std::min(end, address_count - 1))};
}

bool is_in_c_order(const array_view& view) {
  if (!view.strides || count_of(view.shape) == 0) {
    return true;
  }
  wide expected = 1;
  for (std::size_t r = view.shape.size(); r-- > 0;) {
    if (view.shape[r] != 1 && (*view.strides)[r] != expected) {
      return false;
    }
    expected = limited(expected * view.shape[r]);
  }
  return true;
}

/// The number of elements of a type in all bytes after an offset.
/// @pre the array is in C order without gaps
std::int64_t count_after(const array_view& view, const element_type& element,
                         std::int64_t offset, nb::handle byte_offset) {
  const std::int64_t bits = element.bits();
  if (offset == 0 && bits == view.element.bits()) {
    return static_cast<std::int64_t>(
        std::min(count_of(view.shape), wide{std::numeric_limits<std::int64_t>::max()}));
  }
  const wide nbytes = limited((count_of(view.shape) * view.element.bits() + 7) / 8);
  const wide behind = nbytes - offset;
  if (behind < 0) {
    refuse_argument(nb::exception_type::value_error, "byte_offset",
                    "at most " + detail::digits(static_cast<std::uint64_t>(nbytes)) +
                        ", the bytes of the array",
                    text_of(byte_offset), "correct byte_offset");
  }
  if (behind * 8 % bits != 0) {
    refuse_argument(nb::exception_type::value_error, offset == 0 ? "dtype" : "byte_offset",
                    "whole elements of " + dtype_name(element.dtype) + " (" +
                        std::to_string(bits) + " bits) from byte " + std::to_string(offset) +
                        " on",
                    detail::digits(static_cast<std::uint64_t>(behind)) + " bytes",
                    "correct byte_offset or dtype, or pass each extent as shape");
  }
  return static_cast<std::int64_t>(
      std::min(behind * 8 / bits, wide{std::numeric_limits<std::int64_t>::max()}));
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
  const wide others = count_of(extents);
  if (others == 0 || all % others != 0) {
    refuse("extents whose product divides the " + std::to_string(all) + " elements");
  }
  *unknown = static_cast<std::int64_t>(all / others);
}

}  // namespace

bool is_dpctl_memory(nb::handle object) {
  static imported kinds[] = {{"dpctl.memory", "MemoryUSMDevice"},
                             {"dpctl.memory", "MemoryUSMShared"},
                             {"dpctl.memory", "MemoryUSMHost"}};
  return std::any_of(std::begin(kinds), std::end(kinds),
                     [&](const imported& kind) { return is_instance(object, kind); });
}

array_view read_array_view(nb::handle obj, nb::handle shape, nb::handle dtype,
                           nb::handle strides, nb::handle byte_offset) {
  described_array array = read_object(obj);
  array_view view = array.view;
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
    return count_after(array.view, view.element, offset, byte_offset);
  };
  const bool same =
      shape.is_none() && offset == 0 && view.element.bits() == array.view.element.bits();
  if (!same && strides.is_none() && !is_in_c_order(view)) {
    refuse_argument(nb::exception_type::value_error, "strides",
                    "one for each dimension, since the object is not in C order without gaps",
                    "none",
                    "pass shape and strides (in elements), or copy the object first by "
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
  const wide first = wide{view.first} + offset;
  if (is_limit(offset) || first < 0 || first >= address_count) {
    refuse_argument(nb::exception_type::value_error, "byte_offset",
                    "an offset within the address space", text_of(byte_offset),
                    "correct byte_offset");
  }
  view.first = static_cast<std::uintptr_t>(first);
  view.bytes = bytes_behind(obj, array);
  return view;
}

}  // namespace usm_dlpack::python
