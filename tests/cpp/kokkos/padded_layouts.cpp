// SPDX-License-Identifier: Apache-2.0
//
// The padded layouts of C++26, which only the reference implementation has today: rows or
// columns that keep a distance, out to a DLTensor and back. Also its default accessor's
// relatives and submdspan, where views with strides come from.
#include <mdspan_under_test.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace {

using usm_dlpack::to_dlpack_tensor;
using usm_dlpack_test::some_device;

using left_padded = Kokkos::Experimental::layout_left_padded<8>;
using right_padded = Kokkos::Experimental::layout_right_padded<8>;
using left_padded_at_run_time =
    Kokkos::Experimental::layout_left_padded<Kokkos::dynamic_extent>;
using right_padded_at_run_time =
    Kokkos::Experimental::layout_right_padded<Kokkos::dynamic_extent>;

template <class View>
void expect_round_trip(const View& view) {
  const auto wrapper = to_dlpack_tensor(view, some_device);
  usm_dlpack_test::expect_same_elements(wrapper.get(), usm_dlpack_test::facts_of(view));
  const View back = usm_dlpack::to_mdspan<View>(wrapper.get());
  usm_dlpack_test::expect_same_view(usm_dlpack_test::facts_of(back),
                                    usm_dlpack_test::facts_of(view));
}

template <class Layout, class Index, std::size_t... R>
void expect_round_trip_of_rank(std::index_sequence<R...>) {
  [[maybe_unused]] constexpr std::array<int, 8> sizes{3, 2, 3, 2, 1, 2, 1, 2};
  alignas(64) static std::array<double, 1024> elements{};
  using extents_type = Kokkos::dextents<Index, sizeof...(R)>;
  const extents_type extents(static_cast<Index>(sizes[R])...);
  using mapping_type = typename Layout::template mapping<extents_type>;
  expect_round_trip(
      Kokkos::mdspan<double, extents_type, Layout>(elements.data(), mapping_type(extents)));
}

template <class Layout>
void expect_round_trips() {
  expect_round_trip_of_rank<Layout, int>(std::make_index_sequence<1>{});
  expect_round_trip_of_rank<Layout, int>(std::make_index_sequence<2>{});
  expect_round_trip_of_rank<Layout, std::uint64_t>(std::make_index_sequence<3>{});
  expect_round_trip_of_rank<Layout, std::int16_t>(std::make_index_sequence<4>{});
  expect_round_trip_of_rank<Layout, std::int64_t>(std::make_index_sequence<0>{});
  expect_round_trip_of_rank<Layout, std::int64_t>(std::make_index_sequence<5>{});
  expect_round_trip_of_rank<Layout, std::int64_t>(std::make_index_sequence<6>{});
  expect_round_trip_of_rank<Layout, std::int64_t>(std::make_index_sequence<7>{});
  expect_round_trip_of_rank<Layout, std::int64_t>(std::make_index_sequence<8>{});
}

TEST(ToDlpackOfPaddedLayouts, KeepsEveryElementOfLayoutLeftPadded) {
  expect_round_trips<left_padded>();
}

TEST(ToDlpackOfPaddedLayouts, KeepsEveryElementOfLayoutRightPadded) {
  expect_round_trips<right_padded>();
}

TEST(ToDlpackOfPaddedLayouts, KeepsAPaddingChosenAtRunTime) {
  std::array<float, 64> elements{};
  using extents_type = Kokkos::dextents<int, 2>;
  using left_mapping = left_padded_at_run_time::mapping<extents_type>;
  using right_mapping = right_padded_at_run_time::mapping<extents_type>;
  const Kokkos::mdspan<float, extents_type, left_padded_at_run_time> left(
      elements.data(), left_mapping(extents_type(3, 4), 5));
  const Kokkos::mdspan<float, extents_type, right_padded_at_run_time> right(
      elements.data(), right_mapping(extents_type(3, 4), 7));
  expect_round_trip(left);
  expect_round_trip(right);
  EXPECT_EQ(to_dlpack_tensor(left, some_device).strides()[1], 5);
  EXPECT_EQ(to_dlpack_tensor(right, some_device).strides()[0], 7);
}

