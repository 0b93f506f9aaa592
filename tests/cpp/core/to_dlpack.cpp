// SPDX-License-Identifier: Apache-2.0
//
// What the exporter does at the edges: first elements that are not at index 0, emptiness,
// broadcasts beyond every product, opted-in accessors, hand-written views, and each refusal at
// run time.
#include <allocation_counter.hpp>
#include <odd_views.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

namespace {

using usm_dlpack::errc;
using usm_dlpack::layout_relaxed;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack_test::expect_same_elements;
using usm_dlpack_test::facts_of;
using usm_dlpack_test::some_device;

constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t beyond_int64 = std::uint64_t{1} << 63;
constexpr std::int64_t two_to_32 = std::int64_t{1} << 32;

const char* const extent_rule = "an extent from 0 to 9223372036854775807 elements";
const char* const stride_rule =
    "a stride from -9223372036854775808 to 9223372036854775807 elements";

using any_2d = md::dextents<std::int64_t, 2>;

// --- The first element
// ----------------------------------------------------------------------------------

TEST(ToDlpack, ExportsAFirstElementThatIsNotAtIndexZero) {
  std::array<int, 12> elements{};
  const odd::layout_anchored::mapping<any_2d> mapping(any_2d(2, 3), {3, 1}, 6, 12);
  const md::mdspan<int, any_2d, odd::layout_anchored> view(elements.data(), mapping);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 6);
  expect_same_elements(wrapper.get(), facts_of(view));
}

TEST(ToDlpack, ExportsTheFirstElementOfAViewOfRankZero) {
  std::array<int, 4> elements{};
  using scalar = md::extents<int>;
  const odd::layout_anchored::mapping<scalar> mapping(scalar(), {}, 3, 4);
  const md::mdspan<int, scalar, odd::layout_anchored> view(elements.data(), mapping);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 3);
  EXPECT_EQ(wrapper.get().ndim, 0);
  expect_same_elements(wrapper.get(), facts_of(view));
}

TEST(ToDlpack, ExportsAReversedViewFromItsHighestAddress) {
  std::array<short, 6> elements{};
  const layout_relaxed::mapping<any_2d> mapping(any_2d(2, 3), {-3, -1});
  const md::mdspan<short, any_2d, layout_relaxed> view(elements.data(), mapping);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 5);
  EXPECT_EQ(wrapper.get().strides[0], -3);
  EXPECT_EQ(wrapper.get().strides[1], -1);
}

TEST(ToDlpack, ExportsAFirstElementBeforeTheHandle) {
  std::array<int, 4> elements{};
  odd::hand_written_view<int, int, 1> view{elements.data() + 3, {2}, {{1}, -2}};
  EXPECT_EQ(to_dlpack_tensor(view, some_device).shape()[0], 2);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 1);
}

TEST(ToDlpack, RefusesAFirstElementBeyondThePointersReach) {
  using view_type = odd::hand_written_view<double, std::uint64_t, 1>;
  double element = 0;
  EXPECT_REFUSAL(to_dlpack_tensor(view_type{&element, {1}, {{1}, beyond_int64}}, some_device),
                 errc::offset_out_of_range, "element_offset",
                 "a first element within reach of a pointer", "9223372036854775808");
  EXPECT_REFUSAL(
      to_dlpack_tensor(view_type{&element, {1}, {{1}, std::uint64_t{1} << 60}}, some_device),
      errc::offset_out_of_range, "element_offset", "a first element within reach of a pointer",
      "1152921504606846976");
  using signed_view = odd::hand_written_view<double, std::int64_t, 1>;
  EXPECT_REFUSAL(to_dlpack_tensor(signed_view{&element, {1}, {{1}, int64_min}}, some_device),
                 errc::offset_out_of_range, "element_offset",
                 "a first element within reach of a pointer", "-9223372036854775808");
}

TEST(ToDlpack, DoesNotLookForTheFirstElementOfAnEmptyView) {
  using view_type = odd::hand_written_view<double, std::uint64_t, 1>;
  const auto wrapper =
      to_dlpack_tensor(view_type{nullptr, {0}, {{1}, beyond_int64}}, some_device);
  EXPECT_EQ(wrapper.get().data, nullptr);
}

// --- Emptiness
// ------------------------------------------------------------------------------------------

