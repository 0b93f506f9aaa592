// SPDX-License-Identifier: Apache-2.0
//
// The padded layouts of C++26, which only the reference implementation has today: which padded
// extents a mapping may be made with, up to the last one that the extents and the index type
// allow. Also submdspan, where views with strides come from.
#include <mdspan_under_test.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace {

using usm_dlpack::errc;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack_test::some_device;
using usm_dlpack_test::strided_tensor;

using left_padded = Kokkos::Experimental::layout_left_padded<8>;
using right_padded = Kokkos::Experimental::layout_right_padded<8>;
using any_left_padded = Kokkos::Experimental::layout_left_padded<Kokkos::dynamic_extent>;
using any_right_padded = Kokkos::Experimental::layout_right_padded<Kokkos::dynamic_extent>;

template <class Layout, class Index, std::size_t Rank>
using view = Kokkos::mdspan<float, Kokkos::dextents<Index, Rank>, Layout>;

// --- Round trips ----------------------------------------------------------------------------

template <class View>
void expect_round_trip(const View& view) {
  const auto wrapper = to_dlpack_tensor(view, some_device);
  usm_dlpack_test::expect_same_elements(wrapper.get(), usm_dlpack_test::facts_of(view));
  const View back = usm_dlpack::to_mdspan<View>(wrapper.get());
  usm_dlpack_test::expect_same_elements(wrapper.get(), usm_dlpack_test::facts_of(back));
}

template <class Layout, std::size_t Rank, class... Padding>
void expect_round_trip_of(const std::array<int, Rank>& extents, Padding... padding) {
  alignas(64) static std::array<float, 1024> elements{};
  using view_type = view<Layout, int, Rank>;
  const typename view_type::mapping_type mapping(typename view_type::extents_type(extents),
                                                 padding...);
  expect_round_trip(view_type(elements.data(), mapping));
}

TEST(PaddedLayouts, KeepEveryElement) {
  expect_round_trip_of<left_padded, 0>({});
  expect_round_trip_of<left_padded, 1>({3});
  expect_round_trip_of<left_padded, 3>({3, 2, 3});
  expect_round_trip_of<left_padded, 2>({0, 4});
  expect_round_trip_of<right_padded, 1>({3});
  expect_round_trip_of<right_padded, 4>({3, 2, 3, 2});
  expect_round_trip_of<any_left_padded, 2>({3, 4}, 5);
  expect_round_trip_of<any_right_padded, 2>({3, 4}, 7);
  expect_round_trip_of<any_left_padded, 3>({2, 1, 3}, 8);  // the extent of 1 says no distance
  expect_round_trip_of<any_right_padded, 3>({3, 1, 2}, 8);
  // The index type holds the padding for small extents alone.
  const Kokkos::extents<signed char, 1, 1, 1, 1> ones;
  float element = 0;
  expect_round_trip(
      Kokkos::mdspan<float, Kokkos::extents<signed char, 1, 1, 1, 1>,
                     Kokkos::Experimental::layout_left_padded<4>>(&element, ones));
}

TEST(PaddedLayouts, AreThoseOfC26) {
  const right_padded::mapping<Kokkos::extents<int, 3, 5>> rows;
  float element = 0;
  const Kokkos::mdspan<float, Kokkos::extents<int, 3, 5>, right_padded> view(&element, rows);
  EXPECT_EQ(to_dlpack_tensor(view, some_device).strides(),
            (std::array<std::int64_t, 2>{8, 1}));
}

// --- Which paddings are taken ---------------------------------------------------------------

template <class View>
View taken(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  const strided_tensor sample(std::move(shape), std::move(strides));
  return usm_dlpack::to_mdspan<View>(sample.tensor);
}
template <class View>
void expect_refused(errc code, const char* field, std::vector<std::int64_t> shape,
                    std::vector<std::int64_t> strides) {
  EXPECT_REFUSAL(taken<View>(std::move(shape), std::move(strides)), code, field);
}

TEST(PaddedLayouts, TakeTheDistanceFromTheStrides) {
  const auto made = taken<view<any_right_padded, int, 3>>({2, 3, 5}, {24, 8, 1});
  EXPECT_EQ(made.mapping().stride(0), 24);
  EXPECT_EQ(made.mapping().stride(1), 8);
  expect_refused<view<any_right_padded, int, 3>>(errc::layout_mismatch, "strides[0]",
                                                 {2, 3, 5}, {25, 8, 1});
  expect_refused<view<right_padded, int, 2>>(errc::layout_mismatch, "strides[0]", {4, 3},
                                             {7, 1});
  expect_refused<view<left_padded, int, 2>>(errc::layout_mismatch, "strides[1]", {3, 4},
                                            {1, 4});
}

