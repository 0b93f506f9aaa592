// SPDX-License-Identifier: Apache-2.0
//
// One property for every view: its DLTensor has the same extents, strides, dtype and element
// addresses, and is empty where the view is; and `to_mdspan` makes the same view of it, and of
// a managed tensor. Each type of view costs the compiler a quarter of a second, so layouts,
// ranks, index types, extents and elements are met in turn and not in every combination.
#include <allocation_counter.hpp>
#include <odd_views.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using namespace usm_dlpack_test;
using usm_dlpack::layout_relaxed;

// Every index and span of these extents, with the strides below, is below 128: an int8_t holds
// them.
constexpr std::array<int, 8> sizes{2, 3, 1, 2, 1, 2, 2, 1};

template <class Element>
Element* memory_of() {
  alignas(64) static std::array<Element, 256> elements{};
  return elements.data();
}

// --- Mappings of each layout ----------------------------------------------------------------

/// Twice the strides of C order: a gap behind each element.
template <class Number, class Extents>
std::array<Number, Extents::rank()> gapped_strides(const Extents& extents) {
  std::array<Number, Extents::rank()> strides{};
  int product = 2;
  for (std::size_t r = Extents::rank(); r-- > 0;) {
    strides[r] = static_cast<Number>(product);
    product *= extents.extent(r) == 0 ? 1 : static_cast<int>(extents.extent(r));
  }
  return strides;
}

template <class Layout, class Extents>
auto mapping_of(const Extents& extents) {
  using mapping = typename Layout::template mapping<Extents>;
  using index_type = typename Extents::index_type;
  [[maybe_unused]] constexpr std::size_t rank = Extents::rank();
  if constexpr (std::is_same_v<Layout, md::layout_stride>) {
    // The array that mapping takes: cuda::std has its own.
    std::decay_t<decltype(std::declval<const mapping&>().strides())> strides{};
    const auto gapped = gapped_strides<index_type>(extents);
    for (std::size_t r = 0; r < rank; ++r) {
      strides[r] = gapped[r];
    }
    return mapping(extents, strides);
  } else if constexpr (std::is_same_v<Layout, layout_relaxed>) {
    auto strides = gapped_strides<std::int64_t>(extents);
    for (std::size_t r = 0; r < rank; r += 2) {
      strides[r] = -strides[r];  // reversed
    }
    if constexpr (rank > 1) {
      strides[1] = 0;  // broadcast
    }
    return mapping(extents, strides);
  } else if constexpr (std::is_same_v<Layout, odd::layout_anchored>) {
    auto strides = gapped_strides<index_type>(extents);
    auto first = index_type{5};
    if constexpr (rank > 0 && std::is_signed_v<index_type>) {
      if (extents.extent(0) != 0) {
        first = static_cast<index_type>(first + strides[0] * (extents.extent(0) - 1));
      }
      strides[0] = static_cast<index_type>(-strides[0]);
    }
    return mapping(extents, strides, first, index_type{110});
  } else if constexpr (std::is_same_v<Layout, odd::layout_stepped>) {
    return mapping(extents, gapped_strides<index_type>(extents));
  } else {
    return mapping(extents);
  }
}

// --- Extents of each rank -------------------------------------------------------------------

template <class Index, std::size_t... R>
auto dynamic_extents(std::index_sequence<R...>) {
  return md::dextents<Index, sizeof...(R)>(static_cast<Index>(sizes[R])...);
}
template <class Index, std::size_t... R>
auto static_extents(std::index_sequence<R...>) {
  return md::extents<Index, static_cast<std::size_t>(sizes[R])...>();
}
/// Every second extent static.
template <class Index, std::size_t... R>
auto mixed_extents(std::index_sequence<R...>) {
  return md::extents<Index, (R % 2 == 0 ? static_cast<std::size_t>(sizes[R])
                                        : static_cast<std::size_t>(-1))...>(
      static_cast<Index>(sizes[R])...);
}
/// The extent of one dimension is 0.
template <class Index, std::size_t... R>
auto extents_empty_in(std::size_t dimension, std::index_sequence<R...>) {
  return md::dextents<Index, sizeof...(R)>(
      static_cast<Index>(R == dimension ? 0 : sizes[R])...);
}

// --- The property ---------------------------------------------------------------------------

