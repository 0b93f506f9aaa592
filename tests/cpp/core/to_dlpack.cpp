// SPDX-License-Identifier: Apache-2.0
//
// What `to_dlpack_tensor` makes of views at the edges: first elements that are not at index 0,
// empty views, numbers that no DLTensor holds, accessors and views of users.
#include <allocation_counter.hpp>
#include <odd_views.hpp>
#include <view_elements.hpp>

namespace test_to_dlpack {

using namespace usm_dlpack_test;

constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t beyond_int64 = std::uint64_t{1} << 63;
constexpr std::int64_t two_to_32 = std::int64_t{1} << 32;

using any_2d = md::dextents<std::int64_t, 2>;

// --- The first element ---------------------------------------------------------------------

TEST(ToDlpack, ExportsAFirstElementThatIsNotAtIndexZero) {
  std::array<int, 12> elements{};
  using scalar = md::extents<int>;
  const md::mdspan<int, scalar, odd::layout_anchored> anchored(
      elements.data(), odd::layout_anchored::mapping<scalar>(scalar(), {}, 3));
  EXPECT_EQ(to_dlpack_tensor(anchored, some_device).data(), &elements[3]);
  const md::mdspan<int, scalar, odd::layout_swapped> swapped(
      elements.data(), odd::layout_swapped::mapping<scalar>());
  EXPECT_EQ(to_dlpack_tensor(swapped, some_device).data(), &elements[1]) << "has no strides";
}

std::uintptr_t first_of(std::uintptr_t handle, std::int64_t index) {
  const odd::hand_written_view<double, std::int64_t, 1> view{
      reinterpret_cast<double*>(handle), {1}, {{1}, index}};
  return reinterpret_cast<std::uintptr_t>(to_dlpack_tensor(view, some_device).data());
}

TEST(ToDlpack, TakesAFirstElementAsFarAsAPointerReachesAndNoFarther) {
  constexpr std::int64_t reach = int64_max / 8;
  constexpr std::uintptr_t high = ~std::uintptr_t{63};
  EXPECT_EQ(first_of(64, reach), 64 + static_cast<std::uintptr_t>(reach) * 8);
  EXPECT_EQ(first_of(high, -reach), high - static_cast<std::uintptr_t>(reach) * 8);
  for (const std::int64_t index : {reach + 1, -reach - 1, int64_min}) {
    EXPECT_REFUSAL(first_of(high, index), errc::out_of_range, "element_offset");
  }
  std::uint8_t element = 0;
  for (const std::uint64_t index : {beyond_int64, ~std::uint64_t{0}}) {
    const odd::hand_written_view<std::uint8_t, std::uint64_t, 1> view{
        &element, {1}, {{1}, index}};
    EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::out_of_range, "element_offset");
  }
}

TEST(ToDlpack, GivesANullHandleToElementsNullDataAsTheCallerVouchesForIt) {
  const md::mdspan<float, any_2d, layout_relaxed> reversed(
      nullptr, layout_relaxed::mapping<any_2d>(any_2d(4, 2), {-1, 0}));
  const auto wrapper = to_dlpack_tensor(reversed, some_device);
  EXPECT_EQ(wrapper.data(), nullptr);
  EXPECT_EQ(wrapper.shape()[0], 4);
}

TEST(ToDlpack, AsksAnEmptyViewForNoFirstElement) {
  float element = 0;
  const odd::hand_written_view<float, std::uint64_t, 1> far{
      &element, {0}, {{1}, beyond_int64}};
  EXPECT_EQ(to_dlpack_tensor(far, some_device).data(), nullptr);
}

// The mapping's own strides overflow, if products of its index type are signed.
TEST(ToDlpack, GivesAnEmptyViewCompactStridesWhereTheMappingCannotComputeThem) {
  constexpr int most = std::numeric_limits<int>::max();
  const md::mdspan<float, md::dextents<int, 4>> view(nullptr, 0, most, most, 2);
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(wrapper.strides()[1], std::int64_t{most} * 2);
  EXPECT_EQ(wrapper.strides()[2], 2);
  const md::mdspan<float, md::dextents<std::uint16_t, 3>> promoted(nullptr, 0, 65535, 65535);
  EXPECT_EQ(to_dlpack_tensor(promoted, some_device).strides()[0], std::int64_t{65535} * 65535);
  using wrapping = odd::hand_written_view<float, std::uint64_t, 3>;
  const std::uint64_t big = beyond_int64 / 2;
  const auto wrapped =
      to_dlpack_tensor(wrapping{nullptr, {big, big, 0}, {{7, 8, 9}, 0}}, some_device);
  EXPECT_EQ(wrapped.strides()[2], 1);
  const md::mdspan<float, md::dextents<std::size_t, 3>> unsigned_extents(
      nullptr, 0, std::size_t{1} << 32, std::size_t{1} << 31);
  EXPECT_EQ(to_dlpack_tensor(unsigned_extents, some_device).shape()[1], std::int64_t{1} << 32);
}

TEST(ToDlpack, DoesNotTakeAProductThatWrapsForEmptiness) {
  float element = 0;
  const any_2d extents(two_to_32, two_to_32);
  const md::mdspan<float, any_2d, layout_relaxed> view(
      &element, layout_relaxed::mapping<any_2d>(extents, {0, 0}));
  EXPECT_EQ(to_dlpack_tensor(view, some_device).data(), &element);
}

