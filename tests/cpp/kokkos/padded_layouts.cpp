// SPDX-License-Identifier: Apache-2.0
//
// The layouts of C++26 with a padding that the type fixes, and views of submdspan; only the
// reference implementation has both today. Other paddings are those of tests/fuzz/.
#include <view_elements.hpp>

namespace test_padded_layouts {

using namespace usm_dlpack_test;

template <class Layout, class Index, std::size_t Rank>
using view = Kokkos::mdspan<float, Kokkos::dextents<Index, Rank>, Layout>;
template <class Index, std::size_t Rank>
using left = view<Kokkos::Experimental::layout_left_padded<8>, Index, Rank>;
template <class Index, std::size_t Rank>
using right = view<Kokkos::Experimental::layout_right_padded<8>, Index, Rank>;

template <class View>
void expect_round_trip(const View& view) {
  const auto wrapper = to_dlpack_tensor(view, some_device);
  expect_same_elements(wrapper.get(), facts_of(view));
  expect_taken<View>(wrapper.get());
}

TEST(PaddedLayouts, KeepEveryElement) {
  alignas(64) std::array<float, 1024> elements{};
  expect_round_trip(left<int, 0>(elements.data()));
  expect_round_trip(left<int, 1>(elements.data(), 3));
  expect_round_trip(left<int, 3>(elements.data(), 3, 2, 3));
  expect_round_trip(right<int, 4>(elements.data(), 3, 2, 3, 2));
  // The index type holds the padding for small extents alone.
  using ones = Kokkos::extents<signed char, 1, 1, 1, 1>;
  expect_round_trip(Kokkos::mdspan<float, ones, Kokkos::Experimental::layout_left_padded<4>>(
      elements.data()));
}

template <class View>
View taken(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  const strided_tensor sample(std::move(shape), std::move(strides));
  return to_mdspan<View>(sample.tensor);
}

TEST(PaddedLayouts, HaveNoOtherPadding) {
  EXPECT_REFUSAL((taken<right<int, 2>>({4, 3}, {7, 1})), errc::layout_mismatch, "strides[0]");
  EXPECT_REFUSAL((taken<left<int, 2>>({3, 4}, {1, 4})), errc::layout_mismatch, "strides[1]");
}

TEST(PaddedLayouts, RoundTheContiguousExtentUpAndNoOther) {
  using right_2 = right<std::int8_t, 2>;
  using left_2 = left<std::int8_t, 2>;
  const errc code = errc::index_type_too_small;
  EXPECT_EQ(taken<right_2>({1, 100}, {104, 1}).mapping().stride(0), 104);
  EXPECT_EQ(taken<left_2>({100, 1}, {1, 104}).mapping().stride(1), 104);
  EXPECT_EQ((taken<right<std::int8_t, 1>>({125}, {1}).extent(0)), 125);
  EXPECT_EQ(taken<right_2>({15, 8}, {8, 1}).extent(0), 15) << "15 times 8 is 120";
  EXPECT_REFUSAL((taken<right_2>({100, 1}, {1, 1})), code, "shape");
  EXPECT_REFUSAL((taken<left_2>({1, 100}, {1, 1})), code, "shape");
  EXPECT_REFUSAL((taken<right_2>({1, 121}, {121, 1})), code, "shape");
}

// The rounded extent is one of the mapping's numbers, and the first that the reference
// implementation counts by.
TEST(PaddedLayouts, OfEmptyTensorsCountByTheRoundedExtent) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const errc code = errc::index_type_too_small;
  EXPECT_EQ((taken<right<int, 2>>({0, most - 7}, {1, 1}).mapping().stride(0)), most - 7);
  EXPECT_REFUSAL((taken<right<int, 2>>({0, most}, {1, 1})), code, "shape");
  EXPECT_REFUSAL((taken<left<int, 2>>({most - 1, 0}, {1, 1})), code, "shape");
  EXPECT_EQ((taken<right<std::int8_t, 2>>({100, 0}, {1, 1}).extent(0)), 100);
  EXPECT_REFUSAL((taken<right<std::int8_t, 3>>({100, 100, 0}, {1, 1, 1})), code, "shape");
}

TEST(Submdspan, KeepsEveryElementOfASlice) {
  alignas(64) std::array<int, 60> elements{};
  const Kokkos::mdspan<int, Kokkos::dextents<int, 3>> whole(elements.data(), 3, 4, 5);
  expect_round_trip(Kokkos::submdspan(whole, 1, Kokkos::full_extent, std::pair{1, 4}));
  expect_round_trip(Kokkos::submdspan(whole, std::pair{1, 3}, 2, Kokkos::full_extent));
}

}  // namespace test_padded_layouts
