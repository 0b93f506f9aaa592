// SPDX-License-Identifier: Apache-2.0
//
// Which padded extents a mapping may be made with: up to the last one that the extents and the
// index type allow, of left and right layouts alike.
#include <refusal.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <mdspan/mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::errc;
using usm_dlpack_test::some_device;
using right_padded = Kokkos::Experimental::layout_right_padded<8>;
using left_padded = Kokkos::Experimental::layout_left_padded<8>;
using right_padded_at_run_time =
    Kokkos::Experimental::layout_right_padded<Kokkos::dynamic_extent>;

template <class Layout>
bool may_pad(std::int64_t rows, std::int64_t columns, std::int64_t padding) {
  using extents_type = Kokkos::dextents<std::int64_t, 2>;
  const typename Layout::template mapping<extents_type> plain(extents_type(rows, columns));
  usm_dlpack::detail::strided_shape<2> given;
  given.shape = {rows, columns};
  return usm_dlpack::detail::may_pad<std::int8_t>(plain, given, padding);
}

/// A view of a tensor of some extents; null strides are compact row-major.
template <class View, std::size_t Rank>
View take_as(std::array<std::int64_t, Rank> shape, std::int64_t* strides = nullptr) {
  alignas(64) static std::array<float, 1> elements{};
  const DLTensor tensor{elements.data(),
                        some_device,
                        static_cast<std::int32_t>(Rank),
                        {kDLFloat, 32, 1},
                        shape.data(),
                        strides,
                        0};
  return usm_dlpack::to_mdspan<View>(tensor);
}

template <class Layout, std::size_t Rank>
auto take(std::array<std::int64_t, Rank> shape, std::array<std::int64_t, Rank> strides) {
  using view_type = Kokkos::mdspan<float, Kokkos::dextents<std::int8_t, Rank>, Layout>;
  return take_as<view_type, Rank>(shape, strides.data());
}

/// Exports a view of one element and takes it back.
template <class Index, std::size_t Rank, class Layout>
void expect_exchanged() {
  using extents_type = Kokkos::dextents<Index, Rank>;
  using view_type = Kokkos::mdspan<float, extents_type, Layout>;
  std::array<Index, Rank> ones{};
  ones.fill(1);
  float element = 0;
  const view_type view(&element, typename view_type::mapping_type(extents_type(ones)));
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.strides()[Rank / 2], view.mapping().stride(Rank / 2));
  EXPECT_EQ(usm_dlpack::to_mdspan<view_type>(wrapper.get()).data_handle(), &element);
}

TEST(PaddedLayouts, MayHavePaddingsThatTheIndexTypeHoldsForSmallExtentsAlone) {
  using namespace Kokkos::Experimental;
  expect_exchanged<signed char, 4, layout_left_padded<4>>();
  expect_exchanged<short, 5, layout_left_padded<256>>();
  expect_exchanged<short, 5, layout_right_padded<256>>();
  expect_exchanged<int, 8, layout_left_padded<16384>>();
}

TEST(EmptyViews, AreExportedWhateverTheProductOfTheOtherExtents) {
  using extents_type = Kokkos::dextents<int, 4>;
  constexpr int most = std::numeric_limits<int>::max();
  const Kokkos::mdspan<float, extents_type> view(nullptr, extents_type(0, most, most, most));
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.shape()[3], most);
  EXPECT_EQ(wrapper.strides()[1], std::int64_t{most} * most);  // which an int does not hold
  EXPECT_EQ(wrapper.get().data, nullptr);
}

TEST(ToMdspanOfPaddedLayouts, PadsTheContiguousDimensionToItsExtentOrMore) {
  EXPECT_FALSE(may_pad<Kokkos::layout_right>(2, 3, 2));
  EXPECT_TRUE(may_pad<Kokkos::layout_right>(2, 3, 3));
  EXPECT_TRUE(may_pad<Kokkos::layout_right>(2, 3, 4));
  EXPECT_TRUE(may_pad<Kokkos::layout_right>(4, 3, 3));
  EXPECT_FALSE(may_pad<Kokkos::layout_left>(3, 2, 2));
  EXPECT_TRUE(may_pad<Kokkos::layout_left>(3, 2, 3));
  EXPECT_TRUE(may_pad<Kokkos::layout_left>(3, 2, 4));
  EXPECT_TRUE(may_pad<Kokkos::layout_left>(3, 4, 3));
}

TEST(ToMdspanOfPaddedLayouts, PadsToAPositiveExtent) {
  EXPECT_FALSE(may_pad<Kokkos::layout_right>(3, 1, 0));
  EXPECT_FALSE(may_pad<Kokkos::layout_right>(3, 1, -1));
  EXPECT_TRUE(may_pad<Kokkos::layout_right>(3, 1, 1));
}

