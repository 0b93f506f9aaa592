// SPDX-License-Identifier: Apache-2.0
//
// DLPack's dtypes to and from their names, NumPy's dtypes and array-interface strings.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// A dtype, and how its elements stand in memory.
struct element_type {
  DLDataType dtype{};
  subbyte storage = subbyte::packed;

  std::int64_t bits() const noexcept { return detail::bits_per_element(dtype, storage); }
};

/// A DLDataType of numbers that fit.
constexpr DLDataType to_dtype(int code, int bits, int lanes) noexcept {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
          static_cast<std::uint16_t>(lanes)};
}

/// `float32`, `bfloat16`, `float32x4` for four lanes; `code3bits64` where DLPack has no name.
std::string dtype_name(DLDataType dtype);

/// The dtype of one of DLPack's names, of a tuple (code, bits, lanes), or of anything that
/// NumPy takes for a dtype. "float128" is of 128 bits, and not NumPy's padded one of 80. Types
/// of ml_dtypes with fewer than 8 bits are padded.
/// @throws nb::python_error TypeError if DLPack has no such dtype
element_type read_dtype(nb::handle dtype);

/// The dtype of one of NumPy's that is of ml_dtypes and that DLPack has.
std::optional<element_type> find_ml_dtype(nb::handle dtype);

/// NumPy's dtype of an array of such numbers, which NumPy does not export; an invalid object
/// for anything else. @throws conversion_error `dtype_unsupported` for another byte order
nb::object find_ml_array(nb::handle x);

/// The dtype of an array interface's type string, and its size in bytes.
/// @throws nb::python_error also what NumPy raises for a string that is none
std::pair<DLDataType, std::int64_t> read_typestr(nb::handle typestr);

/// NumPy's dtype where it or ml_dtypes has one of the same layout, otherwise the name.
nb::object to_python(element_type element);

/// The array interface's type string. @throws nb::python_error AttributeError if there is none
std::string to_typestr(DLDataType dtype);

/// A new NumPy array for the elements of a tensor, and its address.
/// @throws conversion_error if NumPy has no such dtype
std::pair<nb::object, void*> make_numpy(element_type element, nb::handle shape);

/// Adds what Python code asks of dtypes to the module.
void register_dtypes(nb::module_& module);

}  // namespace usm_dlpack::python
