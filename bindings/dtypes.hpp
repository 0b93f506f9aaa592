// SPDX-License-Identifier: Apache-2.0
//
// DLPack's dtypes from and to names, NumPy's dtypes, and type strings of array interfaces.
#pragma once

#include "arguments.hpp"

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

/// DLPack's name: `float32`, `bfloat16`, `float32x4` for four lanes; `code3bits64` of what has
/// no name.
std::string dtype_name(DLDataType dtype);

/// Reads a name of DLPack's, a tuple (code, bits, lanes), or what NumPy takes for a dtype.
/// Elements of a dtype that is given by name are packed. "float128" has 128 bits, unlike
/// NumPy's padded float of 80.
/// @throws nb::type_error for a dtype that DLPack lacks
element_type read_dtype(nb::handle dtype);
/// The dtype of a type string in an array interface, or nothing.
std::optional<element_type> find_typestr_element(nb::handle typestr);

/// A NumPy dtype's element, or nothing if it is no number in native byte order.
std::optional<element_type> find_element(nb::handle numpy_dtype);

/// The dtype of NumPy or ml_dtypes with the same layout, or an invalid object.
nb::object find_numpy_dtype(element_type element);

/// The type string of an array interface. @throws nb::attribute_error if there is none, so
/// that the interface is missing
std::string to_typestr(DLDataType dtype, const char* field);

/// A new NumPy array, compact and writable.
struct numpy_array {
  nb::object array;
  void* data;
};
/// @throws conversion_error `dtype_unsupported` for a dtype that NumPy does not have
numpy_array make_numpy_array(element_type element, nb::handle shape);

/// An array that can be exported through DLPack, and its dtype if its export has only the
/// bits.
struct exportable {
  nb::object array;
  std::optional<element_type> element;
};
/// NumPy does not export dtypes of ml_dtypes: their bits are exported. Other arrays are
/// returned as they are. @throws conversion_error `dtype_unsupported` for another byte order
exportable make_exportable(nb::handle x);
/// Makes also objects without __dlpack__ exportable, which have an array interface or a
/// buffer.
/// @param expected the dtype, for a sentence
exportable make_values_exportable(nb::handle host, element_type expected);

}  // namespace usm_dlpack::python
