// SPDX-License-Identifier: Apache-2.0
//
// Conversions of DLPack's dtypes from and to names, NumPy's dtypes and type strings.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// A dtype and its storage.
struct element_type {
  DLDataType dtype{};
  subbyte storage = subbyte::packed;

  std::int64_t bits() const noexcept { return detail::bits_per_element(dtype, storage); }
};

constexpr DLDataType to_dtype(int code, int bits, int lanes) noexcept {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
          static_cast<std::uint16_t>(lanes)};
}

/// `float32`, `bfloat16`, `float32x4` for four lanes; `code3bits64` for unnamed ones.
std::string dtype_name(DLDataType dtype);

/// Reads a DLPack name, a tuple (code, bits, lanes), or anything that NumPy takes for a dtype.
/// "float128" has 128 bits, unlike NumPy's padded 80-bit float. Types of ml_dtypes with fewer
/// than 8 bits are padded.
/// @throws nb::python_error TypeError if DLPack has no such dtype
element_type read_dtype(nb::handle dtype);

/// The DLPack dtype of a NumPy dtype of ml_dtypes; nothing for other dtypes.
std::optional<element_type> find_ml_dtype(nb::handle dtype);

/// The dtype of a NumPy array of ml_dtypes numbers, which NumPy does not export; an invalid
/// object for anything else.
/// @throws conversion_error `dtype_unsupported` for another byte order
nb::object find_ml_array(nb::handle x);

/// The dtype of an array interface's type string, and its size in bytes.
/// @throws nb::python_error also what NumPy raises for an invalid string
std::pair<DLDataType, std::int64_t> read_typestr(nb::handle typestr);

/// The dtype of NumPy or ml_dtypes with the same layout; DLPack's name if there is none.
nb::object to_python(element_type element);

/// The array interface's type string. @throws nb::python_error AttributeError if it has none
std::string to_typestr(DLDataType dtype);

/// Makes a NumPy array with room for a tensor's elements; returns it and its address.
/// @throws conversion_error if NumPy has no such dtype
std::pair<nb::object, void*> make_numpy(element_type element, nb::handle shape);

void register_dtypes(nb::module_& module);

}  // namespace usm_dlpack::python
