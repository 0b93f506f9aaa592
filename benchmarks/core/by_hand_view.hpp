// SPDX-License-Identifier: Apache-2.0
//
// The floor of the way back: a view made by hand for one rank and one layout, with the checks
// that to_mdspan makes of ordinary tensors. It knows neither empty ones nor strides in another
// order, and says nothing of what it refuses.
#pragma once

#include <by_hand.hpp>

#include <cuda/std/array>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

/// Whether a dimension has the stride of a compact array, or is one that strides are made from
/// in the order of steps; `reach` grows by it.
template <order Order>
[[gnu::always_inline]] inline bool follows_by_hand(std::int64_t extent, std::int64_t stride,
                                                   std::int64_t& reach) {
  if constexpr (Order == order::stride) {
    return extent > 1 && stride >= reach && !__builtin_mul_overflow(stride, extent, &reach);
  }
  return extent > 0 && (stride == reach || extent == 1) &&
         !__builtin_mul_overflow(reach, extent, &reach);
}

template <order Order, class View, std::size_t... Steps>
[[gnu::always_inline]] inline View view_by_hand(const DLTensor& tensor,
                                                std::index_sequence<Steps...>) {
  using index_type = typename View::index_type;
  using extents_type = typename View::extents_type;
  using mapping_type = typename View::mapping_type;
  constexpr std::size_t rank = sizeof...(Steps);
  constexpr order from = Order == order::stride ? order::right : Order;
  const auto first = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  std::int64_t reach = 1;
  bool good = tensor.ndim == static_cast<std::int32_t>(rank) &&
              tensor.dtype.code == kDLFloat && tensor.dtype.bits == 32 &&
              tensor.dtype.lanes == 1;
  if constexpr (rank != 0) {
    good = good && tensor.shape != nullptr && tensor.strides != nullptr &&
           ((extents_type::static_extent(Steps) == static_cast<std::size_t>(-1) ||
             extents_type::static_extent(Steps) ==
                 static_cast<std::size_t>(tensor.shape[Steps])) &&
            ...) &&
           (follows_by_hand<Order>(tensor.shape[dimension<from, rank>(Steps)],
                                   tensor.strides[dimension<from, rank>(Steps)], reach) &&
            ...);
  }
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  constexpr std::int64_t most_of_index = sizeof(index_type) < sizeof(std::int64_t)
                                             ? std::numeric_limits<index_type>::max()
                                             : most;
  if (!good || reach > most_of_index || first % alignof(float) != 0 ||
      tensor.data == nullptr || first > static_cast<std::uintptr_t>(most) ||
      tensor.byte_offset > first) {
    refuse_by_hand();
  }
  auto* const elements = reinterpret_cast<float*>(first);
  const extents_type extents(static_cast<index_type>(tensor.shape[Steps])...);
  if constexpr (Order == order::stride) {
    return View(elements,
                mapping_type(extents, cuda::std::array<index_type, rank>{
                                          static_cast<index_type>(tensor.strides[Steps])...}));
  } else {
    return View(elements, mapping_type(extents));
  }
}
