// SPDX-License-Identifier: Apache-2.0
#include "arguments/dtypes.hpp"

#include <nanobind/stl/string.h>

#include <cstdio>
#include <cstring>

namespace usm_dlpack::python {
namespace {

/// A kind of number that NumPy has: the letter in its type strings, and the widths.
struct numpy_kind {
  char letter;
  std::uint8_t code;
  std::uint8_t narrowest;  ///< the fewest bits in NumPy; the other widths are doublings
  std::uint8_t widest;
  std::uint8_t smallest_named;  ///< the fewest bits in a name of DLPack
};
constexpr numpy_kind numpy_kinds[] = {{'i', kDLInt, 8, 64, 1},
                                      {'u', kDLUInt, 8, 64, 1},
                                      {'f', kDLFloat, 16, 64, 16},
                                      {'c', kDLComplex, 64, 128, 32},
                                      {'b', kDLBool, 8, 8, 8}};

const numpy_kind* find_kind(std::uint8_t code) noexcept {
  for (const numpy_kind& kind : numpy_kinds) {
    if (kind.code == code) {
      return &kind;
    }
  }
  return nullptr;
}

bool has_width(const numpy_kind& kind, unsigned bits) noexcept {
  return bits >= kind.narrowest && bits <= kind.widest && (bits & (bits - 1)) == 0;
}

/// DLPack's name of a dtype of one lane, or an empty string.
std::string find_scalar_name(std::uint8_t code, std::uint8_t bits) {
  if (code >= detail::type_code_count) {
    return {};
  }
  const detail::type_code_row& row = detail::type_code_rows[code];
  if (row.bits != 0) {
    return row.bits != bits ? "" : code == kDLBfloat ? "bfloat16" : row.name;
  }
  const numpy_kind* kind = find_kind(code);
  return kind != nullptr && bits >= kind->smallest_named ? row.name + std::to_string(bits)
                                                         : std::string();
}

/// Reads DLPack's name of a dtype of one lane.
std::optional<DLDataType> find_scalar(const std::string& name) {
  for (std::uint8_t code = 0; code < detail::type_code_count; ++code) {
    const detail::type_code_row& row = detail::type_code_rows[code];
    unsigned bits = row.bits;
    if (bits == 0) {
      const std::size_t length = std::strlen(row.name);
      if (name.compare(0, length, row.name) != 0 ||
          std::sscanf(name.c_str() + length, "%3u", &bits) != 1) {
        continue;
      }
    }
    const auto width = static_cast<std::uint8_t>(bits);
    if (bits < 256 && find_scalar_name(code, width) == name) {
      return DLDataType{code, width, 1};
    }
  }
  return std::nullopt;
}

/// Reads a name as `dtype_name` gives it.
std::optional<DLDataType> find_named(const std::string& name) {
  std::optional<DLDataType> read = find_scalar(name);  // first: complex32 has an x
  const std::size_t x = name.rfind('x');
  unsigned lanes = 0;
  if (!read && x != std::string::npos &&
      std::sscanf(name.c_str() + x + 1, "%5u", &lanes) == 1 && lanes < 65536) {
    read = find_scalar(name.substr(0, x));
    if (read) {
      read->lanes = static_cast<std::uint16_t>(lanes);
      if (lanes == 0 || dtype_name(*read) != name) {
        read.reset();
      }
    }
  }
  return read;
}

/// Imports ml_dtypes, so that NumPy knows bfloat16, float8_e5m2 and so on. @return false if it
/// is not installed
bool register_ml_dtypes() {
  return checked_unless(PyExc_ImportError, PyImport_ImportModule("ml_dtypes")).is_valid();
}

/// The NumPy dtype that an object means; an invalid object if NumPy refuses it.
nb::object find_as_numpy(nb::handle dtype) {
  static imported made_by{"numpy", "dtype"};
  return checked_unless(PyExc_Exception, PyObject_CallFunctionObjArgs(made_by.get().ptr(),
                                                                      dtype.ptr(), nullptr));
}

/// Reads a tuple of three integers, if the fields of a DLDataType can hold them.
std::optional<DLDataType> find_parts(nb::handle dtype) {
  if (PyTuple_Check(dtype.ptr()) == 0 || PyTuple_Size(dtype.ptr()) != 3) {
    return std::nullopt;
  }
  std::int64_t parts[3];
  for (Py_ssize_t i = 0; i < 3; ++i) {
    const std::optional<std::int64_t> part = find_integer(PyTuple_GetItem(dtype.ptr(), i));
    if (!part) {
      return std::nullopt;
    }
    parts[i] = *part;
  }
  const auto [code, bits, lanes] = parts;
  if (code < 0 || code > 255 || bits < 1 || bits > 255 || lanes < 1 || lanes > 65535) {
    return std::nullopt;
  }
  return DLDataType{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
                    static_cast<std::uint16_t>(lanes)};
}

/// The text of a str, or nothing for another object or a text that is not UTF-8.
std::optional<std::string> find_text(nb::handle object) {
  if (PyUnicode_Check(object.ptr()) == 0) {
    return std::nullopt;
  }
  const nb::object bytes =
      checked_unless(PyExc_UnicodeError, PyUnicode_AsUTF8String(object.ptr()));
  if (!bytes.is_valid()) {
    return std::nullopt;
  }
  return std::string(PyBytes_AsString(bytes.ptr()),
                     static_cast<std::size_t>(PyBytes_Size(bytes.ptr())));
}

/// The text of a dtype of NumPy. NumPy also names its long double "float128", which is another
/// number in DLPack.
std::string text_of_dtype(nb::handle numpy_dtype) {
  const bool is_long = find_text(nb::object(numpy_dtype.attr("char"))) == std::string("g");
  return text_of(numpy_dtype) + (is_long ? ", C's long double" : "");
}

imported numpy_array_class{"numpy", "ndarray"};

/// An array as `numpy.asarray` exports it; an invalid object if a class has a `__dlpack__` of
/// its own.
nb::object find_exported_by_numpy(nb::handle x) {
  static imported asarray{"numpy", "asarray"};
  const bool is_numpys =
      is_instance(x, numpy_array_class) &&
      x.type().attr("__dlpack__").is(numpy_array_class.get().attr("__dlpack__"));
  return is_numpys ? asarray.get()(x) : nb::object();
}

/// Refuses an array of NumPy whose strides do not count elements, such as a field of
/// structures. Strides of extents 0 and 1 count nothing.
void check_strides(nb::handle array, const char* field) {
  const nb::tuple shape(array.attr("shape"));
  const nb::tuple strides(array.attr("strides"));
  const auto number = [](nb::handle value) { return nb::cast<std::int64_t>(value); };
  const std::int64_t size = number(array.attr("itemsize"));
  for (std::size_t r = 0; r < shape.size(); ++r) {
    if (number(shape[r]) > 1 && number(strides[r]) % size != 0) {
      detail::refuse(errc::layout_mismatch, "strides", "multiples of the itemsize",
                     text_of(strides) + " bytes for " + std::to_string(size),
                     std::string("pass numpy.ascontiguousarray(") + field + ")");
    }
  }
}

/// Refuses an array whose values under a mask NumPy would export, too.
[[noreturn]] void refuse_mask(nb::handle x, const char* field) {
  detail::refuse(errc::copy_needed, field, "elements as they stand in memory",
                 text_of_type(x) + ", whose mask would be lost",
                 std::string("pass ") + field + ".filled(value), or numpy.asarray(" + field +
                     ") to drop the mask");
}

/// Refuses an array of a class that derives from NumPy's and has a mask.
void check_unmasked(nb::handle x, const char* field) {
  static PyObject* const mask = PyUnicode_InternFromString("mask");
  if (is_instance(x, numpy_array_class) && !x.type().is(numpy_array_class.get()) &&
      type_has(x, mask)) {
    refuse_mask(x, field);
  }
}

}  // namespace

std::string dtype_name(DLDataType dtype) {
  std::string name = find_scalar_name(dtype.code, dtype.bits);
  if (name.empty()) {
    name = "code" + std::to_string(dtype.code) + "bits" + std::to_string(dtype.bits);
  }
  return dtype.lanes == 1 ? name : name.append("x").append(std::to_string(dtype.lanes));
}

element_type read_dtype(nb::handle dtype) {
  const char* const remedy = "pass for example numpy.float32 or 'bfloat16'";
  const std::optional<std::string> text = find_text(dtype);
  const std::optional<DLDataType> named = text ? find_named(*text) : find_parts(dtype);
  if (named && !detail::dtype_is_known(*named)) {
    detail::refuse(errc::dtype_unsupported, "dtype", "a dtype of DLPack 1.3",
                   to_string(*named), remedy);
  }
  if (named) {
    return {*named};
  }
  // NumPy reads None as float64.
  const nb::object numpy_dtype = dtype.is_none() ? nb::object() : find_as_numpy(dtype);
  if (!numpy_dtype.is_valid()) {
    refuse_argument(nb::exception_type::type_error, "dtype",
                    "one of NumPy's or DLPack's dtypes", text_of(dtype), remedy);
  }
  const std::optional<element_type> element = find_element(numpy_dtype);
  if (!element) {
    refuse_argument(nb::exception_type::type_error, "dtype",
                    "a bool or a number in native byte order", text_of_dtype(numpy_dtype),
                    remedy);
  }
  return {element->dtype, text ? subbyte::packed : element->storage};
}

std::optional<element_type> find_typestr_element(nb::handle typestr) {
  if (PyUnicode_Check(typestr.ptr()) == 0) {  // NumPy reads None as float64
    return std::nullopt;
  }
  const nb::object numpy_dtype = find_as_numpy(typestr);
  return numpy_dtype.is_valid() ? find_element(numpy_dtype) : std::nullopt;
}

std::optional<element_type> find_element(nb::handle numpy_dtype) {
  constexpr std::int64_t first_of_users = 256;
  const nb::object native = numpy_dtype.attr("isnative");
  const std::optional<std::int64_t> number = find_integer(nb::object(numpy_dtype.attr("num")));
  if (!native.is(Py_True) || !number) {
    return std::nullopt;
  }
  if (*number >= first_of_users) {  // of ml_dtypes, perhaps
    const std::optional<std::string> name =
        find_text(nb::object(numpy_dtype.attr("type").attr("__name__")));
    const auto dtype = name ? find_scalar(*name) : std::nullopt;
    if (!dtype) {
      return std::nullopt;
    }
    return element_type{*dtype, dtype->bits < 8 ? subbyte::padded : subbyte::packed};
  }
  const std::optional<std::string> letter = find_text(nb::object(numpy_dtype.attr("kind")));
  const auto bytes = find_integer(nb::object(numpy_dtype.attr("itemsize")));
  for (const numpy_kind& kind : numpy_kinds) {
    if (letter == std::string(1, kind.letter) && *bytes <= kind.widest / 8) {
      return element_type{{kind.code, static_cast<std::uint8_t>(8 * *bytes), 1}};
    }
  }
  return std::nullopt;  // for example long double, whose numbers have 80 bits
}

nb::object find_numpy_dtype(element_type element) {
  const nb::str name(dtype_name(element.dtype).c_str());
  nb::object numpy_dtype = find_as_numpy(name);
  if (!numpy_dtype.is_valid() && register_ml_dtypes()) {
    numpy_dtype = find_as_numpy(name);
  }
  const std::optional<element_type> same =
      numpy_dtype.is_valid() ? find_element(numpy_dtype) : std::nullopt;
  const bool fits = same && same_data_type(same->dtype, element.dtype) &&
                    (same->dtype.bits >= 8 || same->storage == element.storage);
  return fits ? numpy_dtype : nb::object();
}

std::string to_typestr(DLDataType dtype, const char* field) {
  const numpy_kind* kind = find_kind(dtype.code);
  if (kind == nullptr || dtype.lanes != 1 || !has_width(*kind, dtype.bits)) {
    refuse_argument(nb::exception_type::attribute_error, field,
                    "a dtype that has a type string", dtype_name(dtype),
                    "exchange the array through DLPack");
  }
  return std::string(dtype.bits == 8 ? "|" : "<") + kind->letter +
         std::to_string(dtype.bits / 8);
}

numpy_array make_numpy_array(element_type element, nb::handle shape, const char* other) {
  static imported empty{"numpy", "empty"};
  const nb::object dtype = find_numpy_dtype(element);
  if (!dtype.is_valid()) {
    const bool is_packed = element.dtype.bits < 8 && element.storage == subbyte::packed;
    detail::refuse(
        errc::dtype_unsupported, "dtype", "one that NumPy or ml_dtypes has",
        std::string(is_packed ? "packed " : "") + dtype_name(element.dtype),
        register_ml_dtypes() ? other : std::string("install ml_dtypes, or ") + other);
  }
  nb::object array = empty.get()(shape, dtype);
  const nb::object data = array.attr("__array_interface__")["data"];
  return {array, PyLong_AsVoidPtr(nb::object(data[0]).ptr())};
}

exportable make_exportable(nb::handle x, const char* field) {
  check_unmasked(x, field);
  const nb::object exported = find_exported_by_numpy(x);
  if (!exported.is_valid()) {
    return {nb::borrow(x), {}};
  }
  const nb::object dtype = exported.attr("dtype");
  std::optional<element_type> element = find_element(dtype);
  if (!element) {
    detail::refuse(errc::dtype_unsupported, "dtype",
                   "a bool or a number of DLPack's, in native byte order",
                   text_of_dtype(dtype),
                   dtype.attr("names").is_none() ? "convert the array with astype"
                                                 : "pass one field, such as "
                                                   "numpy.ascontiguousarray(x['name'])");
  }
  check_strides(exported, field);
  const nb::object module = dtype.attr("type").attr("__module__");
  if (PyUnicode_Check(module.ptr()) == 0 ||
      PyUnicode_CompareWithASCIIString(module.ptr(), "ml_dtypes") != 0) {
    return {nb::borrow(x), {}};
  }
  const std::string bits = "u" + std::to_string(element->bits() / 8);
  return {exported.attr("view")(bits), element};
}

exportable make_values_exportable(nb::handle values) {
  static imported asarray{"numpy", "asarray"};
  static imported memoryview{"builtins", "memoryview"};
  const auto refuse = [&] {
    refuse_argument(nb::exception_type::type_error, "values", "an array", text_of_type(values),
                    "pass for example a NumPy array or a DLPackTensor");
  };
  nb::object array = nb::borrow(values);
  const nb::object method = find_attribute(values, "__dlpack__", PyExc_AttributeError);
  if (PyType_Check(values.ptr()) != 0 ||
      (method.is_valid() && PyCallable_Check(method.ptr()) == 0)) {
    refuse();
  }
  if (!method.is_valid()) {
    try {
      const nb::object interface =
          find_attribute(values, "__array_interface__", PyExc_AttributeError);
      if (!interface.is_valid()) {
        array = memoryview.get()(values);
      } else if (PyDict_Check(interface.ptr()) != 0 &&
                 !nb::object(interface.attr("get")("mask")).is_none()) {
        refuse_mask(values, "values");
      }
      array = asarray.get()(array);
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError) &&
          !error.matches(PyExc_BufferError)) {
        throw;
      }
      refuse();
    }
  }
  return make_exportable(array, "values");
}

}  // namespace usm_dlpack::python
