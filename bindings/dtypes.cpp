// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

#include "arguments.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace usm_dlpack::python {
namespace {

/// Whether a type code's names end in the width: int8, float32, complex64.
constexpr bool is_numbered(std::uint8_t code) noexcept {
  return code == kDLInt || code == kDLUInt || code == kDLFloat || code == kDLComplex;
}

/// The name of a code with a fixed width: bfloat16, bool, float8_e5m2; or "".
std::string special_name(std::uint8_t code, std::uint8_t bits) {
  if (code >= detail::type_code_count || bits == 0 ||
      detail::type_code_rows[code].bits != bits) {
    return {};
  }
  return detail::type_code_rows[code].name + std::string(code == kDLBfloat ? "16" : "");
}

/// Makes a dtype if its fields can hold the numbers.
std::optional<DLDataType> fit_dtype(wide_int code, wide_int bits, wide_int lanes) {
  const bool fits =
      0 <= code && code <= 255 && 0 < bits && bits <= 255 && 0 < lanes && lanes <= 65535;
  return fits ? std::optional<DLDataType>(to_dtype(
                    static_cast<int>(code), static_cast<int>(bits), static_cast<int>(lanes)))
              : std::nullopt;
}

/// The dtype of a name without lanes. Formats the dtype again to check the whole name.
std::optional<DLDataType> find_scalar(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const int last = std::atoi(name.substr(digits, 4).c_str());
  for (std::uint8_t code = 0; code < detail::type_code_count; ++code) {
    const int own = detail::type_code_rows[code].bits;
    const int least = code == kDLFloat ? 16 : code == kDLComplex ? 32 : 1;
    const auto found = fit_dtype(code, own != 0 ? own : last, 1);
    if (found && found->bits >= least && dtype_name(*found) == name) {
      return found;
    }
  }
  int code = -1;
  std::sscanf(name.c_str(), "code%3d", &code);
  const auto found = fit_dtype(code, last, 1);
  return found && dtype_name(*found) == name ? found : std::nullopt;
}

/// The dtype whose `dtype_name` this is.
std::optional<DLDataType> find_named(const std::string& name) {
  std::optional<DLDataType> found = find_scalar(name);
  const std::size_t x = name.rfind('x');  // not the x of complex32
  if (!found && x != std::string::npos && (found = find_scalar(name.substr(0, x)))) {
    found = fit_dtype(found->code, found->bits, std::atoi(name.substr(x + 1, 6).c_str()));
    return found && dtype_name(*found) == name ? found : std::nullopt;
  }
  return found;
}

std::string text_in(nb::handle text) {
  Py_ssize_t size = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  PyErr_Clear();  // lone surrogates
  return characters == nullptr ? std::string()
                               : std::string(characters, static_cast<std::size_t>(size));
}

/// Reads a tuple of three integers that fit a DLDataType.
std::optional<DLDataType> find_tuple(nb::handle dtype) {
  if (PyTuple_Check(dtype.ptr()) == 0 || PyTuple_Size(dtype.ptr()) != 3) {
    return std::nullopt;
  }
  wide_int parts[3];
  for (Py_ssize_t i = 0; i < 3; ++i) {
    const nb::handle part = PyTuple_GetItem(dtype.ptr(), i);
    if (PyLong_CheckExact(part.ptr()) == 0) {
      return std::nullopt;
    }
    parts[i] = to_wide(part);
  }
  return fit_dtype(parts[0], parts[1], parts[2]);
}

nb::handle numpy_dtype() {
  static kept_object kept;
  return kept.get([] { return nb::module_::import_("numpy").attr("dtype"); });
}

/// Calls `numpy.dtype`. @throws nb::python_error TypeError or ValueError
nb::object to_numpy_dtype(nb::handle dtype) {
  // NumPy parses strings as Python: "i4,," raises SyntaxError.
  if (auto found =
          attempt({PyExc_SyntaxError}, [&] { return nb::object(numpy_dtype()(dtype)); })) {
    return *std::move(found);
  }
  PyErr_SetString(PyExc_TypeError, ("the data type " + text_of(dtype)).c_str());
  throw nb::python_error();
}

/// Imports ml_dtypes, if installed, so that NumPy knows bfloat16, float8_e5m2 and so on.
bool register_ml_dtypes() {
  return attempt({PyExc_ImportError}, [] { return nb::module_::import_("ml_dtypes"); })
      .has_value();
}

/// Whether ml_dtypes may have a dtype that NumPy lacks.
bool is_of_ml_dtypes(DLDataType dtype) {
  return dtype.lanes == 1 &&
         (is_numbered(dtype.code)
              ? dtype.bits < 8 || (dtype.code == kDLComplex && dtype.bits == 32)
              : dtype.code != kDLBool && !special_name(dtype.code, dtype.bits).empty());
}

/// NumPy's own numbers, of 8, 16, 32, ... bits. Its wider floats are padded x87 numbers.
struct numpy_kind {
  char kind;
  int code, least, most;
};
constexpr numpy_kind numpy_kinds[] = {{'i', kDLInt, 8, 64},
                                      {'u', kDLUInt, 8, 64},
                                      {'f', kDLFloat, 16, 64},
                                      {'c', kDLComplex, 64, 128},
                                      {'b', kDLBool, 8, 8}};

/// The row for a kind or a code, and a width; null if there is none.
const numpy_kind* find_kind(char kind, int code, std::int64_t bits) {
  const auto* found =
      std::find_if(std::begin(numpy_kinds), std::end(numpy_kinds), [&](const numpy_kind& row) {
        return (row.kind == kind || row.code == code) && bits >= row.least &&
               bits <= row.most && (bits & (bits - 1)) == 0;
      });
  return found == std::end(numpy_kinds) ? nullptr : found;
}
const numpy_kind* find_kind(DLDataType dtype) {
  return dtype.lanes == 1 ? find_kind('\0', dtype.code, dtype.bits) : nullptr;
}
std::optional<DLDataType> find_kind(char kind, std::int64_t bytes) {
  const numpy_kind* row = bytes <= 16 ? find_kind(kind, -1, 8 * bytes) : nullptr;
  return row == nullptr ? std::nullopt : fit_dtype(row->code, 8 * bytes, 1);
}

std::string text_attribute(nb::handle object, const char* name) {
  return nb::str(nb::getattr(object, name)).c_str();
}

bool is_native(nb::handle dtype) { return nb::getattr(dtype, "isnative").is(Py_True); }

element_type from_numpy(nb::handle dtype) {
  const bool native = is_native(dtype);
  if (const auto found = native ? find_ml_dtype(dtype) : std::nullopt) {
    return *found;
  }
  const auto bytes = nb::cast<std::int64_t>(nb::getattr(dtype, "itemsize"));
  const std::optional<DLDataType> found =
      native ? find_kind(text_attribute(dtype, "kind")[0], bytes) : std::nullopt;
  if (!found) {
    refuse_argument(PyExc_TypeError, "dtype", "a bool or a number in native byte order",
                    text_of(dtype), "convert the array or reinterpret its memory");
  }
  return {*found};
}

nb::object make_python(element_type element) {
  const DLDataType dtype = element.dtype;
  const std::string name = dtype_name(dtype);
  const nb::object plain = nb::str(name.c_str());
  if (dtype.lanes != 1) {
    return plain;
  }
  if (is_of_ml_dtypes(dtype)) {
    register_ml_dtypes();
  } else if (find_kind(dtype) == nullptr) {
    return plain;  // NumPy's float128 is a padded x87 number
  }
  const auto found =
      attempt({PyExc_TypeError}, [&] { return nb::object(numpy_dtype()(plain)); });
  return found && 8 * nb::cast<std::int64_t>(found->attr("itemsize")) == element.bits()
             ? *found
             : plain;
}

}  // namespace

