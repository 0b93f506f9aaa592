// SPDX-License-Identifier: Apache-2.0
//
// CCCL's own layout of strides, which its consumer makes by default: its strides are made of
// integers, and negative ones need an offset.
#include <refusal.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core.hpp>

// Not <cuda/mdspan>, which needs the headers of a driver.
#include <cuda/std/array>
#include <cuda/std/mdspan>

#include <cuda/__mdspan/layout_stride_relaxed.h>
#include <cuda/__mdspan/strides.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using usm_dlpack::errc;
using usm_dlpack::to_mdspan;

template <class Index, std::size_t Rank>
using view =
    cuda::std::mdspan<float, cuda::std::dextents<Index, Rank>, cuda::layout_stride_relaxed>;

/// Expects that a tensor of some strides is taken as it is.
template <class Index, std::size_t Rank>
void expect_taken(std::array<std::int64_t, Rank> shape,
                  std::array<std::int64_t, Rank> strides) {
  std::array<float, 512> elements{};
  DLTensor tensor{};
  tensor.data = &elements[256];
  tensor.device = usm_dlpack_test::some_device;
  tensor.ndim = static_cast<std::int32_t>(Rank);
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  const auto made = to_mdspan<view<Index, Rank>>(tensor);
  const auto facts = usm_dlpack_test::facts_of(made);
  EXPECT_EQ(facts.addresses(), usm_dlpack_test::addresses_of(tensor));
  std::int64_t lowest = 0;
  for (std::size_t r = 0; r < Rank; ++r) {
    lowest += shape[r] > 1 && strides[r] < 0 ? (shape[r] - 1) * strides[r] : 0;
    EXPECT_EQ(facts.extents[r], shape[r]);
    if (shape[r] > 1 && !facts.addresses().empty()) {
      EXPECT_EQ(facts.strides[r], strides[r]);
    }
  }
  EXPECT_EQ(made.mapping().offset(), facts.addresses().empty() ? 0 : -lowest);
}

TEST(StridesOfCccl, AreTakenOfEverySign) {
  for (const auto& strides : {std::array<std::int64_t, 2>{3, 1}, {1, 2}, {9, 2}, {0, 1}}) {
    expect_taken<int, 2>({2, 3}, strides);
    expect_taken<std::uint64_t, 2>({2, 3}, strides);
  }
  for (const auto& strides :
       {std::array<std::int64_t, 2>{-3, 1}, {3, -1}, {-9, -2}, {0, -1}, {-1, 0}}) {
    expect_taken<int, 2>({2, 3}, strides);
    expect_taken<std::int64_t, 2>({2, 3}, strides);
    expect_taken<std::uint64_t, 2>({2, 3}, strides);
  }
  expect_taken<std::uint8_t, 1>({200}, {-1});
}

TEST(StridesOfCccl, AreFreeWithoutNeighboursAndWithoutElements) {
  expect_taken<std::int8_t, 2>({1, 100}, {-7, 1});
  expect_taken<std::int8_t, 2>({1, 100}, {7, -1});
  expect_taken<int, 2>({0, 3}, {-7, -9});
  expect_taken<int, 2>({3, 0}, {-7, -9});
  expect_taken<int, 0>({}, {});
}

TEST(StridesOfCccl, MustFitItsIntegers) {
  std::int64_t shape[] = {2};
  std::int64_t strides[] = {200};
  std::array<float, 256> elements{};
  DLTensor tensor{};
  tensor.data = elements.data();
  tensor.device = usm_dlpack_test::some_device;
  tensor.ndim = 1;
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape;
  tensor.strides = strides;
  EXPECT_REFUSAL((to_mdspan<view<std::uint8_t, 1>>(tensor)), errc::index_type_too_small,
                 "strides[0]", "a value that the view's index type int8_t holds", "200");
}

}  // namespace
