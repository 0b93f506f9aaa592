// SPDX-License-Identifier: Apache-2.0
//
// One property for every dtype of the table, rank and layout, mutable and const, with
// elements, empty and broadcast: what goes out as a managed tensor comes back as the same
// view.
#include <mdspan_under_test.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using usm_dlpack::layout_relaxed;
constexpr std::size_t most_dimensions = 8;

/// Extents and strides of a view, apart from its types: what the compiler sees once.
struct drawn_view {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t first = 0;  ///< index of the first element
  bool empty = false;
};

enum class kind { full, empty, broadcast };
enum class order { rows, columns, gaps, any };

drawn_view draw(std::mt19937& random, std::size_t rank, order wanted, kind contents) {
  // mt19937 gives the same numbers everywhere, the standard distributions do not.
  const auto below = [&](unsigned count) {
    return static_cast<std::int64_t>(random() % count);
  };
  drawn_view view;
  for (std::size_t r = 0; r < rank; ++r) view.shape.push_back(1 + below(3));
  view.strides.assign(rank, 0);
  if (contents == kind::empty && rank > 0) {
    view.shape[random() % rank] = 0;
    view.empty = true;
  }
  std::int64_t step = wanted == order::gaps || wanted == order::any ? 1 + below(2) : 1;
  for (std::size_t k = 0; k < rank; ++k) {
    const std::size_t r = wanted == order::rows ? rank - 1 - k : k;
    view.strides[r] = step;
    step *= view.shape[r] == 0 ? 1 : view.shape[r];
  }
  for (std::size_t r = 0; wanted == order::any && r < rank; ++r) {
    if (contents == kind::broadcast) {
      view.strides[r] *= below(2);
    }
    if (below(2) == 0) {
      view.strides[r] = -view.strides[r];
    }
    view.first -=
        view.strides[r] < 0 && !view.empty ? (view.shape[r] - 1) * view.strides[r] : 0;
  }
  return view;
}

/// What the view says of itself, seen in its tensor.
void expect_said(const DLTensor& out, const drawn_view& view, const void* memory,
                 std::size_t element_size) {
  const auto first =
      static_cast<const char*>(memory) + view.first * static_cast<std::int64_t>(element_size);
  ASSERT_EQ(static_cast<std::size_t>(out.ndim), view.shape.size());
  EXPECT_EQ(static_cast<const char*>(out.data) + out.byte_offset, view.empty ? memory : first);
  EXPECT_EQ(static_cast<std::size_t>(out.dtype.bits * out.dtype.lanes), 8 * element_size);
  for (std::size_t r = 0; r < view.shape.size(); ++r) {
    EXPECT_EQ(out.shape[r], view.shape[r]) << "dimension " << r;
    if (view.shape[r] > 1 && !view.empty) {
      EXPECT_EQ(out.strides[r], view.strides[r]) << "dimension " << r;
    }
  }
  EXPECT_EQ(usm_dlpack::check_structure(out).empty, view.empty);
}

template <class Layout>
constexpr order order_of() {
  if constexpr (std::is_same_v<Layout, md::layout_right>) return order::rows;
  if constexpr (std::is_same_v<Layout, md::layout_left>) return order::columns;
  return std::is_same_v<Layout, md::layout_stride> ? order::gaps : order::any;
}

template <class Layout, class Extents>
auto make_mapping(const Extents& extents, const drawn_view& view) {
  using mapping = typename Layout::template mapping<Extents>;
  if constexpr (std::is_same_v<Layout, md::layout_stride> ||
                std::is_same_v<Layout, layout_relaxed>) {
    std::decay_t<decltype(std::declval<const mapping&>().strides())> strides{};
    for (std::size_t r = 0; r < view.strides.size(); ++r) {
      strides[r] = view.strides[r];
    }
    return mapping(extents, strides);
  } else {
    return mapping(extents);
  }
}

/// The same seen in the mapping that came back; one for each layout and rank.
template <class Mapping, std::size_t... R>
void expect_mapping(const Mapping& mapping, const drawn_view& view, const void* handle,
                    const void* memory, std::int64_t element_size, std::index_sequence<R...>) {
  const auto first = static_cast<std::int64_t>(mapping((R * 0)...));
  EXPECT_EQ(static_cast<const char*>(handle) + (view.empty ? 0 : first * element_size),
            static_cast<const char*>(memory) + (view.empty ? 0 : view.first * element_size));
  const std::vector<std::int64_t> shape{mapping.extents().extent(R)...};
  EXPECT_EQ(shape, view.shape);
  for (std::size_t r = 0; sizeof...(R) > 0 && r < sizeof...(R); ++r) {
    if constexpr (sizeof...(R) > 0) {
      if (view.shape[r] > 1 && !view.empty) {
        EXPECT_EQ(mapping.stride(r), view.strides[r]) << "dimension " << r;
      }
    }
  }
}

