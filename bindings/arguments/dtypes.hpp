// SPDX-License-Identifier: Apache-2.0
//
// DLPack's dtypes from and to names, NumPy's dtypes, and type strings of array interfaces. A
// new kind of NumPy goes in `numpy_kinds`, a new code of DLPack in core/dtype.hpp.
#pragma once

#include "arguments/arguments.hpp"

#include <usm_dlpack/core/dtype.hpp>

namespace usm_dlpack::python {

/// A dtype and its storage.
struct element_type {
  DLDataType dtype{};
  subbyte storage = subbyte::packed;

  std::int64_t bits() const noexcept { return detail::bits_per_element(dtype, storage); }
  std::uint64_t flags() const noexcept {
    return storage == subbyte::padded ? flag::is_subbyte_type_padded : 0;
  }
};

/// DLPack's name of a dtype: `float32`, `bfloat16`, `float32x4` for four lanes. For a dtype
/// without a name it is like `code3bits64`.
std::string dtype_name(DLDataType dtype);

/// Reads a name of DLPack's, a tuple (code, bits, lanes), or anything that NumPy accepts as a
/// dtype. A name means packed elements. "float128" has 128 bits, unlike NumPy's float of 80
/// bits, which is padded.
/// @throws conversion_error `dtype_unsupported` for a name or a tuple of a dtype that DLPack
///         lacks; nb::type_error for anything else
element_type read_dtype(nb::handle dtype);
/// The element type of a type string in an array interface, or nothing.
std::optional<element_type> find_typestr_element(nb::handle typestr);

/// The element type of a NumPy dtype, or nothing if it is no number in native byte order.
std::optional<element_type> find_element(nb::handle numpy_dtype);

/// The dtype of NumPy or ml_dtypes with the same layout, or an invalid object.
nb::object find_numpy_dtype(element_type element);

/// The type string for an array interface. @throws nb::attribute_error if there is none, so
/// that the object seems to have no interface
std::string to_typestr(DLDataType dtype, const char* field);

/// A new NumPy array, compact and writable.
struct numpy_array {
  nb::object array;
  void* data;
};
/// @param other the remedy for a dtype that NumPy does not have
/// @throws conversion_error `dtype_unsupported` for such a dtype
numpy_array make_numpy_array(element_type element, nb::handle shape, const char* other);

/// An array that can be exported through DLPack. If the export has another dtype of the same
/// width, `element` is the true one.
struct exportable {
  nb::object array;
  std::optional<element_type> element;
};
/// Makes an array exportable; `field` is its name in a refusal. NumPy does not export dtypes
/// of ml_dtypes, so their bits are exported as unsigned integers. Other arrays are returned
/// unchanged.
/// @throws conversion_error `copy_needed` for a masked array, `dtype_unsupported` for an array
///         of NumPy whose dtype DLPack lacks, such as one of another byte order,
///         `layout_mismatch` for one whose strides do not count elements
exportable make_exportable(nb::handle x, const char* field = "x");
/// The same, also for objects without `__dlpack__` that have an array interface or a buffer.
exportable make_values_exportable(nb::handle values);

}  // namespace usm_dlpack::python
