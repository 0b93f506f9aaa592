// SPDX-License-Identifier: Apache-2.0
//
// The layouts of this library and of users keep every element on the way to DLPack and back.
#include <view_round_trips.hpp>

#include <gtest/gtest.h>

#include <utility>

namespace {

using namespace usm_dlpack_test;

TEST(ToDlpackRoundTrip, KeepsEveryElementOfReversedAndBroadcastViews) {
  expect_round_trips_of_layout<layout_relaxed>();
}

TEST(ToDlpackRoundTrip, KeepsEveryElementOfAUsersLayoutWhoseFirstIndexIsNotZero) {
  expect_round_trips_of_layout<odd::layout_anchored>();
}

TEST(ToDlpackRoundTrip, KeepsEveryElementOfAUsersLayoutMadeFromStrides) {
  constexpr auto ranks = std::index_sequence<0, 1, 3, 8>{};
  expect_round_trips_of_ranks<odd::layout_stepped, int>(ranks);
}

}  // namespace
