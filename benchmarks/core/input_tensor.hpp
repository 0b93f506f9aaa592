// SPDX-License-Identifier: Apache-2.0
//
// What the conversions to views convert.
#pragma once

#include <dlpack/dlpack.h>

#include <cell.hpp>

#include <cstddef>
#include <cstdint>

inline float elements_of_tensors[4096];

/// A tensor that owns its arrays, for one rank and layout.
template <std::size_t Rank>
struct input_tensor {
  std::int64_t shape[Rank + 1] = {};
  std::int64_t strides[Rank + 1] = {};
  DLTensor tensor{};

  /// @param innermost the smallest stride: that of a slice, where it is above 1
  explicit input_tensor(bool left, std::int64_t innermost = 1) {
    std::int64_t product = innermost;
    for (std::size_t step = 0; step < Rank; ++step) {
      const std::size_t r = left ? step : Rank - 1 - step;
      shape[r] = static_cast<std::int64_t>(extents_of_cells[r]);
      strides[r] = product;
      product *= shape[r];
    }
    tensor.data = elements_of_tensors;
    tensor.device = DLDevice{kDLCPU, 0};
    tensor.ndim = static_cast<std::int32_t>(Rank);
    tensor.dtype = DLDataType{kDLFloat, 32, 1};
    tensor.shape = shape;
    tensor.strides = strides;
  }
};