TEST(ToDlpack, GivesAnEmptyViewNullDataAndKeepsItsShapeAndStrides) {
  std::array<int, 8> elements{};
  const md::mdspan<int, md::dextents<int, 3>> view(elements.data(), 2, 0, 4);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  const DLTensor tensor = wrapper.get();
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(tensor.ndim, 3);
  expect_same_elements(tensor, facts_of(view));
}

TEST(ToDlpack, TakesAViewThatIsEmptyInSeveralDimensionsAsEmpty) {
  std::array<int, 8> elements{};
  const md::mdspan<int, md::dextents<int, 3>> twice(elements.data(), 0, 4, 0);
  EXPECT_EQ(to_dlpack_tensor(twice, some_device).data(), nullptr);
  const md::mdspan<int, md::dextents<int, 4>, md::layout_left> always(elements.data(), 0, 0, 0,
                                                                      0);
  EXPECT_EQ(to_dlpack_tensor(always, some_device).data(), nullptr);
}

TEST(ToDlpack, TakesAnEmptyViewOfNoMemory) {
  const md::mdspan<int, md::dextents<int, 1>> view(nullptr, 0);
  EXPECT_EQ(to_dlpack_tensor(view, some_device).shape()[0], 0);
}

TEST(ToDlpack, GivesANullHandleToElementsNullDataAsTheCallerVouchesForIt) {
  using extents = md::dextents<int, 1>;
  const md::mdspan<float, extents, layout_relaxed> reversed(
      nullptr, layout_relaxed::mapping<extents>(extents(4), {-1}));
  const auto wrapper = to_dlpack_tensor(reversed, some_device);
  EXPECT_EQ(wrapper.get().data, nullptr);
  EXPECT_EQ(wrapper.shape()[0], 4);
}

TEST(ToDlpack, KeepsTheDataOfABroadcastOfMoreIndicesThanAnIntegerCounts) {
  std::array<float, 3> elements{};
  const any_2d extents(two_to_32, two_to_32);
  const md::mdspan<float, any_2d, layout_relaxed> view(
      elements.data() + 1, layout_relaxed::mapping<any_2d>(extents, {0, 0}));
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 1);
  EXPECT_EQ(wrapper.get().shape[0], two_to_32);
  EXPECT_EQ(wrapper.get().strides[1], 0);
}

TEST(ToDlpack, SeesEmptinessBehindAProductThatWraps) {
  using view_type = odd::hand_written_view<float, std::uint64_t, 3>;
  float element = 0;
  const std::uint64_t big = std::uint64_t{1} << 62;
  const auto wrapper =
      to_dlpack_tensor(view_type{&element, {big, big, 0}, {{1, 1, 1}, 0}}, some_device);
  EXPECT_EQ(wrapper.get().data, nullptr);
  EXPECT_EQ(wrapper.get().shape[0], std::int64_t{1} << 62);
}

TEST(ToDlpack, SeesEmptinessInEachDimension) {
  float element = 0;
  for (std::size_t r = 0; r < 5; ++r) {
    std::array<std::int64_t, 5> sizes{2, 3, 4, 5, 6};
    sizes[r] = 0;
    const md::dextents<std::int64_t, 5> extents(sizes[0], sizes[1], sizes[2], sizes[3],
                                                sizes[4]);
    const md::mdspan<float, std::decay_t<decltype(extents)>, md::layout_right> right(&element,
                                                                                     extents);
    EXPECT_EQ(to_dlpack_tensor(right, some_device).data(), nullptr) << r;
    const md::mdspan<float, std::decay_t<decltype(extents)>, md::layout_left> left(&element,
                                                                                   extents);
    EXPECT_EQ(to_dlpack_tensor(left, some_device).data(), nullptr) << r;
    EXPECT_EQ(to_dlpack_tensor(left, some_device).shape(), sizes);
  }
}

TEST(ToDlpack, DoesNotTakeAProductThatWrapsForEmptiness) {
  float element = 0;
  const md::dextents<std::uint64_t, 4> extents(65536U, 65536U, 65536U, 65536U);
  const md::mdspan<float, std::decay_t<decltype(extents)>, md::layout_right> right(&element,
                                                                                   extents);
  EXPECT_EQ(to_dlpack_tensor(right, some_device).data(), &element);
  const md::mdspan<float, std::decay_t<decltype(extents)>, md::layout_left> left(&element,
                                                                                 extents);
  EXPECT_EQ(to_dlpack_tensor(left, some_device).data(), &element);
}

