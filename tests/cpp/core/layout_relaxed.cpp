// SPDX-License-Identifier: Apache-2.0
//
// `layout_relaxed` as the layout of an mdspan: elements are read and written through it.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace {

using extents_2d = md::dextents<int, 2>;
using mapping_2d = usm_dlpack::layout_relaxed::mapping<extents_2d>;
using view_2d = md::mdspan<int, extents_2d, usm_dlpack::layout_relaxed>;

TEST(RelaxedLayout, IsReadAndWrittenThroughTheMdspanThatHoldsIt) {
  std::array<int, 24> elements{};
  std::iota(elements.begin(), elements.end(), 0);
  // numpy.arange(24).reshape(4, 6)[::-1, 1::2]: strides (-6, 2), offset 19.
  view_2d view(elements.data(), mapping_2d(extents_2d(4, 3), {-6, 2}, 19));
  const auto at = [&view](int i, int j) -> int& { return view[md_array<int, 2>{i, j}]; };
  EXPECT_EQ(at(0, 0), 19);
  EXPECT_EQ(at(0, 2), 23);
  EXPECT_EQ(at(3, 0), 1);
  EXPECT_EQ(view.stride(0), -6);
  EXPECT_TRUE(view.is_unique() && view.is_strided() && !view_2d::is_always_unique());
  view = view_2d(elements.data(), mapping_2d(extents_2d(4, 3), {0, 1}));
  at(2, 1) = 100;
  EXPECT_EQ(at(0, 1), 100);
  EXPECT_EQ(elements[1], 100);
  EXPECT_FALSE(view.is_unique());
}

}  // namespace
