// SPDX-License-Identifier: Apache-2.0
//
// What the documentation says of a DLTensor, written without the headers under test: numbers
// of 128 bits instead of overflow checks, every element visited instead of a formula.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

namespace usm_dlpack_fuzz {

__extension__ typedef __int128 wide;
using usm_dlpack::errc;

constexpr errc none{};
constexpr wide two_to_63 = static_cast<wide>(1) << 63;
constexpr wide two_to_64 = static_cast<wide>(1) << 64;

/// Ends the program with a sentence, which the fuzzer reports together with the input.
inline void require(bool holds, const char* sentence) {
  if (!holds) {
    std::fprintf(stderr, "the oracle disagrees: %s\n", sentence);
    std::abort();
  }
}

/// A number that stands for every one that is too large.
inline wide limited(wide value) {
  const wide end = static_cast<wide>(1) << 66;
  return value > end ? end : value < -end ? -end : value;
}

/// A product, limited: of three factors `wide` may not hold it.
inline wide limited_product(wide a, wide b) {
  wide product = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &product);
  return limited(overflows ? ((a < 0) == (b < 0) ? static_cast<wide>(1) << 100
                                                 : -(static_cast<wide>(1) << 100))
                           : product);
}

/// The tensor's own view of itself.
struct described_tensor {
  std::vector<wide> shape;
  std::vector<wide> strides;
  wide element_bits = 0;
  bool empty = false;
  wide count = 1;         ///< elements, or a number too large
  wide lowest_index = 0;  ///< of the elements, relative to the first
  wide highest_index = 0;
  wide first = 0;  ///< addresses
  wide lowest = 0;
  wide past_end = 0;
};

inline bool oracle_knows_dtype(DLDataType dtype) {
  if (dtype.lanes == 0 || dtype.bits == 0) return false;
  const bool whole_bytes = dtype.bits % 8 == 0;
  switch (dtype.code) {
    case 0:
    case 1:
    case 3: return whole_bytes || dtype.bits == 1 || dtype.bits == 2 || dtype.bits == 4;
    case 2: return whole_bytes && dtype.bits > 8;
    case 4: return dtype.bits == 16;
    case 5: return whole_bytes && (dtype.bits / 8) % 2 == 0 && dtype.bits > 16;
    case 6: return dtype.bits == 8;
    case 15:
    case 16: return dtype.bits == 6;
    case 17: return dtype.bits == 4;
    default: return dtype.code < 15 && dtype.bits == 8;
  }
}

inline wide oracle_alignment(DLDataType dtype) {
  const int bits = dtype.code == 5 ? dtype.bits / 2 : dtype.bits;
  for (const int bytes : {16, 8, 4, 2}) {
    if (bits % (8 * bytes) == 0) return bytes;
  }
  return 1;
}

/// @pre ndim and shape are valid
inline described_tensor describe(const DLTensor& tensor, bool padded) {
  described_tensor d;
  const auto ndim = static_cast<std::size_t>(tensor.ndim);
  for (std::size_t r = 0; r < ndim; ++r) {
    d.shape.push_back(tensor.shape[r]);
    d.empty = d.empty || tensor.shape[r] == 0;
  }
  d.strides.assign(ndim, 0);
  wide product = 1;
  for (std::size_t r = ndim; r-- > 0;) {
    d.strides[r] = tensor.strides == nullptr ? product : wide{tensor.strides[r]};
    product = limited(product * (d.shape[r] == 0          ? 1
                                 : d.shape[r] > two_to_63 ? two_to_63
                                                          : d.shape[r]));
    product = product > two_to_63 ? two_to_63 : product;
  }
  d.element_bits = wide{padded && tensor.dtype.bits < 8 ? 8 : tensor.dtype.bits} *
                   static_cast<wide>(tensor.dtype.lanes);
  d.count = d.empty ? 0 : product;
  d.first = static_cast<wide>(reinterpret_cast<std::uintptr_t>(tensor.data)) +
            static_cast<wide>(tensor.byte_offset);
  for (std::size_t r = 0; r < ndim && !d.empty; ++r) {
    const wide reach = (d.shape[r] - 1) * d.strides[r];
    wide& end = reach < 0 ? d.lowest_index : d.highest_index;
    end = limited(end + limited(reach));
  }
  const auto down = [](wide bits) { return bits >= 0 ? bits / 8 : -((7 - bits) / 8); };
  d.lowest = d.first + down(d.lowest_index * d.element_bits);
  d.past_end = d.empty ? d.first : d.first + down((d.highest_index + 1) * d.element_bits + 7);
  return d;
}

/// The first documented rule of `check_structure` that a tensor breaks.
inline errc broken_structure_rule(const DLTensor& tensor, bool padded) {
  if (tensor.ndim < 0) return errc::ndim_out_of_range;
  if (tensor.ndim > 0 && tensor.shape == nullptr) return errc::shape_null;
  if (!oracle_knows_dtype(tensor.dtype)) return errc::dtype_unsupported;
  for (int r = 0; r < tensor.ndim; ++r) {
    if (tensor.shape[r] < 0) return errc::shape_negative;
  }
  const described_tensor d = describe(tensor, padded);
  if (tensor.data == nullptr) return d.empty ? none : errc::data_null;
  if (d.first >= two_to_64) return errc::span_overflow;
  if (d.empty) return none;
  // Offsets are counted in an int64_t: of bytes, or of bits where elements share bytes.
  const wide unit = d.element_bits % 8 == 0 ? d.element_bits / 8 : d.element_bits;
  const wide rounding = d.element_bits % 8 == 0 ? 0 : 7;
  if (d.lowest_index * unit < -two_to_63 ||
      (d.highest_index + 1) * unit + rounding >= two_to_63 || d.lowest <= 0 ||
      d.past_end >= two_to_64 || d.past_end - d.lowest >= two_to_63) {
    return errc::span_overflow;
  }
  return d.first % oracle_alignment(tensor.dtype) == 0 ? none : errc::data_misaligned;
}

/// The index of every element relative to the first, in C order. @pre `count` is small
inline std::vector<wide> all_indices(const described_tensor& d) {
  std::vector<wide> indices;
  if (d.empty) return indices;
  indices.push_back(0);
  for (std::size_t r = 0; r < d.shape.size(); ++r) {
    std::vector<wide> finer;
    for (const wide index : indices) {
      for (wide i = 0; i < d.shape[r]; ++i) finer.push_back(index + i * d.strides[r]);
    }
    indices = finer;
  }
  return indices;
}

}  // namespace usm_dlpack_fuzz