TEST(ToMdspanOfPaddedLayouts, TakesTheDistanceFromTheStrides) {
  std::array<float, 64> elements{};
  using extents_type = Kokkos::dextents<int, 3>;
  const Kokkos::mdspan<float, extents_type, right_padded> view(elements.data(),
                                                               extents_type(2, 3, 5));
  using run_time_view = Kokkos::mdspan<float, extents_type, right_padded_at_run_time>;
  using plain_view = Kokkos::mdspan<float, extents_type, Kokkos::layout_stride>;
  const auto wrapper = to_dlpack_tensor(view, some_device);
  const DLTensor tensor = wrapper.get();
  const auto back = usm_dlpack::to_mdspan<run_time_view>(tensor);
  EXPECT_EQ(back.mapping().stride(0), 24);
  EXPECT_EQ(back.mapping().stride(1), 8);
  EXPECT_EQ(usm_dlpack::to_mdspan<plain_view>(tensor).mapping().stride(1), 8);
}

TEST(ToMdspanOfPaddedLayouts, TakesTheDistanceAcrossADimensionOfExtentOne) {
  std::array<float, 64> elements{};
  using extents_type = Kokkos::dextents<int, 3>;
  using left_mapping = left_padded_at_run_time::mapping<extents_type>;
  using right_mapping = right_padded_at_run_time::mapping<extents_type>;
  expect_round_trip(Kokkos::mdspan<float, extents_type, left_padded_at_run_time>(
      elements.data(), left_mapping(extents_type(2, 1, 3), 8)));
  expect_round_trip(Kokkos::mdspan<float, extents_type, right_padded_at_run_time>(
      elements.data(), right_mapping(extents_type(3, 1, 2), 8)));
}

TEST(ToMdspanOfPaddedLayouts, RefusesStridesThatNoPaddingMakes) {
  std::array<float, 64> elements{};
  using extents_type = Kokkos::dextents<int, 3>;
  using mapping_type = Kokkos::layout_stride::mapping<extents_type>;
  const Kokkos::mdspan<float, extents_type, Kokkos::layout_stride> view(
      elements.data(), mapping_type(extents_type(2, 3, 5), std::array<int, 3>{25, 8, 1}));
  using run_time_view = Kokkos::mdspan<float, extents_type, right_padded_at_run_time>;
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_REFUSAL(usm_dlpack::to_mdspan<run_time_view>(wrapper.get()),
                 usm_dlpack::errc::layout_mismatch, "strides[0]",
                 "15 elements for the view's layout", "25");
}

TEST(ToMdspanOfPaddedLayouts, RefusesAPaddingWhoseStridesTheIndexTypeDoesNotHold) {
  std::array<std::int64_t, 3> shape{2, 2, 2};
  std::array<std::int64_t, 3> strides{1, std::int64_t{1} << 30, 5};
  alignas(64) std::array<float, 1> element{};
  DLTensor tensor{};
  tensor.data = element.data();
  tensor.ndim = 3;
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  using left_view = Kokkos::mdspan<float, Kokkos::dextents<int, 3>, left_padded_at_run_time>;
  EXPECT_REFUSAL(usm_dlpack::to_mdspan<left_view>(tensor), usm_dlpack::errc::layout_mismatch,
                 "strides[1]", "2 elements for the view's layout", "1073741824");
}

TEST(ToMdspanOfPaddedLayouts, TakesStaticExtents) {
  std::array<float, 64> elements{};
  using extents_type = Kokkos::extents<int, 3, 5>;
  expect_round_trip(
      Kokkos::mdspan<float, extents_type, left_padded>(elements.data(), extents_type()));
  expect_round_trip(
      Kokkos::mdspan<float, extents_type, right_padded>(elements.data(), extents_type()));
}

