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

/// Whether `Stride` holds the strides of an empty tensor, and the span of the dimensions
/// before the first empty one: 0 by P0009, and yet counted by libc++, which aborts where it is
/// checked.
template <class Stride, std::size_t Rank>
constexpr bool holds_empty(const strided_shape<Rank>& given) noexcept {
  constexpr auto saturated = std::numeric_limits<std::int64_t>::max();
  std::size_t before = 0;
  while (before < Rank && given.shape[before] != 0) {
    ++before;
  }
  const element_span span = span_of(given.shape.data(), given.strides.data(), before);
  bool holds = !span.overflow && span.highest < saturated && fits<Stride>(span.highest + 1);
  for (std::size_t r = 0; r < Rank; ++r) {
    holds = holds && given.strides[r] < saturated && fits<Stride>(given.strides[r]);
  }
  return holds;
}

/// The strides of an empty tensor become compact row-major ones; where `Stride` does not hold
/// these, compact column-major ones: both may a unique mapping be made from.
/// @returns whether it holds either; if not, all strides are 1, which only a unique mapping
///          minds
template <class Stride, std::size_t Rank>
constexpr bool close_empty_strides(strided_shape<Rank>& given) noexcept {
  write_compact_strides(given.shape.data(), given.strides.data(), Rank);
  if (holds_empty<Stride>(given)) {
    return true;
  }
  strided_shape<Rank> reversed{};
  for (std::size_t r = 0; r < Rank; ++r) {
    reversed.shape[r] = given.shape[Rank - 1 - r];
  }
  write_compact_strides(reversed.shape.data(), reversed.strides.data(), Rank);
  for (std::size_t r = 0; r < Rank; ++r) {
    given.strides[r] = reversed.strides[Rank - 1 - r];
  }
  const bool holds = holds_empty<Stride>(given);
  for (std::size_t r = 0; !holds && r < Rank; ++r) {
    given.strides[r] = 1;
  }
  return holds;
}

}  // namespace usm_dlpack::detail