// --- Extents and strides outside int64_t
// ----------------------------------------------------------------

TEST(ToDlpack, TakesTheLargestExtentAndStride) {
  using view_type = odd::hand_written_view<char unsigned, std::uint64_t, 2>;
  std::array<unsigned char, 4> elements{};
  const auto wrapper = to_dlpack_tensor(
      view_type{
          elements.data(), {1, std::uint64_t{int64_max}}, {{std::uint64_t{int64_max}, 0}, 3}},
      some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 3);
  EXPECT_EQ(wrapper.get().shape[1], int64_max);
  EXPECT_EQ(wrapper.get().strides[0], int64_max);
}

TEST(ToDlpack, RefusesAnExtentAboveInt64) {
  using extents_type = md::dextents<std::uint64_t, 2>;
  float element = 0;
  const extents_type extents(1, beyond_int64);
  const layout_relaxed::mapping<extents_type> mapping(extents, {0, 0}, 0);
  const md::mdspan<float, extents_type, layout_relaxed> view(&element, mapping);
  EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::extent_out_of_range, "shape[1]",
                 extent_rule, "9223372036854775808");
}

TEST(ToDlpack, RefusesAStrideAboveInt64) {
  using extents_type = md::dextents<std::uint64_t, 2>;
  float element = 0;
  const odd::layout_anchored::mapping<extents_type> mapping(
      extents_type(1, 1), {1, std::numeric_limits<std::uint64_t>::max()}, 0, 1);
  const md::mdspan<float, extents_type, odd::layout_anchored> view(&element, mapping);
  EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::stride_out_of_range, "strides[1]",
                 stride_rule, "18446744073709551615");
}

TEST(ToDlpack, RefusesAStrideAboveInt64BehindAProductThatWraps) {
  float element = 0;
  const std::uint64_t big = std::uint64_t{1} << 62;
  using extents_type = md::dextents<std::uint64_t, 4>;
  const md::mdspan<float, extents_type, md::layout_right> right(&element, 3U, big, 2U, 1U);
  EXPECT_REFUSAL(to_dlpack_tensor(right, some_device), errc::stride_out_of_range, "strides[0]",
                 stride_rule, "9223372036854775808");
  const md::mdspan<float, extents_type, md::layout_left> left(&element, 1U, 2U, big, 3U);
  EXPECT_REFUSAL(to_dlpack_tensor(left, some_device), errc::stride_out_of_range, "strides[3]",
                 stride_rule, "9223372036854775808");
}

TEST(ToDlpack, RefusesNegativeExtentsWhoseProductIsPositive) {
  float element = 0;
  using extents_type = md::dextents<int, 4>;
  const md::mdspan<float, extents_type, md::layout_right> right(&element, 2, -1, 3, -1);
  EXPECT_REFUSAL(to_dlpack_tensor(right, some_device), errc::extent_out_of_range, "shape[1]",
                 extent_rule, "-1");
  const md::mdspan<float, extents_type, md::layout_left> left(&element, 2, 3, -1, -1);
  EXPECT_REFUSAL(to_dlpack_tensor(left, some_device), errc::extent_out_of_range, "shape[2]",
                 extent_rule, "-1");
}

/// A view whose extents are of another integer type than its strides.
template <class Extent, class Stride>
struct view_of_two_integers : odd::hand_written_view<float, Stride, 4> {
  std::array<Extent, 4> counts{1, 1, 1, 1};
  constexpr Extent extent(std::size_t r) const { return counts[r]; }
};

TEST(ToDlpack, DoubtsExtentsAndStridesOfTwoIntegerTypes) {
  float element = 0;
  view_of_two_integers<std::int64_t, std::uint64_t> wide_strides;
  wide_strides.handle = &element;
  wide_strides.map.strides = {1, 1, beyond_int64, 1};
  EXPECT_REFUSAL(to_dlpack_tensor(wide_strides, some_device), errc::stride_out_of_range,
                 "strides[2]", stride_rule, "9223372036854775808");
  view_of_two_integers<std::uint64_t, std::int64_t> wide_extents;
  wide_extents.handle = &element;
  wide_extents.counts[1] = beyond_int64;
  EXPECT_REFUSAL(to_dlpack_tensor(wide_extents, some_device), errc::extent_out_of_range,
                 "shape[1]", extent_rule, "9223372036854775808");
}

