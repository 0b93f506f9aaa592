// SPDX-License-Identifier: Apache-2.0
//
// The layouts of the standard keep every element on the way to DLPack and back.
#include <view_round_trips.hpp>

#include <gtest/gtest.h>

namespace {

using usm_dlpack_test::expect_round_trips_of_layout;

TEST(ToDlpackRoundTrip, KeepsEveryElementOfLayoutRight) {
  expect_round_trips_of_layout<md::layout_right>();
}

TEST(ToDlpackRoundTrip, KeepsEveryElementOfLayoutLeft) {
  expect_round_trips_of_layout<md::layout_left>();
}

TEST(ToDlpackRoundTrip, KeepsEveryElementOfLayoutStride) {
  expect_round_trips_of_layout<md::layout_stride>();
}

}  // namespace