template <class Layout>
bool may_pad(std::int64_t rows, std::int64_t columns, std::int64_t padding) {
  using extents_type = Kokkos::dextents<std::int64_t, 2>;
  const typename Layout::template mapping<extents_type> plain(extents_type(rows, columns));
  usm_dlpack::detail::strided_shape<2> given;
  given.shape = {rows, columns};
  return usm_dlpack::detail::may_pad<std::int8_t>(plain, given, padding);
}

TEST(PaddedLayouts, PadTheContiguousDimensionAsFarAsTheIndexTypeReaches) {
  using right = Kokkos::layout_right;
  using left = Kokkos::layout_left;
  EXPECT_TRUE(may_pad<right>(2, 3, 3) && may_pad<right>(4, 3, 3) && may_pad<right>(2, 3, 60));
  EXPECT_TRUE(may_pad<left>(3, 2, 3) && may_pad<left>(3, 4, 3) && may_pad<left>(3, 2, 60));
  EXPECT_FALSE(may_pad<right>(2, 3, 2) || may_pad<right>(2, 3, 61));
  EXPECT_FALSE(may_pad<left>(3, 2, 2) || may_pad<left>(3, 2, 61));
  EXPECT_FALSE(may_pad<right>(3, 1, 0) || may_pad<right>(3, 1, -1));
  EXPECT_FALSE(may_pad<right>(2, 3, std::numeric_limits<std::int64_t>::max()));
}

TEST(PaddedLayouts, RoundTheContiguousExtentUpAndNoOther) {
  using right_2 = view<right_padded, std::int8_t, 2>;
  using left_2 = view<left_padded, std::int8_t, 2>;
  EXPECT_EQ(taken<right_2>({1, 100}, {104, 1}).mapping().stride(0), 104);
  EXPECT_EQ(taken<left_2>({100, 1}, {1, 104}).mapping().stride(1), 104);
  EXPECT_EQ((taken<view<right_padded, std::int8_t, 1>>({125}, {1}).extent(0)), 125);
  EXPECT_EQ(taken<right_2>({15, 8}, {8, 1}).extent(0), 15) << "15 times 8 is 120";
  const errc code = errc::index_type_too_small;
  expect_refused<right_2>(code, "shape", {100, 1}, {1, 1});
  expect_refused<left_2>(code, "shape", {1, 100}, {1, 1});
  expect_refused<right_2>(code, "shape", {1, 121}, {121, 1});
}

// The rounded extent is one of the mapping's numbers, and the first that the reference
// implementation counts by.
TEST(PaddedLayouts, OfEmptyTensorsCountByTheRoundedExtent) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const errc code = errc::index_type_too_small;
  using right_2 = view<right_padded, int, 2>;
  EXPECT_EQ(taken<right_2>({0, most - 7}, {1, 1}).mapping().stride(0), most - 7);
  expect_refused<right_2>(code, "shape", {0, most}, {1, 1});
  expect_refused<view<left_padded, int, 2>>(code, "shape", {most - 1, 0}, {1, 1});
  expect_refused<view<right_padded, std::int64_t, 2>>(
      code, "shape", {0, std::numeric_limits<std::int64_t>::max()}, {1, 1});
  using any_4 = view<any_right_padded, int, 4>;
  EXPECT_EQ(taken<any_4>({4, 0, 2, most / 4}, {1, 1, 1, 1}).mapping().stride(2), most / 4);
  expect_refused<any_4>(code, "shape", {4, 0, 2, most}, {1, 1, 1, 1});
  EXPECT_EQ((taken<view<right_padded, std::int8_t, 2>>({100, 0}, {1, 1}).extent(0)), 100);
  expect_refused<view<right_padded, std::int8_t, 3>>(code, "shape", {100, 100, 0}, {1, 1, 1});
  EXPECT_EQ((taken<view<any_right_padded, int, 2>>({2, 0}, {7, 1}).mapping().stride(0)), 0);
}

// --- Other views of the reference implementation --------------------------------------------

TEST(Submdspan, KeepsEveryElementOfASlice) {
  alignas(64) std::array<int, 60> elements{};
  const Kokkos::mdspan<int, Kokkos::dextents<int, 3>> whole(elements.data(), 3, 4, 5);
  expect_round_trip(Kokkos::submdspan(whole, 1, Kokkos::full_extent, std::pair{1, 4}));
  expect_round_trip(Kokkos::submdspan(whole, std::pair{1, 3}, 2, Kokkos::full_extent));
}

}  // namespace