// --- Extents and strides that no DLTensor holds ---------------------------------------------

template <class Integer>
void expect_outcome(const std::array<Integer, 2>& extents,
                    const std::array<Integer, 2>& strides, const char* refusal) {
  float element = 0;
  const odd::hand_written_view<float, Integer, 2> view{&element, extents, {strides, 0}};
  EXPECT_EQ(refusal_of([&] {
              const auto wrapper = to_dlpack_tensor(view, some_device);
              EXPECT_EQ(wrapper.data() == nullptr, extents[0] == 0 || extents[1] == 0);
              EXPECT_EQ(wrapper.shape()[0], static_cast<std::int64_t>(extents[0]));
              EXPECT_EQ(wrapper.strides()[1], static_cast<std::int64_t>(strides[1]));
            }),
            refusal);
}

TEST(ToDlpack, RefusesNumbersOutsideOfInt64) {
  constexpr auto most = static_cast<std::uint64_t>(int64_max);
  const char* const first_extent = "out_of_range of shape[0]";
  const char* const last_extent = "out_of_range of shape[1]";
  expect_outcome<std::uint64_t>({most, 1}, {1, most}, "nothing");
  expect_outcome<std::uint64_t>({1, beyond_int64}, {beyond_int64, 1}, last_extent);
  expect_outcome<std::uint64_t>({beyond_int64, beyond_int64}, {1, 1}, first_extent);
  expect_outcome<std::uint64_t>({1, 0}, {1, ~std::uint64_t{0}}, "out_of_range of strides[1]");
  expect_outcome<std::int64_t>({1, 1}, {int64_min, int64_min}, "nothing");
  expect_outcome<std::int64_t>({-1, -1}, {1, 1}, first_extent);
  expect_outcome<std::int8_t>({1, -1}, {1, 1}, last_extent);
  expect_outcome<std::int8_t>({2, 3}, {-128, 127}, "nothing");
#if defined(__SIZEOF_INT128__)
  using detail::int128;
  const int128 low_bits_are_1 = (int128{1} << 64) + 1;
  expect_outcome<int128>({2, 3}, {3, -1}, "nothing");
  expect_outcome<int128>({low_bits_are_1, 0}, {1, 1}, first_extent);
  expect_outcome<int128>({2, 3}, {-low_bits_are_1, 1}, "out_of_range of strides[0]");
#endif
}

#if defined(__SIZEOF_INT128__)
TEST(ToDlpack, WritesEveryDigitOf128Bits) {
  using detail::digits;
  using detail::int128;
  EXPECT_EQ(digits(int128{0}), "0");
  EXPECT_EQ(digits((int128{1} << 64) + 5), "18446744073709551621");
  EXPECT_EQ(digits(-(int128{1} << 126) * 2), "-170141183460469231731687303715884105728");
}
#endif

// --- Layouts and accessors that only their author can vouch for -----------------------------

template <class Accessor>
void expect_data_through() {
  std::array<float, 6> elements{};
  const md::mdspan<float, md::dextents<int, 1>, md::layout_right, Accessor> view(
      elements.data(), 6);
  EXPECT_EQ(to_dlpack_tensor(view, some_device).data(), elements.data());
}

TEST(ToDlpack, TakesPlainAndOptedInAccessorsAndViewsOfNoMdspanLibrary) {
  expect_data_through<odd::plain_accessor<float>>();
  expect_data_through<odd::vetted_accessor<float>>();
  expect_data_through<odd::restrict_accessor<float>>();
  std::array<int, 7> elements{};
  const odd::hand_written_view<const int, short, 2> view{
      elements.data() + 1, {2, 3}, {{3, 1}, -1}};
  const auto wrapper = to_dlpack_tensor(view, {kDLCUDA, -1});
  EXPECT_EQ(wrapper.data(), elements.data());
  EXPECT_EQ(wrapper.device().device_type, kDLCUDA);
  EXPECT_EQ(wrapper.device().device_id, -1);
}

TEST(ToDlpack, NeitherItNorToMdspanUsesTheHeap) {
  std::array<int, 6> elements{};
  using view_type = md::mdspan<int, md::dextents<int, 2>, layout_relaxed>;
  const md::mdspan<int, md::dextents<int, 2>> view(elements.data(), 2, 3);
  const allocation_count heap;
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(to_mdspan<view_type>(wrapper.get()).data_handle(), elements.data());
  EXPECT_EQ(heap.made(), 0U);
}

TEST(DlpackTensor, CopiesPointIntoThemselves) {
  std::array<int, 6> elements{};
  const md::mdspan<int, md::dextents<int, 2>> view(elements.data(), 2, 3);
  dlpack_tensor<2> copy;
  {
    const auto original = to_dlpack_tensor(view, some_device);
    copy = original;
    EXPECT_NE(copy.get().shape, original.get().shape);
  }
  EXPECT_EQ(copy.get().shape, copy.shape().data());
  EXPECT_EQ(copy.get().strides, copy.strides().data());
  expect_same_elements(copy.get(), facts_of(view));
}

}  // namespace test_to_dlpack
