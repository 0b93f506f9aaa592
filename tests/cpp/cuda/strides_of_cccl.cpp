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

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using usm_dlpack::to_mdspan;
using usm_dlpack_test::strided_tensor;

template <class Index, std::size_t Rank>
using view =
    cuda::std::mdspan<float, cuda::std::dextents<Index, Rank>, cuda::layout_stride_relaxed>;

/// Expects that a tensor is taken as it is, with the index of its first element.
template <class Index, std::size_t Rank>
void expect_taken(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                  std::int64_t offset) {
  const strided_tensor sample(std::move(shape), std::move(strides));
  const auto made = to_mdspan<view<Index, Rank>>(sample.tensor);
  usm_dlpack_test::expect_same_elements(sample.tensor, usm_dlpack_test::facts_of(made));
  EXPECT_EQ(made.mapping().offset(), offset);
}

template <class Index>
void expect_taken_of_every_sign() {
  expect_taken<Index, 2>({2, 3}, {3, 1}, 0);
  expect_taken<Index, 2>({2, 3}, {0, 1}, 0);
  expect_taken<Index, 2>({2, 3}, {-3, 1}, 3);
  expect_taken<Index, 2>({2, 3}, {3, -1}, 2);
  expect_taken<Index, 2>({2, 3}, {-9, -2}, 13);
}

TEST(StridesOfCccl, AreTakenOfEverySign) {
  expect_taken_of_every_sign<int>();
  expect_taken_of_every_sign<std::uint64_t>();
  expect_taken<std::uint8_t, 1>({200}, {-1}, 199);
}

TEST(StridesOfCccl, AreFreeWithoutNeighboursAndWithoutElements) {
  expect_taken<std::int8_t, 2>({1, 100}, {-7, 1}, 0);
  expect_taken<std::int8_t, 2>({1, 100}, {7, -1}, 99);
  expect_taken<int, 2>({0, 3}, {-7, -9}, 0);
  expect_taken<int, 0>({}, {}, 0);
}

TEST(StridesOfCccl, MustFitItsIntegers) {
  const strided_tensor sample({2}, {200});
  EXPECT_REFUSAL((to_mdspan<view<std::uint8_t, 1>>(sample.tensor)),
                 usm_dlpack::errc::index_type_too_small, "strides[0]",
                 "a value that the view's index type int8_t holds", "200");
}

}  // namespace