std::string dtype_name(DLDataType dtype) {
  const std::string bits = std::to_string(dtype.bits);
  std::string name = is_numbered(dtype.code) ? detail::type_code_rows[dtype.code].name + bits
                                             : special_name(dtype.code, dtype.bits);
  if (name.empty()) {
    name.append("code").append(std::to_string(dtype.code)).append("bits").append(bits);
  }
  return dtype.lanes == 1 ? name : name.append("x").append(std::to_string(dtype.lanes));
}

std::optional<element_type> find_ml_dtype(nb::handle dtype) {
  const nb::object module = nb::getattr(nb::getattr(dtype, "type"), "__module__");
  if (PyUnicode_Check(module.ptr()) == 0 || text_in(module) != "ml_dtypes") {
    return std::nullopt;
  }
  const std::optional<DLDataType> named = find_named(text_attribute(dtype, "name"));
  if (!named || !is_of_ml_dtypes(*named)) {
    return std::nullopt;
  }
  return element_type{*named, named->bits < 8 ? subbyte::padded : subbyte::packed};
}

nb::object find_ml_array(nb::handle x) {
  static kept_object array;
  const nb::handle type =
      array.get([] { return nb::module_::import_("numpy").attr("ndarray"); });
  if (PyType_IsSubtype(Py_TYPE(x.ptr()), reinterpret_cast<PyTypeObject*>(type.ptr())) == 0) {
    return {};
  }
  nb::object dtype = nb::getattr(x, "dtype");
  if (!find_ml_dtype(dtype)) {
    return {};
  }
  if (!is_native(dtype)) {
    detail::refuse(errc::dtype_unsupported, "dtype", "a number in native byte order",
                   text_of(dtype), "convert the array, or reinterpret its memory");
  }
  return dtype;
}

