// SPDX-License-Identifier: Apache-2.0
//
// A view whose layout is not made from extents in C or Fortran order, nor from extents and
// strides, or whose accessor cannot be made of nothing, is refused in a sentence.
//
// clang-format off
// expect: layout: expected right, left, a padded one of both, or a mapping
// expect: construct the view by hand after validate
// expect: accessor: expected one that is made of nothing, found another;
// clang-format on
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/to_mdspan.hpp>

// Each case calls `to_mdspan` itself: clang notes no other caller of it.
template <class Layout, class Accessor = odd::plain_accessor<float>>
using view_in = md::mdspan<float, md::dextents<int, 2>, Layout, Accessor>;

#if defined(USM_DLPACK_FIXED)
using anchored = odd::layout_stepped<>;
using perhaps_strided = md::layout_right;
using scaled_accessor = odd::plain_accessor<float>;
#else
using anchored = odd::layout_anchored;
using perhaps_strided = odd::layout_perhaps_strided;
struct scaled_accessor : odd::plain_accessor<float> {
  explicit scaled_accessor(int) {}
};
#endif

auto with_an_anchor(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_in<anchored>>(tensor);
}
auto with_strides_of_some(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_in<perhaps_strided>>(tensor);
}
auto without_default(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_in<odd::layout_stepped<>, scaled_accessor>>(tensor);
}
