// SPDX-License-Identifier: Apache-2.0
//
// What the documentation says of a DLTensor, written without the headers under test: numbers
// of 128 bits instead of overflow checks, every element visited instead of a formula.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace usm_dlpack_fuzz {

__extension__ typedef __int128 wide;
using usm_dlpack::errc;
using numbers = std::vector<wide>;

/// A code, and the field that tells apart the rules of one code; without a field, any field.
using rule = std::pair<errc, std::string>;
const rule none{};
constexpr wide two_to_63 = static_cast<wide>(1) << 63;
constexpr wide two_to_64 = static_cast<wide>(1) << 64;

/// Ends the program with a sentence, which the fuzzer reports together with the input.
inline void require(bool holds, const char* sentence) {
  if (!holds) {
    std::fprintf(stderr, "the oracle disagrees: %s\n", sentence);
    std::abort();
  }
}

/// A product, or 2^63 if it is larger. @pre neither factor is above 2^64
inline wide product_of(wide a, wide b) { return std::min(a * b, two_to_63); }

/// The tensor's own view of itself.
struct described_tensor {
  numbers shape;
  numbers strides;
  wide element_bits = 0;
  bool empty = false;
  wide count = 1;         ///< elements, at most 2^63
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

/// Compact strides, at most 2^63.
inline numbers compact_strides(const numbers& shape, bool by_rows) {
  numbers strides(shape.size());
  wide product = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::size_t r = by_rows ? shape.size() - 1 - k : k;
    strides[r] = product;
    product = product_of(product, std::max<wide>(shape[r], 1));
  }
  return strides;
}

/// @pre ndim and shape are valid
inline described_tensor describe(const DLTensor& tensor, bool padded) {
  described_tensor d;
  d.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  for (const wide extent : d.shape) d.count = product_of(d.count, extent);
  d.empty = d.count == 0;
  if (tensor.strides == nullptr) {
    d.strides = compact_strides(d.shape, true);
  } else {
    d.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  }
  d.element_bits = wide{padded && tensor.dtype.bits < 8 ? 8 : tensor.dtype.bits} *
                   static_cast<wide>(tensor.dtype.lanes);
  d.first = static_cast<wide>(reinterpret_cast<std::uintptr_t>(tensor.data)) +
            static_cast<wide>(tensor.byte_offset);
  for (std::size_t r = 0; r < d.shape.size() && !d.empty; ++r) {
    const wide reach = (d.shape[r] - 1) * d.strides[r];
    wide& end = reach < 0 ? d.lowest_index : d.highest_index;
    end = std::clamp(end + std::clamp(reach, -two_to_64, two_to_64), -two_to_64, two_to_64);
  }
  const auto down = [](wide bits) { return bits >= 0 ? bits / 8 : -((7 - bits) / 8); };
  d.lowest = d.first + down(d.lowest_index * d.element_bits);
  d.past_end = d.empty ? d.first : d.first + down((d.highest_index + 1) * d.element_bits + 7);
  return d;
}

/// The first documented rule of `check_structure` that a tensor breaks.
inline rule broken_structure_rule(const DLTensor& tensor, bool padded) {
  if (tensor.ndim < 0) return {errc::invalid_tensor, "ndim"};
  if (tensor.ndim > 0 && tensor.shape == nullptr) return {errc::invalid_tensor, "shape"};
  if (!oracle_knows_dtype(tensor.dtype)) return {errc::dtype_unsupported, "dtype"};
  for (int r = 0; r < tensor.ndim; ++r) {
    if (tensor.shape[r] < 0) {
      return {errc::invalid_tensor, "shape[" + std::to_string(r) + "]"};
    }
  }
  const described_tensor d = describe(tensor, padded);
  if (tensor.data == nullptr) return d.empty ? none : rule{errc::invalid_tensor, "data"};
  if (d.first >= two_to_64) return {errc::out_of_range, "strides"};
  if (d.empty) return none;
  // Offsets are counted in an int64_t: of bytes, or of bits where elements share bytes.
  const wide unit = d.element_bits % 8 == 0 ? d.element_bits / 8 : d.element_bits;
  const wide rounding = d.element_bits % 8 == 0 ? 0 : 7;
  if (d.lowest_index * unit < -two_to_63 ||
      (d.highest_index + 1) * unit + rounding >= two_to_63 || d.lowest <= 0 ||
      d.past_end >= two_to_64 || d.past_end - d.lowest >= two_to_63) {
    return {errc::out_of_range, "strides"};
  }
  return d.first % oracle_alignment(tensor.dtype) == 0
             ? none
             : rule{errc::data_misaligned, "byte_offset"};
}

