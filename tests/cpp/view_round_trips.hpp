// SPDX-License-Identifier: Apache-2.0
//
// One property for every view: its DLTensor has the same extents, strides, dtype and element
// addresses, and is empty where the view is; and `to_mdspan` makes the same view of it. The
// files named `round_trips` ask it of layouts, ranks 0 to 8, index types, static and dynamic
// extents and cv; they are several because each view type costs a quarter of a second to
// build.
#pragma once

#include <allocation_counter.hpp>
#include <odd_views.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace usm_dlpack_test {

using usm_dlpack::layout_relaxed;

// Every index and span of these extents, with the strides below, is below 128: an int8_t holds
// them.
inline constexpr std::array<int, 8> sizes{2, 3, 1, 2, 1, 2, 2, 1};

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

inline void expect_faithful(const DLTensor& tensor, DLDataType dtype, std::size_t allocated,
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
inline constexpr bool comes_back = !std::is_same_v<Layout, odd::layout_anchored>;

template <class Element, class Layout, class Extents>
void expect_round_trip(const Extents& extents) {
  using view_type = md::mdspan<Element, Extents, Layout>;
  const view_type view(memory_of<std::remove_cv_t<Element>>(), mapping_of<Layout>(extents));
  const std::size_t allocated = allocations();
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, some_device);
  const DLTensor tensor = wrapper.get();
  expect_faithful(tensor, usm_dlpack::data_type_v<Element>, allocations() - allocated,
                  facts_of(view));
  if constexpr (comes_back<Layout>) {
    const auto back = usm_dlpack::to_mdspan<view_type>(tensor);
    expect_same_view(facts_of(back), facts_of(view));
  }
}

template <class Layout, class Index, std::size_t Rank>
void expect_round_trips_of_rank() {
  const ::testing::ScopedTrace trace(__FILE__, __LINE__, "rank " + std::to_string(Rank));
  constexpr auto dimensions = std::make_index_sequence<Rank>{};
  expect_round_trip<float, Layout>(dynamic_extents<Index>(dimensions));
  for (std::size_t r = 0; r < Rank; ++r) {
    expect_round_trip<float, Layout>(extents_empty_in<Index>(r, dimensions));
  }
}

template <class Layout, class Index, std::size_t... Ranks>
void expect_round_trips_of_ranks(std::index_sequence<Ranks...>) {
  const ::testing::ScopedTrace trace(
      __FILE__, __LINE__,
      std::string(std::is_signed_v<Index> ? "signed" : "unsigned") + " index of bytes " +
          std::to_string(sizeof(Index)));
  (expect_round_trips_of_rank<Layout, Index, Ranks>(), ...);
}

/// Every rank with the narrowest and the widest index type, and every index type with one
/// rank.
template <class Layout>
void expect_round_trips_of_layout() {
  expect_round_trips_of_ranks<Layout, std::int8_t>(std::make_index_sequence<9>{});
  expect_round_trips_of_ranks<Layout, std::uint64_t>(std::make_index_sequence<9>{});
  constexpr auto rank_3 = std::index_sequence<3>{};
  expect_round_trips_of_ranks<Layout, std::uint8_t>(rank_3);
  expect_round_trips_of_ranks<Layout, std::int16_t>(rank_3);
  expect_round_trips_of_ranks<Layout, std::uint16_t>(rank_3);
  expect_round_trips_of_ranks<Layout, std::int32_t>(rank_3);
  expect_round_trips_of_ranks<Layout, std::uint32_t>(rank_3);
  expect_round_trips_of_ranks<Layout, std::int64_t>(rank_3);
}

}  // namespace usm_dlpack_test
