// SPDX-License-Identifier: Apache-2.0
//
// A view whose layout can be made neither from extents nor from extents and strides, or whose
// accessor cannot be made of nothing, is refused in a sentence.
//
// clang-format off
// expect with_an_anchor: layout: expected a mapping that is made from extents, or from
// expect with_an_anchor: construct the view by hand after validate
// expect without_strides: layout: expected a mapping with stride\(r\), found one without strides;
// expect without_default: accessor: expected one that is made of nothing, found another;
// clang-format on
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/to_mdspan.hpp>

#if defined(USM_DLPACK_FIXED) || defined(without_default)
using layout = odd::layout_stepped;
#elif defined(without_strides)
using layout = odd::layout_swapped;
#else
using layout = odd::layout_anchored;
#endif
#if !defined(USM_DLPACK_FIXED) && defined(without_default)
struct scaled_accessor : odd::plain_accessor<float> {
  explicit scaled_accessor(int) {}
};
using accessor = scaled_accessor;
#else
using accessor = odd::plain_accessor<float>;
#endif
using view_type = md::mdspan<float, md::dextents<int, 2>, layout, accessor>;

view_type imported(const DLTensor& tensor) { return usm_dlpack::to_mdspan<view_type>(tensor); }
