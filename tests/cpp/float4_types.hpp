// SPDX-License-Identifier: Apache-2.0
//
// A user's element types of fewer than 8 bits: one that stands in a byte of its own, which
// only a managed tensor's flags can say, and two that share a byte.
#pragma once

#include <usm_dlpack/core/dtype.hpp>

#include <cstdint>

namespace usm_dlpack_test {

struct padded_float4 {
  std::uint8_t bits;
};
struct packed_float4 {
  std::uint8_t bits;
};

}  // namespace usm_dlpack_test

template <>
struct usm_dlpack::data_type_of<usm_dlpack_test::padded_float4> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 1};
};
template <>
struct usm_dlpack::data_type_of<usm_dlpack_test::packed_float4> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 2};
};
