// SPDX-License-Identifier: Apache-2.0
//
// What DLPack says of each type code, and the names of dtypes that messages print.
#pragma once

#include <usm_dlpack/error.hpp>

#include <cstdint>
#include <string>

namespace usm_dlpack {
namespace detail {

/// What DLPack says of a type code.
struct type_code_row {
  const char* name;
  std::uint8_t bits;          ///< its only width; 0: it has several
  std::uint32_t bytes;        ///< bit n: it may be n bytes wide
  std::uint8_t few_bits = 0;  ///< bit n: it may be n bits wide, n < 8
};

/// Indexed by `DLDataType::code`; source: `DLDataTypeCode`, dlpack.h 1.3. Widths that DLPack
/// leaves open are taken in whole bytes, and below a byte as 1, 2 or 4 bits.
inline constexpr type_code_row type_code_rows[] = {
    {"int", 0, 0xfffffffe, 0x16},
    {"uint", 0, 0xfffffffe, 0x16},
    {"float", 0, 0xfffffffc},
    {"opaque_handle", 0, 0xfffffffe, 0x16},
    {"bfloat", 16, 0x4},
    {"complex", 0, 0x55555550},
    {"bool", 8, 0x2},
    {"float8_e3m4", 8, 0x2},
    {"float8_e4m3", 8, 0x2},
    {"float8_e4m3b11fnuz", 8, 0x2},
    {"float8_e4m3fn", 8, 0x2},
    {"float8_e4m3fnuz", 8, 0x2},
    {"float8_e5m2", 8, 0x2},
    {"float8_e5m2fnuz", 8, 0x2},
    {"float8_e8m0fnu", 8, 0x2},
    {"float6_e2m3fn", 6, 0, 0x40},
    {"float6_e3m2fn", 6, 0, 0x40},
    {"float4_e2m1fn", 4, 0, 0x10},
};
inline constexpr std::uint8_t type_code_count = 18;
static_assert(sizeof(type_code_rows) / sizeof(type_code_rows[0]) == type_code_count);

}  // namespace detail

/// The name of a dtype with its raw numbers, as messages print it:
/// `float32 (code 2, bits 32, lanes 1)`.
inline std::string to_string(DLDataType dtype) {
  std::string name = "unknown";
  if (dtype.code < detail::type_code_count) {
    const detail::type_code_row row = detail::type_code_rows[dtype.code];
    name = row.name;
    const bool says_width = row.bits == dtype.bits && dtype.code != kDLBfloat;
    name += says_width ? "" : std::to_string(dtype.bits);
  }
  const std::string lanes = std::to_string(dtype.lanes);
  if (dtype.lanes != 1) {
    name.append("x").append(lanes);  // g++ 12 warns of "x" + lanes in C++20 at -O3
  }
  name.append(" (code ").append(std::to_string(dtype.code));
  name.append(", bits ").append(std::to_string(dtype.bits));
  return name.append(", lanes ").append(lanes).append(")");
}

}  // namespace usm_dlpack
