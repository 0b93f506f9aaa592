// SPDX-License-Identifier: Apache-2.0
//
// One property for every view: its DLTensor has the same extents, strides, dtype and element
// addresses, and `to_mdspan` makes the same view of it, and of a managed tensor. Each type of
// view costs the compiler a quarter of a second, so layouts, ranks, index types, extents and
// elements are met in turn and not in every combination.
#include <allocation_counter.hpp>
#include <view_elements.hpp>

#include <complex>

namespace {

using namespace usm_dlpack_test;

/// Every index of these extents, with twice the strides of C order, fits an int8_t.
constexpr std::array<int, 8> sizes{2, 3, 1, 2, 1, 2, 2, 1};

/// Twice the strides of C order; or reversed in every second dimension, and broadcast in the
/// second one.
template <class Stride, class Extents>
auto strides_for(const Extents& extents, bool any) {
  std::array<Stride, Extents::rank()> strides{};
  int product = 2;
  for (std::size_t r = Extents::rank(); r-- > 0;) {
    const int sign = !any ? 1 : r == 1 ? 0 : r % 2 == 0 ? -1 : 1;
    strides[r] = static_cast<Stride>(sign * product);
    product *= extents.extent(r) == 0 ? 1 : static_cast<int>(extents.extent(r));
  }
  return strides;
}

template <class Layout, class Extents>
auto mapping_of(const Extents& extents) {
  using mapping = typename Layout::template mapping<Extents>;
  using index_type = typename Extents::index_type;
  if constexpr (std::is_same_v<Layout, md::layout_stride>) {
    const auto given = strides_for<index_type>(extents, false);
    md_array<index_type, Extents::rank()> strides{};
    for (std::size_t r = 0; r < given.size(); ++r) strides[r] = given[r];
    return mapping(extents, strides);
  } else if constexpr (std::is_same_v<Layout, layout_relaxed>) {
    return mapping(extents, strides_for<std::int64_t>(extents, true));
  } else {
    return mapping(extents);
  }
}

template <class Element, class Layout, class Extents>
void expect_round_trip(const Extents& extents) {
  using view_type = md::mdspan<Element, Extents, Layout>;
  alignas(64) static std::array<std::remove_cv_t<Element>, 256> elements{};
  const view_type view(elements.data(), mapping_of<Layout>(extents));
  const element_facts facts = facts_of(view);
  const allocation_count heap;
  const auto wrapper = to_dlpack_tensor(view, some_device);
  EXPECT_EQ(heap.made(), 0U);
  const DLTensor tensor = wrapper.get();
  expect_same_elements(tensor, facts);
  EXPECT_EQ(std::vector<std::int64_t>(tensor.strides, tensor.strides + tensor.ndim),
            facts.strides);
  EXPECT_EQ(tensor.data == nullptr, facts.addresses.empty());
  EXPECT_EQ(tensor.byte_offset, 0U);
  EXPECT_TRUE(same_data_type(tensor.dtype, data_type_v<Element>));
  const allocation_count more;
  const auto back = to_mdspan<view_type>(tensor);
  EXPECT_EQ(more.made(), 0U);
  expect_same_elements(tensor, facts_of(back));
  const auto managed = to_managed_tensor(view, some_device, 0);
  expect_same_elements(tensor, facts_of(to_mdspan<view_type>(*managed)));
}

/// A view of some rank, and one that is empty in each dimension.
template <class Layout, class Index, std::size_t... R>
void expect_round_trips(std::index_sequence<R...>) {
  constexpr std::size_t rank = sizeof...(R);
  for (std::size_t empty = 0; empty <= rank; ++empty) {
    const ::testing::ScopedTrace trace(
        __FILE__, __LINE__, ::testing::Message() << "rank " << rank << ", empty in " << empty);
    expect_round_trip<float, Layout>(
        md::dextents<Index, rank>(static_cast<Index>(R == empty ? 0 : sizes[R])...));
  }
}

template <class Layout>
void expect_round_trips() {
  expect_round_trips<Layout, int>(std::make_index_sequence<0>{});
  expect_round_trips<Layout, std::uint64_t>(std::make_index_sequence<3>{});
  expect_round_trips<Layout, std::int8_t>(std::make_index_sequence<8>{});
}

TEST(RoundTrip, KeepsEveryElementOfEveryLayout) {
  expect_round_trips<md::layout_right>();
  expect_round_trips<md::layout_left>();
  expect_round_trips<md::layout_stride>();
  expect_round_trips<layout_relaxed>();
}

TEST(RoundTrip, KeepsStaticExtentsAndElementsOfManyTypes) {
  constexpr auto any = static_cast<std::size_t>(-1);
  expect_round_trip<short, md::layout_right>(md::extents<int, 2, 3, 1>());
  expect_round_trip<const std::complex<float>, md::layout_left>(
      md::extents<unsigned, 2, any>(3));
  expect_round_trip<bool, md::layout_stride>(md::extents<int, any, 3>(2));
  expect_round_trip<const volatile double, layout_relaxed>(md::extents<short, any, 3>(2));
  expect_round_trip<detail::int128, layout_relaxed>(md::dextents<int, 2>(2, 3));
}

}  // namespace
