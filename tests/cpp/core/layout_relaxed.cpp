// SPDX-License-Identifier: Apache-2.0
//
// `layout_relaxed` as the layout of an mdspan: elements are read and written through it.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>

namespace {

using usm_dlpack::layout_relaxed;
using extents_2d = md::dextents<int, 2>;
using mapping_2d = layout_relaxed::mapping<extents_2d>;
using view_2d = md::mdspan<int, extents_2d, layout_relaxed>;

std::array<int, 24> counted() {
  std::array<int, 24> elements{};
  std::iota(elements.begin(), elements.end(), 0);
  return elements;
}

int& at(const view_2d& view, int i, int j) {
  return view.accessor().access(view.data_handle(),
                                static_cast<std::size_t>(view.mapping()(i, j)));
}

TEST(RelaxedLayout, ReadsASliceOfNumPyBackwards) {
  auto elements = counted();
  // numpy.arange(24).reshape(4, 6)[::-1, 1::2]: strides (-6, 2), offset 19.
  const view_2d view(elements.data(), mapping_2d(extents_2d(4, 3), {-6, 2}, 19));
  EXPECT_EQ(at(view, 0, 0), 19);
  EXPECT_EQ(at(view, 0, 2), 23);
  EXPECT_EQ(at(view, 3, 0), 1);
  EXPECT_EQ(view.stride(0), -6);
  EXPECT_EQ(view.mapping().required_span_size(), 24);
}

TEST(RelaxedLayout, PutsTheHandleAtTheLowestAddressUnlessToldOtherwise) {
  auto elements = counted();
  const view_2d view(elements.data() + 1, mapping_2d(extents_2d(4, 3), {-6, 2}));
  EXPECT_EQ(at(view, 0, 0), 19);
  EXPECT_EQ(at(view, 3, 0), 1);
}

TEST(RelaxedLayout, WritesOneElementOfABroadcastForAll) {
  auto elements = counted();
  const view_2d view(elements.data(), mapping_2d(extents_2d(4, 3), {0, 1}));
  at(view, 2, 1) = 100;
  EXPECT_EQ(at(view, 0, 1), 100);
  EXPECT_EQ(elements[1], 100);
  EXPECT_FALSE(view.is_unique());
}

TEST(RelaxedLayout, AnswersForTheMdspanThatHoldsIt) {
  auto elements = counted();
  const view_2d view(elements.data(), mapping_2d(extents_2d(2, 3), {-3, -1}));
  EXPECT_TRUE(view.is_unique());
  EXPECT_TRUE(view.is_exhaustive());
  EXPECT_TRUE(view.is_strided());
  EXPECT_FALSE(view_2d::is_always_unique());
}

TEST(RelaxedLayout, DoesNotOverflowForABroadcastBeyondEveryProduct) {
  using extents_type = md::dextents<std::int64_t, 2>;
  const std::int64_t big = std::int64_t{1} << 62;
  const layout_relaxed::mapping<extents_type> mapping(extents_type(big, big), {0, 0});
  EXPECT_EQ(mapping.required_span_size(), 1);
  EXPECT_FALSE(mapping.is_exhaustive());
  EXPECT_FALSE(mapping.is_unique());
}

TEST(RelaxedLayout, CopiesWithTheViewThatHoldsIt) {
  auto elements = counted();
  view_2d view(elements.data(), mapping_2d(extents_2d(2, 3), {3, 1}));
  const view_2d reversed(elements.data(), mapping_2d(extents_2d(2, 3), {-3, -1}));
  EXPECT_TRUE(view.mapping() != reversed.mapping());
  view = reversed;
  EXPECT_TRUE(view.mapping() == reversed.mapping());
  EXPECT_EQ(at(view, 0, 0), 5);
}

}  // namespace
