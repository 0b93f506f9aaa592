// SPDX-License-Identifier: Apache-2.0
//
// Which dtypes DLPack has, and how their elements stand in memory: how far apart, and how
// aligned.
#pragma once

#include <usm_dlpack/dtype.hpp>

#include <cstdint>

namespace usm_dlpack {

/// How the elements of fewer than 8 bits stand in memory: `flag::is_subbyte_type_padded`.
enum class subbyte { packed, padded };

namespace detail {

/// Bits between neighbours of stride 1, at most 255 * 65535.
constexpr std::int64_t bits_per_element(DLDataType dtype, subbyte storage) noexcept {
  const std::int64_t bits = storage == subbyte::padded && dtype.bits < 8 ? 8 : dtype.bits;
  return bits * dtype.lanes;
}

/// Whether code, bits and lanes are a dtype of DLPack 1.3 whose scalars are whole bytes.
constexpr bool has_whole_bytes(DLDataType dtype) noexcept {
  return dtype.code < type_code_count && dtype.lanes != 0 && dtype.bits % 8 == 0 &&
         (type_code_rows[dtype.code].bytes >> (dtype.bits / 8) & 1) != 0;
}

/// Whether code, bits and lanes are a dtype of DLPack 1.3.
constexpr bool dtype_is_known(DLDataType dtype) noexcept {
  return detail::has_whole_bytes(dtype) ||
         (dtype.code < type_code_count && dtype.lanes != 0 && dtype.bits < 8 &&
          (type_code_rows[dtype.code].few_bits >> dtype.bits & 1) != 0);
}

/// The bits of an address that are 0 where an element is aligned to its scalar: those below
/// the largest power of two that divides the scalar's width in bytes, at most 16. (The vector
/// of `lanes` needs no more: the type that a kernel reads it by is not known here.)
/// @pre the dtype is known
constexpr std::uintptr_t alignment_mask(DLDataType dtype) noexcept {
  const unsigned bits = dtype.code == kDLComplex ? dtype.bits / 2U : dtype.bits;
  return ((bits - 1U) & ~bits) >> 3U;
}

}  // namespace detail
}  // namespace usm_dlpack