TEST(ToDlpack, DoubtsExtentsOfALayoutWithoutARule) {
  float element = 0;
  using view_type = odd::hand_written_view<float, std::int64_t, 4>;
  for (std::size_t r = 0; r < 4; ++r) {
    view_type view{&element, {1, 1, 1, 1}, {{1, 1, 1, 1}, 0}};
    view.extents[r] = 0;
    EXPECT_EQ(to_dlpack_tensor(view, some_device).data(), nullptr) << r;
    for (const std::int64_t negative : {std::int64_t{-1}, int64_min}) {
      view.extents[r] = negative;
      EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::extent_out_of_range,
                     "shape[" + std::to_string(r) + "]", extent_rule,
                     std::to_string(negative));
    }
  }
}

template <class View>
void expect_doubts_of_all_extents_at_once(View view) {
  view.extents = {0, 0, 0, 0};
  EXPECT_EQ(to_dlpack_tensor(view, some_device).data(), nullptr);
  view.extents = {-1, -1, -1, -1};
  EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::extent_out_of_range, "shape[0]",
                 extent_rule, "-1");
}

// A doubt of one number must not take back that of another one.
TEST(ToDlpack, RefusesNumbersWhoseDoubtsWouldCancelEachOther) {
  float element = 0;
  expect_doubts_of_all_extents_at_once(
      odd::hand_written_view<float, std::int64_t, 4>{&element, {}, {{1, 1, 1, 1}, 0}});
  const auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_REFUSAL(
      to_dlpack_tensor(
          odd::hand_written_view<float, std::uint64_t, 2>{&element, {0, 1}, {{most, 1}, 0}},
          some_device),
      errc::stride_out_of_range, "strides[0]", stride_rule, "18446744073709551615");
  using compact = md::mdspan<float, md::dextents<std::uint64_t, 4>>;
  const compact large(&element, beyond_int64, 1U, 1U, 1U);
  EXPECT_REFUSAL(to_dlpack_tensor(large, some_device), errc::extent_out_of_range, "shape[0]",
                 extent_rule, "9223372036854775808");
  const compact large_and_empty(&element, 0U, 1U, 1U, beyond_int64);
  EXPECT_REFUSAL(to_dlpack_tensor(large_and_empty, some_device), errc::extent_out_of_range,
                 "shape[3]", extent_rule, "9223372036854775808");
  const compact two_steps(&element, 1U, 1U, std::uint64_t{1} << 32, std::uint64_t{1} << 31);
  EXPECT_REFUSAL(to_dlpack_tensor(two_steps, some_device), errc::stride_out_of_range,
                 "strides[0]", stride_rule, "9223372036854775808");
}

TEST(ToDlpack, RefusesNegativeNumbersWhateverTheirLowBits) {
  float element = 0;
  for (std::int64_t negative = -1; negative >= -65; --negative) {
    for (const std::int64_t extent : {negative, int64_min - negative}) {
      const odd::hand_written_view<float, std::int64_t, 2> view{
          &element, {extent, extent}, {{1, 1}, 0}};
      EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::extent_out_of_range,
                     "shape[0]", extent_rule, std::to_string(extent));
    }
    const auto stride = static_cast<std::uint64_t>(negative);
    const odd::hand_written_view<float, std::uint64_t, 2> view{
        &element, {1, 1}, {{stride, stride}, 0}};
    EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::stride_out_of_range,
                   "strides[0]", stride_rule, std::to_string(stride));
  }
}

TEST(ToDlpack, GivesAViewThatItsTypeSaysIsEmptyNullData) {
  float element = 0;
  const md::mdspan<float, md::extents<int, 2, 0, 3>> right(&element);
  EXPECT_EQ(to_dlpack_tensor(right, some_device).data(), nullptr);
  const md::mdspan<float, md::extents<std::int64_t, 0>, md::layout_left> left(&element);
  EXPECT_EQ(to_dlpack_tensor(left, some_device).data(), nullptr);
}

