// SPDX-License-Identifier: Apache-2.0
//
// Views of static extents, of cv and of every element type keep every element on the way to
// DLPack and back.
#include <view_round_trips.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <utility>

namespace {

using namespace usm_dlpack_test;

template <class Layout>
void expect_round_trips_of_static_extents() {
  expect_round_trip<short, Layout>(static_extents<int>(std::make_index_sequence<1>{}));
  expect_round_trip<short, Layout>(static_extents<int>(std::make_index_sequence<3>{}));
  expect_round_trip<short, Layout>(static_extents<int>(std::make_index_sequence<8>{}));
  expect_round_trip<short, Layout>(mixed_extents<unsigned>(std::make_index_sequence<2>{}));
  expect_round_trip<short, Layout>(mixed_extents<unsigned>(std::make_index_sequence<5>{}));
}

template <class Layout>
void expect_round_trips_of_cv() {
  constexpr auto dimensions = std::make_index_sequence<3>{};
  expect_round_trip<const double, Layout>(dynamic_extents<int>(dimensions));
  expect_round_trip<volatile double, Layout>(dynamic_extents<int>(dimensions));
  expect_round_trip<const volatile double, Layout>(dynamic_extents<int>(dimensions));
}

template <class... Elements>
void expect_round_trips_of_elements() {
  constexpr auto dimensions = std::make_index_sequence<2>{};
  (expect_round_trip<Elements, md::layout_right>(dynamic_extents<int>(dimensions)), ...);
  (expect_round_trip<const Elements, layout_relaxed>(dynamic_extents<int>(dimensions)), ...);
}

TEST(ToDlpackRoundTrip, KeepsStaticAndMixedExtents) {
  expect_round_trips_of_static_extents<md::layout_right>();
  expect_round_trips_of_static_extents<md::layout_left>();
  expect_round_trips_of_static_extents<md::layout_stride>();
  expect_round_trips_of_static_extents<layout_relaxed>();
  expect_round_trips_of_static_extents<odd::layout_anchored>();
}

TEST(ToDlpackRoundTrip, CastsConstAndVolatileAway) {
  expect_round_trips_of_cv<md::layout_right>();
  expect_round_trips_of_cv<md::layout_left>();
  expect_round_trips_of_cv<md::layout_stride>();
  expect_round_trips_of_cv<layout_relaxed>();
  expect_round_trips_of_cv<odd::layout_anchored>();
}

TEST(ToDlpackRoundTrip, KeepsEveryElementType) {
  using namespace usm_dlpack::detail;
  expect_round_trips_of_elements<bool, signed char, short, int, long, long long, int128>();
  expect_round_trips_of_elements<unsigned char, unsigned short, unsigned, unsigned long,
                                 unsigned long long, uint128>();
  expect_round_trips_of_elements<float16, float, double, float128, std::complex<float>,
                                 std::complex<double>>();
}

}  // namespace