element_type read_dtype(nb::handle dtype) {
  const bool text = PyUnicode_Check(dtype.ptr()) != 0;
  if (const auto found = text ? find_named(text_in(dtype)) : find_tuple(dtype)) {
    return {*found};
  }
  const auto numpy =
      attempt({PyExc_TypeError, PyExc_ValueError}, [&] { return to_numpy_dtype(dtype); });
  if (!numpy) {
    refuse_argument(PyExc_TypeError, "dtype", "one of NumPy's or DLPack's dtypes",
                    text_of(dtype), "pass for example numpy.float32 or 'bfloat16'");
  }
  const element_type found = from_numpy(*numpy);
  // Elements of a dtype given by name are packed.
  return text ? element_type{found.dtype} : found;
}

std::pair<DLDataType, std::int64_t> read_typestr(nb::handle typestr) {
  const std::string text = text_in(typestr);
  // SYCL's hosts are little-endian.
  if (text.size() > 2 && (text[0] == '<' || text[0] == '|')) {
    const int bytes = std::atoi(text.c_str() + 2);
    const auto found = find_kind(text[1], bytes);
    if (found && text.compare(1, text.npos, to_typestr(*found), 1) == 0) {
      return {*found, bytes};
    }
  }
  const nb::object numpy = to_numpy_dtype(typestr);
  return {from_numpy(numpy).dtype, nb::cast<std::int64_t>(nb::getattr(numpy, "itemsize"))};
}

nb::object to_python(element_type element) {
  static PyObject* const known = PyDict_New();
  const DLDataType dtype = element.dtype;
  const bool padded = element.storage == subbyte::padded;
  const nb::object key = nb::int_(
      ((dtype.code * 256U + dtype.bits) * 2U + (padded ? 1U : 0U)) * 65536ULL + dtype.lanes);
  static nb::ft_mutex guard;
  {
    const nb::ft_lock_guard lock(guard);
    if (PyObject* const found = PyDict_GetItemWithError(known, key.ptr())) {
      return nb::borrow(found);
    }
  }
  nb::object made = make_python(element);
  const nb::ft_lock_guard lock(guard);
  if (PyDict_Size(known) < 256 && PyDict_Contains(known, key.ptr()) == 0) {
    PyDict_SetItem(known, key.ptr(), made.ptr());
  }
  return made;
}

std::string to_typestr(DLDataType dtype) {
  const numpy_kind* row = find_kind(dtype);
  if (row == nullptr) {
    refuse_argument(PyExc_AttributeError, "__sycl_usm_array_interface__",
                    "a dtype that has a type string", dtype_name(dtype),
                    "exchange the array through DLPack");
  }
  return (dtype.bits == 8 ? "|" : "<") + std::string(1, row->kind) +
         std::to_string(dtype.bits / 8);
}

std::pair<nb::object, void*> make_numpy(element_type element, nb::handle shape) {
  const nb::object dtype = to_python(element);
  if (PyUnicode_Check(dtype.ptr()) != 0) {
    const bool named = is_of_ml_dtypes(element.dtype);
    const bool missing = named && !register_ml_dtypes();
    const bool small = named && element.dtype.bits < 8 && !missing;
    detail::refuse(
        errc::dtype_unsupported, "dtype",
        small ? "one whose elements have a byte each" : "one that NumPy or ml_dtypes has",
        dtype_name(element.dtype),
        std::string(missing ? "install ml_dtypes, or take the bytes" : "take the bytes") +
            " with __dlpack__(dl_device=(1, 0))");
  }
  const nb::object values = nb::module_::import_("numpy").attr("empty")(shape, dtype);
  const auto address = nb::cast<std::uintptr_t>(values.attr("ctypes").attr("data"));
  return {values, reinterpret_cast<void*>(address)};
}

void register_dtypes(nb::module_& module) {
  module.def(
      "dtype_name",
      [](int code, int bits, int lanes) { return dtype_name(to_dtype(code, bits, lanes)); },
      nb::arg("code"), nb::arg("bits"), nb::arg("lanes"));
  module.def(
      "read_dtype",
      [](nb::handle dtype) {
        const element_type found = read_dtype(dtype);
        return std::make_tuple(found.dtype.code, found.dtype.bits, found.dtype.lanes,
                               found.storage == subbyte::padded);
      },
      nb::arg("dtype").none(),
      nb::sig("def read_dtype(dtype: typing.Any) -> tuple[int, int, int, bool]"));
}

}  // namespace usm_dlpack::python
