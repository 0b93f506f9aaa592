// SPDX-License-Identifier: Apache-2.0
//
// Consumer: strides that DLPack leaves open, those of dimensions without neighbours and of
// tensors without elements, become ones that a layout mapping may be made from.
#pragma once

#include <usm_dlpack/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace usm_dlpack::detail {

/// The strides of dimensions of extent 1 become what every layout allows: a step past all
/// others, or 1 where `Stride` does not hold that.
template <class Stride, std::size_t Rank>
constexpr void close_open_strides(strided_shape<Rank>& given) noexcept {
  std::int64_t beyond = 1;
  for (std::size_t r = 0; r < Rank; ++r) {
    std::int64_t end = 0;
    if (given.shape[r] > 1 &&
        !__builtin_mul_overflow(given.strides[r], given.shape[r], &end) && end > beyond) {
      beyond = end;
    }
  }
  beyond = fits<Stride>(beyond) ? beyond : 1;
  for (std::size_t r = 0; r < Rank; ++r) {
    given.strides[r] = given.shape[r] > 1 ? given.strides[r] : beyond;
  }
}

/// Writes the smallest strides of an empty tensor that keep the precondition of the standard
/// `layout_stride`, also as libc++ checks it: the empty dimensions step 1, and so the largest
/// extent, which steps farthest, multiplies nothing.
/// @returns whether `Stride` holds them
template <class Stride, std::size_t Rank>
constexpr bool write_smallest_strides(strided_shape<Rank>& given) noexcept {
  std::size_t largest = 0;
  for (std::size_t r = 1; r < Rank; ++r) {
    largest = given.shape[r] > given.shape[largest] ? r : largest;
  }
  std::int64_t product = 1;
  bool exact = true;
  for (std::size_t r = Rank; r-- > 0;) {
    given.strides[r] = given.shape[r] == 0 ? 1 : product;
    if (given.shape[r] != 0 && r != largest) {
      exact = exact && !__builtin_mul_overflow(product, given.shape[r], &product);
    }
  }
  given.strides[largest] = product;
  return exact && fits<Stride>(product);
}

/// The strides of an empty tensor become compact row-major ones; where `Stride` does not hold
/// these, the smallest that a unique mapping may be made from.
/// @returns whether there are any; if not, all strides are 1, which only a unique mapping
/// minds
template <class Stride, std::size_t Rank>
constexpr bool close_empty_strides(strided_shape<Rank>& given) noexcept {
  write_compact_strides(given.shape.data(), given.strides.data(), Rank);
  constexpr auto saturated = std::numeric_limits<std::int64_t>::max();
  bool holds = true;
  if constexpr (Rank > 0) {
    const std::int64_t farthest = given.strides[0];
    holds = (farthest != saturated && fits<Stride>(farthest)) ||
            write_smallest_strides<Stride>(given);
  }
  for (std::size_t r = 0; !holds && r < Rank; ++r) {
    given.strides[r] = 1;
  }
  return holds;
}

}  // namespace usm_dlpack::detail
