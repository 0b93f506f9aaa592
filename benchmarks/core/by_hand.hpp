// SPDX-License-Identifier: Apache-2.0
//
// The floor: what somebody would write by hand for one rank and one layout, with the checks
// that to_dlpack_tensor makes for these, and the same fields stored. Every loop is unrolled.
#pragma once

#include <dlpack/dlpack.h>

#include <cell.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

enum class order { right, left, stride, right_padded, left_padded };

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_by_hand() {
  throw std::invalid_argument("out of range");
}

template <class Index>
[[gnu::always_inline]] inline std::int64_t checked_extent(Index value) {
  constexpr auto highest =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  // Negative, or above int64_t: the same bit.
  if (static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) > highest) {
    refuse_by_hand();
  }
  return static_cast<std::int64_t>(value);
}

template <class Index>
[[gnu::always_inline]] inline std::int64_t checked_stride(Index value) {
  if constexpr (!std::is_signed_v<Index>) {
    return checked_extent(value);
  }
  return static_cast<std::int64_t>(value);
}

/// The dimensions of `Order`, each after those that its stride is a product of.
template <order Order, std::size_t Rank>
constexpr std::size_t dimension(std::size_t step) {
  return Order == order::right || Order == order::right_padded ? Rank - 1 - step : step;
}

template <order Order, class View, std::size_t... Steps>
[[gnu::always_inline]] inline void convert_by_hand(const View& view,
                                                   std::index_sequence<Steps...>) {
  using index_type = typename View::index_type;
  constexpr std::size_t rank = sizeof...(Steps);
  std::int64_t shape[rank == 0 ? 1 : rank];
  std::int64_t strides[rank == 0 ? 1 : rank];
  [[maybe_unused]] index_type product{1};
  bool empty = false;
  if constexpr (rank != 0) {
    const auto one = [&](auto step) {
      constexpr std::size_t r = dimension<Order, rank>(step);
      const index_type extent = view.extent(r);
      shape[r] = checked_extent(extent);
      empty |= extent == 0;
      if constexpr (Order == order::stride) {
        strides[r] = checked_stride(view.mapping().stride(r));
      } else {
        constexpr bool padded = Order == order::right_padded || Order == order::left_padded;
        if constexpr (padded && step == 1) {
          product = view.mapping().stride(r);
        }
        strides[r] = checked_stride(product);
        if constexpr (step + 1 < rank) {
          product = static_cast<index_type>(product * extent);
        }
      }
    };
    (one(std::integral_constant<std::size_t, Steps>{}), ...);
  }
  DLTensor tensor;
  tensor.data = empty ? nullptr : const_cast<std::remove_cv_t<float>*>(view.data_handle());
  tensor.device = DLDevice{kDLCPU, 0};
  tensor.ndim = static_cast<std::int32_t>(rank);
  tensor.dtype = DLDataType{kDLFloat, 32, 1};
  tensor.shape = rank == 0 ? nullptr : shape;
  tensor.strides = rank == 0 ? nullptr : strides;
  tensor.byte_offset = 0;
  keep(tensor);
}