template <class Layout, class Index, std::size_t Rank>
void expect_no_padding(std::array<std::int64_t, Rank> shape,
                       std::array<std::int64_t, Rank> strides) {
  alignas(64) static std::array<float, 1> elements{};
  const DLTensor tensor{elements.data(),
                        some_device,
                        static_cast<std::int32_t>(Rank),
                        {kDLFloat, 32, 1},
                        shape.data(),
                        strides.data(),
                        0};
  using view = Kokkos::mdspan<float, Kokkos::dextents<Index, Rank>, Layout>;
  EXPECT_THROW(static_cast<void>(usm_dlpack::to_mdspan<view>(tensor)),
               usm_dlpack::conversion_error);
}

TEST(ToMdspanOfPaddedLayouts, RefusesAPaddingThatTheTypeOrTheIndexTypeExcludes) {
  expect_no_padding<right_padded, int, 2>({4, 3}, {7, 1});
  expect_no_padding<left_padded, int, 2>({3, 4}, {1, 4});
  expect_no_padding<right_padded_at_run_time, int, 2>({4, 3}, {2, 1});
  expect_no_padding<left_padded_at_run_time, int, 2>({3, 4}, {1, 2});
  constexpr std::int64_t huge = std::int64_t{1} << 30;
  expect_no_padding<right_padded_at_run_time, int, 4>({2, 2, 2, 2}, {1, 1, huge, 1});
  expect_no_padding<left_padded_at_run_time, int, 4>({2, 2, 2, 2}, {1, huge, 1, 1});
  expect_no_padding<right_padded_at_run_time, std::uint8_t, 3>({2, 2, 2}, {0, 128, 1});
  expect_no_padding<left_padded_at_run_time, std::uint8_t, 3>({2, 2, 2}, {1, 128, 0});
}

TEST(ToDlpackOfPaddedLayouts, SaysTheDistanceThatThePaddingMakes) {
  std::array<float, 64> elements{};
  using extents_type = Kokkos::extents<int, 3, 5>;
  const Kokkos::mdspan<float, extents_type, right_padded> view(elements.data(),
                                                               extents_type());
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.strides()[0], 8);
  EXPECT_EQ(wrapper.strides()[1], 1);
}

TEST(ToDlpackOfPaddedLayouts, KeepsShapeAndStridesOfAnEmptyView) {
  std::array<float, 1> elements{};
  using extents_type = Kokkos::dextents<int, 2>;
  const Kokkos::mdspan<float, extents_type, left_padded> view(elements.data(),
                                                              extents_type(0, 4));
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, nullptr);
  expect_round_trip(view);
}

TEST(RelaxedLayout, IsMadeOfAPaddedOneAndEqualToIt) {
  using extents = Kokkos::dextents<int, 2>;
  using relaxed = usm_dlpack::layout_relaxed::mapping<extents>;
  const right_padded::mapping<extents> rows(extents(2, 3));
  const left_padded_at_run_time::mapping<extents> columns(extents(2, 3), 5);
  const relaxed of_rows = rows;
  const relaxed of_columns = columns;
  EXPECT_EQ(of_rows.strides(), (std::array<std::int64_t, 2>{8, 1}));
  EXPECT_EQ(of_columns.strides(), (std::array<std::int64_t, 2>{1, 5}));
  EXPECT_TRUE(of_rows == rows && rows == of_rows && of_columns == columns);
  EXPECT_TRUE(of_rows != columns && columns != of_rows && rows != of_columns);
}

TEST(ToDlpackOfSubmdspan, KeepsEveryElementOfASlice) {
  alignas(64) std::array<int, 60> elements{};
  const Kokkos::mdspan<int, Kokkos::dextents<int, 3>> whole(elements.data(), 3, 4, 5);
  expect_round_trip(Kokkos::submdspan(whole, 1, Kokkos::full_extent, std::pair{1, 4}));
  expect_round_trip(Kokkos::submdspan(whole, std::pair{1, 3}, 2, Kokkos::full_extent));
  expect_round_trip(Kokkos::submdspan(whole, 2, 3, 4));
  expect_round_trip(Kokkos::submdspan(whole, std::pair{2, 2}, 0, Kokkos::full_extent));
}

}  // namespace