void expect_faithful(const DLTensor& tensor, DLDataType dtype, std::size_t allocated,
                     const view_facts& facts) {
  EXPECT_EQ(allocated, 0U);
  expect_same_elements(tensor, facts);
  EXPECT_EQ(tensor.data == nullptr, facts.addresses().empty());
  EXPECT_EQ(tensor.device.device_type, some_device.device_type);
  EXPECT_EQ(tensor.device.device_id, some_device.device_id);
  EXPECT_TRUE(usm_dlpack::same_data_type(tensor.dtype, dtype));
}

/// Whether `to_mdspan` can make the layout: its mapping from extents, or extents and strides.
template <class Layout>
constexpr bool comes_back = !std::is_same_v<Layout, odd::layout_anchored>;

template <class Element, class Layout, class Extents>
void expect_round_trip(const Extents& extents) {
  using view_type = md::mdspan<Element, Extents, Layout>;
  const view_type view(memory_of<std::remove_cv_t<Element>>(), mapping_of<Layout>(extents));
  const view_facts facts = facts_of(view);
  const std::size_t allocated = allocations();
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, some_device);
  const DLTensor tensor = wrapper.get();
  expect_faithful(tensor, usm_dlpack::data_type_v<Element>, allocations() - allocated, facts);
  const auto managed = usm_dlpack::to_managed_tensor(view, some_device, 0);
  EXPECT_EQ(managed->flags, std::is_const_v<Element> ? usm_dlpack::flag::read_only : 0U);
  if constexpr (comes_back<Layout>) {
    const auto back = usm_dlpack::to_mdspan<view_type>(tensor);
    expect_same_view(facts_of(back), facts);
    const auto back_from_managed = usm_dlpack::to_mdspan<view_type>(*managed);
    expect_same_view(facts_of(back_from_managed), facts);
  }
}

template <class Layout, class Index, std::size_t Rank>
void expect_round_trips_of_rank() {
  const ::testing::ScopedTrace trace(__FILE__, __LINE__,
                                     "rank " + std::to_string(Rank) + ", " +
                                         (std::is_signed_v<Index> ? "signed" : "unsigned") +
                                         " index of bytes " + std::to_string(sizeof(Index)));
  constexpr auto dimensions = std::make_index_sequence<Rank>{};
  expect_round_trip<float, Layout>(dynamic_extents<Index>(dimensions));
  for (std::size_t r = 0; r < Rank; ++r) {
    expect_round_trip<float, Layout>(extents_empty_in<Index>(r, dimensions));
  }
}

template <class Layout>
class RoundTrip : public ::testing::Test {};
using layouts = ::testing::Types<md::layout_right, md::layout_left, md::layout_stride,
                                 layout_relaxed, odd::layout_anchored, odd::layout_stepped>;
struct layout_names {
  template <class Layout>
  static std::string GetName(int number) {
    constexpr std::array<const char*, 6> names{"Right",   "Left",     "Stride",
                                               "Relaxed", "Anchored", "Stepped"};
    return names.at(static_cast<std::size_t>(number));
  }
};
TYPED_TEST_SUITE(RoundTrip, layouts, layout_names);

TYPED_TEST(RoundTrip, KeepsEveryElementOfRanksAndIndexTypes) {
  expect_round_trips_of_rank<TypeParam, std::int64_t, 0>();
  expect_round_trips_of_rank<TypeParam, int, 1>();
  expect_round_trips_of_rank<TypeParam, std::int8_t, 2>();
  expect_round_trips_of_rank<TypeParam, std::uint64_t, 3>();
  expect_round_trips_of_rank<TypeParam, std::int8_t, 8>();
}

TYPED_TEST(RoundTrip, KeepsStaticAndMixedExtentsAndCv) {
  expect_round_trip<short, TypeParam>(static_extents<int>(std::make_index_sequence<3>{}));
  expect_round_trip<const volatile double, TypeParam>(
      mixed_extents<unsigned>(std::make_index_sequence<5>{}));
}

template <class... Elements>
void expect_round_trips_of_elements() {
  constexpr auto dimensions = std::make_index_sequence<2>{};
  (expect_round_trip<Elements, layout_relaxed>(dynamic_extents<int>(dimensions)), ...);
}

TEST(RoundTripOfElements, KeepsEveryElement) {
  using namespace usm_dlpack::detail;
  expect_round_trips_of_elements<bool, signed char, const unsigned short, long, int128,
                                 float16, const double, std::complex<float>>();
}

}  // namespace
