// SPDX-License-Identifier: Apache-2.0
//
// CCCL's own layout of strides, which its consumer makes by default: its strides are made of
// integers, and negative ones need an offset. `layout_of_made_steps` of core/to_mdspan.cpp
// stands for it in the tests with other mdspans.
#include <view_elements.hpp>

// Not <cuda/mdspan>, which needs the headers of a driver.
#include <cuda/std/array>
#include <cuda/std/mdspan>

#include <cuda/__mdspan/layout_stride_relaxed.h>
#include <cuda/__mdspan/strides.h>

namespace test_strides_of_cccl {

using namespace usm_dlpack_test;

template <class Index, std::size_t Rank = 2>
using view =
    cuda::std::mdspan<float, cuda::std::dextents<Index, Rank>, cuda::layout_stride_relaxed>;

TEST(StridesOfCccl, AreTakenOfEverySignAndMustFitItsIntegers) {
  for (const std::int64_t sign : {1, 0, -1}) {
    expect_taken<view<int>>({2, 3}, {9 * sign, -2});
    expect_taken<view<std::uint64_t>>({2, 3}, {9 * sign, 2});
  }
  expect_taken<view<std::uint8_t, 1>>({200}, {-1});
  expect_taken<view<std::int8_t>>({1, 100}, {7, -1});
  expect_taken<view<int>>({0, 3}, {-7, -9});
  expect_taken<view<int, 0>>({}, {});
  const strided_tensor sample({2}, {200});
  EXPECT_REFUSAL((to_mdspan<view<std::uint8_t, 1>>(sample.tensor)), errc::index_type_too_small,
                 "strides[0]", "a value that the view's index type int8_t holds", "200");
}

}  // namespace test_strides_of_cccl