TEST(ToDlpack, RefusesANegativeExtentOfEverySignedIndexType) {
  float element = 0;
  EXPECT_REFUSAL(
      to_dlpack_tensor(odd::hand_written_view<float, std::int8_t, 1>{&element, {-1}, {}},
                       some_device),
      errc::extent_out_of_range, "shape[0]", extent_rule, "-1");
  EXPECT_REFUSAL(to_dlpack_tensor(
                     odd::hand_written_view<float, std::int16_t, 2>{&element, {0, -32768}, {}},
                     some_device),
                 errc::extent_out_of_range, "shape[1]", extent_rule, "-32768");
  EXPECT_REFUSAL(to_dlpack_tensor(
                     odd::hand_written_view<float, std::int32_t, 3>{&element, {1, -7, 0}, {}},
                     some_device),
                 errc::extent_out_of_range, "shape[1]", extent_rule, "-7");
  EXPECT_REFUSAL(to_dlpack_tensor(
                     odd::hand_written_view<float, std::int64_t, 1>{&element, {int64_min}, {}},
                     some_device),
                 errc::extent_out_of_range, "shape[0]", extent_rule, "-9223372036854775808");
}

TEST(ToDlpack, RefusesNumbersOfMoreThan64Bits) {
  __extension__ using wide = __int128;
  using view_type = odd::hand_written_view<float, wide, 2>;
  float element = 0;
  const wide beyond = (wide{1} << 64) + 1;  // its low bits are 1
  for (const wide number : {beyond, -beyond}) {
    EXPECT_THROW(static_cast<void>(to_dlpack_tensor(
                     view_type{&element, {2, number}, {{1, 1}, 0}}, some_device)),
                 usm_dlpack::conversion_error);
    EXPECT_THROW(static_cast<void>(to_dlpack_tensor(
                     view_type{&element, {2, 3}, {{number, 1}, 0}}, some_device)),
                 usm_dlpack::conversion_error);
  }
  const auto wrapper =
      to_dlpack_tensor(view_type{&element, {2, 3}, {{3, -1}, 0}}, some_device);
  EXPECT_EQ(wrapper.get().strides[1], -1);
  for (const wide other : {wide{2}, wide{0}, wide{-1}}) {
    EXPECT_REFUSAL(
        to_dlpack_tensor(view_type{&element, {-1, other}, {{1, 1}, 0}}, some_device),
        errc::extent_out_of_range, "shape[0]", extent_rule, "-1");
  }
  for (const wide other : {wide{2}, wide{0}}) {
    EXPECT_EQ(
        to_dlpack_tensor(view_type{&element, {0, other}, {{1, 1}, 0}}, some_device).data(),
        nullptr);
  }
}

TEST(ToDlpack, LooksAtAllExtentsBeforeAnyStride) {
  using view_type = odd::hand_written_view<float, std::uint64_t, 2>;
  float element = 0;
  EXPECT_REFUSAL(
      to_dlpack_tensor(
          view_type{&element, {1, beyond_int64}, {{beyond_int64, beyond_int64}, beyond_int64}},
          some_device),
      errc::extent_out_of_range, "shape[1]", extent_rule, "9223372036854775808");
  EXPECT_REFUSAL(
      to_dlpack_tensor(view_type{&element, {1, 1}, {{1, beyond_int64}, beyond_int64}},
                       some_device),
      errc::stride_out_of_range, "strides[1]", stride_rule, "9223372036854775808");
}

// --- Layouts and accessors that only their author can vouch for
// -----------------------------------------

TEST(ToDlpack, AsksTheObjectWhereTheLayoutMayBeStrided) {
  std::array<int, 6> elements{};
  using extents_type = md::dextents<int, 2>;
  using mapping_type = odd::layout_perhaps_swapped::mapping<extents_type>;
  using view_type = md::mdspan<int, extents_type, odd::layout_perhaps_swapped>;
  const view_type strided(elements.data(), mapping_type(extents_type(2, 3), false));
  const auto wrapper = to_dlpack_tensor(strided, some_device);
  expect_same_elements(wrapper.get(), facts_of(strided));

  const view_type swapped(elements.data(), mapping_type(extents_type(2, 3), true));
  EXPECT_REFUSAL(to_dlpack_tensor(swapped, some_device), errc::layout_not_strided, "layout",
                 "a mapping whose is_strided() is true", "one that answers false");
}