template <class Layout, std::size_t... R>
auto make_mapping_of_rank(const drawn_view& drawn, std::index_sequence<R...>) {
  using extents_type = md::dextents<std::int64_t, sizeof...(R)>;
  return make_mapping<Layout>(extents_type(drawn.shape[R]...), drawn);
}

template <class Element, class Layout, class Mapping, class Ranks>
void expect_round_trip(const Mapping& mapping, const drawn_view& drawn, void* memory,
                       Ranks ranks) {
  using view_type = md::mdspan<Element, typename Mapping::extents_type, Layout>;
  const view_type view(static_cast<Element*>(memory), mapping);
  const auto out = usm_dlpack::to_managed_tensor(view, usm_dlpack_test::some_device, 0);
  expect_said(out->dl_tensor, drawn, memory, sizeof(Element));
  EXPECT_EQ(out->flags, std::is_const_v<Element> ? usm_dlpack::flag::read_only : 0U);
  EXPECT_TRUE(
      usm_dlpack::same_data_type(out->dl_tensor.dtype, usm_dlpack::data_type_v<Element>));
  const auto back = usm_dlpack::to_mdspan<view_type>(*out);
  expect_mapping(back.mapping(), drawn, back.data_handle(), memory, sizeof(Element), ranks);
}

/// Const for every second pair of rank and dtype, so that each rank, dtype and layout is met
/// with both; all pairs twice would cost the compiler twice the time.
template <class Element, std::size_t Rank>
using if_odd_const =
    std::conditional_t<(Rank + usm_dlpack::data_type_v<Element>.code + sizeof(Element)) % 2 ==
                           0,
                       Element, const Element>;

template <class Element, class Layout, std::size_t Rank>
void expect_round_trips(std::mt19937& random) {
  const ::testing::ScopedTrace trace(__FILE__, __LINE__,
                                     usm_dlpack::to_string(usm_dlpack::data_type_v<Element>) +
                                         ", rank " + std::to_string(Rank));
  alignas(64) static std::array<unsigned char, 1 << 18> memory{};
  for (const kind contents : {kind::full, kind::empty, kind::broadcast}) {
    const drawn_view drawn = draw(random, Rank, order_of<Layout>(), contents);
    constexpr auto ranks = std::make_index_sequence<Rank>{};
    const auto mapping = make_mapping_of_rank<Layout>(drawn, ranks);
    expect_round_trip<if_odd_const<Element, Rank>, Layout>(mapping, drawn, memory.data(),
                                                           ranks);
  }
}

template <class Element, class Layout, std::size_t... Ranks>
void expect_round_trips_of_ranks(std::mt19937& random, std::index_sequence<Ranks...>) {
  (expect_round_trips<Element, Layout, Ranks>(random), ...);
}

template <class Layout, class... Elements>
void expect_round_trips_of_elements() {
  std::mt19937 random(20261121);
  constexpr auto ranks = std::make_index_sequence<most_dimensions + 1>{};
  (expect_round_trips_of_ranks<Elements, Layout>(random, ranks), ...);
}

template <class Layout>
void expect_round_trips_of_every_dtype() {
  using namespace usm_dlpack::detail;
  expect_round_trips_of_elements<Layout, bool, std::int8_t, std::int16_t, std::int32_t,
                                 std::int64_t, int128>();
  expect_round_trips_of_elements<Layout, std::uint8_t, std::uint16_t, std::uint32_t,
                                 std::uint64_t, uint128>();
  expect_round_trips_of_elements<Layout, float16, float, double, float128, std::complex<float>,
                                 std::complex<double>>();
}

TEST(RoundTripOfEveryDtype, GivesTheSameViewOfEveryRankWithLayoutRight) {
  expect_round_trips_of_every_dtype<md::layout_right>();
}

TEST(RoundTripOfEveryDtype, GivesTheSameViewOfEveryRankWithLayoutLeft) {
  expect_round_trips_of_every_dtype<md::layout_left>();
}

TEST(RoundTripOfEveryDtype, GivesTheSameViewOfEveryRankWithLayoutStride) {
  expect_round_trips_of_every_dtype<md::layout_stride>();
}

TEST(RoundTripOfEveryDtype, GivesTheSameReversedAndBroadcastViewOfEveryRank) {
  expect_round_trips_of_every_dtype<layout_relaxed>();
}

}  // namespace