TEST(ToMdspanOfPaddedLayouts, PadsNoFartherThanTheIndexTypeReaches) {
  EXPECT_TRUE(may_pad<Kokkos::layout_right>(2, 3, 60));
  EXPECT_FALSE(may_pad<Kokkos::layout_right>(2, 3, 61));
  EXPECT_TRUE(may_pad<Kokkos::layout_left>(3, 2, 60));
  EXPECT_FALSE(may_pad<Kokkos::layout_left>(3, 2, 61));
  EXPECT_FALSE(may_pad<Kokkos::layout_right>(2, 3, INT64_MAX));
}

TEST(ToMdspanOfPaddedLayouts, RoundsTheContiguousExtentUpAndNoOther) {
  EXPECT_EQ((take<right_padded, 2>({1, 100}, {104, 1}).mapping().stride(0)), 104);
  EXPECT_EQ((take<left_padded, 2>({100, 1}, {1, 104}).mapping().stride(1)), 104);
  EXPECT_EQ((take<right_padded, 1>({125}, {1}).extent(0)), 125) << "there is nothing to pad";
  EXPECT_EQ((take<right_padded, 2>({15, 8}, {8, 1}).extent(0)), 15) << "15 times 8 is 120";
  const char* const rule = "a product that the view's index type int8_t holds";
  EXPECT_REFUSAL((take<right_padded, 2>({100, 1}, {1, 1})), errc::index_type_too_small,
                 "shape", rule, "a larger one");
  EXPECT_REFUSAL((take<left_padded, 2>({1, 100}, {1, 1})), errc::index_type_too_small, "shape",
                 rule, "a larger one");
  EXPECT_REFUSAL((take<right_padded, 2>({1, 121}, {121, 1})), errc::index_type_too_small,
                 "shape", rule, "a larger one");
}

// The rounded extent is one of the mapping's numbers, and the first that the reference
// implementation counts by.
TEST(ToMdspanOfPaddedLayouts, RefusesAnEmptyTensorWhosePaddedExtentTheIndexTypeDoesNotHold) {
  using namespace Kokkos::Experimental;
  using extents_2 = Kokkos::dextents<int, 2>;
  using extents_4 = Kokkos::dextents<int, 4>;
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const char* const rule = "a product that the view's index type int32_t holds";
  using right = Kokkos::mdspan<float, extents_2, layout_right_padded<4>>;
  EXPECT_REFUSAL((take_as<right, 2>({0, most})), errc::index_type_too_small, "shape", rule,
                 "a larger one");
  EXPECT_EQ((take_as<right, 2>({0, most - 3}).mapping().stride(0)), most - 3);
  using left = Kokkos::mdspan<float, extents_2, layout_left_padded<4>>;
  EXPECT_REFUSAL((take_as<left, 2>({most - 1, 0})), errc::index_type_too_small, "shape", rule,
                 "a larger one");
  using wide =
      Kokkos::mdspan<float, Kokkos::dextents<std::int64_t, 2>, layout_right_padded<4>>;
  EXPECT_REFUSAL((take_as<wide, 2>({0, INT64_MAX})), errc::index_type_too_small, "shape",
                 "a product that the view's index type int64_t holds", "a larger one");
  using at_run_time = Kokkos::mdspan<float, extents_4, right_padded_at_run_time>;
  EXPECT_REFUSAL((take_as<at_run_time, 4>({4, 0, 2, most})), errc::index_type_too_small,
                 "shape", rule, "a larger one");
  EXPECT_EQ((take_as<at_run_time, 4>({4, 0, 2, most / 4}).mapping().stride(2)), most / 4);
}

TEST(ToMdspanOfPaddedLayouts, TakesAnEmptyTensorWhosePaddedExtentsTheIndexTypeDoesNotHold) {
  EXPECT_EQ((take<right_padded, 2>({100, 0}, {1, 1}).extent(0)), 100);
}

TEST(ToMdspanOfPaddedLayouts, RefusesAnEmptyTensorWhosePlainExtentsTheIndexTypeDoesNotHold) {
  EXPECT_REFUSAL((take<right_padded, 3>({100, 100, 0}, {1, 1, 1})), errc::index_type_too_small,
                 "shape", "a product that the view's index type int8_t holds", "a larger one");
}

TEST(ToMdspanOfPaddedLayouts, GivesAnEmptyTensorNoPaddingOfItsOwn) {
  EXPECT_EQ((take<right_padded_at_run_time, 2>({2, 0}, {7, 1}).mapping().stride(0)), 0);
  EXPECT_EQ((take<right_padded_at_run_time, 3>({0, 3, 2}, {7, 5, 1}).mapping().stride(1)), 2);
}

}  // namespace