template <class Accessor>
void expect_data_through() {
  std::array<float, 6> elements{};
  using extents_type = md::dextents<int, 1>;
  const md::mdspan<float, extents_type, md::layout_right, Accessor> view(elements.data(), 6);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data());
  EXPECT_EQ(wrapper.get().shape[0], 6);
}

TEST(ToDlpack, TakesPlainAndOptedInAccessors) {
  expect_data_through<odd::plain_accessor<float>>();
  expect_data_through<odd::vetted_accessor<float>>();
  expect_data_through<odd::restrict_accessor<float>>();
}

TEST(ToDlpack, TakesOneElementOfALayoutWithoutStrides) {
  std::array<int, 2> elements{};
  const md::mdspan<int, md::extents<int>, odd::layout_swapped> view(
      elements.data(), odd::layout_swapped::mapping<md::extents<int>>());
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data() + 1) << "the mapping puts it there";
}

TEST(ToDlpack, TakesAViewOfNoMdspanLibrary) {
  std::array<int, 6> elements{};
  const odd::hand_written_view<const int, short, 2> view{elements.data(), {2, 3}, {{3, 1}, 0}};
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.get().data, elements.data());
  EXPECT_EQ(wrapper.get().shape[1], 3);
  EXPECT_EQ(wrapper.get().strides[0], 3);
}

// --- The result
// -----------------------------------------------------------------------------------------

TEST(ToDlpack, TakesTheDeviceAsItIsGiven) {
  float element = 0;
  const md::mdspan<float, md::extents<int, 1>> view(&element);
  for (const DLDevice device : {DLDevice{kDLCPU, 0}, DLDevice{kDLOneAPI, -1},
                                DLDevice{kDLCUDA, std::numeric_limits<std::int32_t>::max()}}) {
    const auto wrapper = to_dlpack_tensor(view, device);
    EXPECT_EQ(wrapper.get().device.device_type, device.device_type);
    EXPECT_EQ(wrapper.get().device.device_id, device.device_id);
  }
}

TEST(ToDlpack, RefusesWithoutLeakingAndAllocatesOnlyToSayWhy) {
  float element = 0;
  const odd::hand_written_view<float, int, 1> negative{&element, {-1}, {}};
  const usm_dlpack_test::allocation_count heap;
  EXPECT_THROW(static_cast<void>(to_dlpack_tensor(negative, some_device)),
               usm_dlpack::conversion_error);
  EXPECT_EQ(heap.made(), heap.freed());
}

TEST(DlpackTensor, CopiesPointIntoThemselves) {
  std::array<int, 6> elements{};
  const md::mdspan<int, md::dextents<int, 2>> view(elements.data(), 2, 3);
  const auto original = to_dlpack_tensor(view, some_device);
  const auto copy = original;
  EXPECT_NE(copy.get().shape, original.get().shape);
  EXPECT_NE(copy.get().strides, original.get().strides);
  EXPECT_EQ(copy.get().shape, copy.shape().data());
  EXPECT_EQ(copy.get().strides, copy.strides().data());
  EXPECT_EQ(copy.get().data, elements.data());
  expect_same_elements(copy.get(), facts_of(view));
}

TEST(DlpackTensor, SurvivesACopyByBytes) {
  std::array<int, 6> elements{};
  const md::mdspan<int, md::dextents<int, 2>, md::layout_left> view(elements.data(), 2, 3);
  const auto original = to_dlpack_tensor(view, some_device);
  usm_dlpack::dlpack_tensor<2> copy;
  std::memcpy(static_cast<void*>(&copy), &original, sizeof(copy));
  expect_same_elements(copy.get(), facts_of(view));
}

TEST(DlpackTensor, IsEmptyUntilAssignedTo) {
  usm_dlpack::dlpack_tensor<1> wrapper;
  EXPECT_EQ(wrapper.get().data, nullptr);
  EXPECT_EQ(wrapper.get().ndim, 1);
  EXPECT_EQ(wrapper.get().shape[0], 0);
  float element = 0;
  wrapper = to_dlpack_tensor(md::mdspan<float, md::extents<int, 1>>(&element), some_device);
  EXPECT_EQ(wrapper.get().data, &element);
}

}  // namespace