/// The index of every element relative to the first, in C order. @pre `count` is small
inline numbers all_indices(const described_tensor& d) {
  numbers indices(d.empty ? 0 : 1);
  for (std::size_t r = 0; r < d.shape.size(); ++r) {
    numbers finer;
    for (const wide index : indices) {
      for (wide i = 0; i < d.shape[r]; ++i) finer.push_back(index + i * d.strides[r]);
    }
    indices = finer;
  }
  return indices;
}

// --- Layouts --------------------------------------------------------------------------------

/// `[mdspan.layout.stride.cons]`: strides are positive and, in some order of the dimensions,
/// each at least the extent times the stride of the one before; tried for every order.
inline bool strides_are_allowed(const numbers& shape, const numbers& strides) {
  std::vector<std::size_t> order(shape.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
  do {
    wide least = 1;
    bool nested = true;
    for (const std::size_t r : order) {
      nested = nested && strides[r] >= least;
      least = strides[r] * shape[r];
    }
    if (nested) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

/// Checks the strides of dimensions of extent above 1; the others are free.
inline bool strides_are_allowed(const described_tensor& d, bool of_any_sign) {
  numbers shape;
  numbers strides;
  for (std::size_t r = 0; r < d.shape.size(); ++r) {
    if (d.shape[r] == 1) continue;
    shape.push_back(d.shape[r]);
    strides.push_back(of_any_sign && d.strides[r] < 0 ? -d.strides[r] : d.strides[r]);
  }
  return strides_are_allowed(shape, strides);
}

/// Compares strides where the extent is above 1; elsewhere they are free.
inline bool has_strides(const described_tensor& d, const numbers& strides) {
  for (std::size_t r = 0; r < d.shape.size(); ++r) {
    if (d.shape[r] > 1 && d.strides[r] != strides[r]) return false;
  }
  return true;
}

/// Whether strides are compact but for the one distance that the padding makes: P2642
/// `[mdspan.layout.leftpad.cons]`.
/// @param held gets the largest number that the mapping computes, in rounding up to the
/// padding
inline bool has_padded_strides(const described_tensor& d, bool by_rows, wide& held) {
  numbers shape = d.shape;  // the padded dimension first
  numbers strides = d.strides;
  if (by_rows) {
    std::reverse(shape.begin(), shape.end());
    std::reverse(strides.begin(), strides.end());
  }
  if (shape[0] > 1 && strides[0] != 1) return false;
  const auto next = std::find_if(shape.begin() + 1, shape.end(), [](wide n) { return n > 1; });
  if (next == shape.end()) return true;
  wide product = strides[static_cast<std::size_t>(next - shape.begin())];
  if (product < shape[0]) return false;
  held = product == shape[0] ? 0 : product + shape[0];
  for (std::size_t r = 1; r < shape.size(); ++r) {
    if (shape[r] > 1 && strides[r] != product) return false;
    held = product_of(held, shape[r]);
    product = product_of(product, shape[r]);
  }
  return true;
}

/// The indices of the dimensions before the first empty one, at most 2^63.
inline wide indices_before_empty(const numbers& shape) {
  wide product = 1;
  for (const wide extent : shape) {
    if (extent == 0) break;
    product = product_of(product, extent);
  }
  return product;
}

/// Whether numbers up to `max` hold the compact strides of an empty shape, and the span of the
/// dimensions before the first empty one.
inline bool holds_compact_strides(const numbers& shape, bool by_rows, wide max) {
  const numbers strides = compact_strides(shape, by_rows);
  wide span = 1;
  for (std::size_t r = 0; r < shape.size() && shape[r] != 0; ++r) {
    span = std::min(span + (shape[r] - 1) * strides[r], two_to_63);
  }
  const wide longest = *std::max_element(strides.begin(), strides.end());
  return longest <= std::min(max, two_to_63 - 2) && span <= std::min(max, two_to_63 - 1);
}

}  // namespace usm_dlpack_fuzz
