// SPDX-License-Identifier: Apache-2.0
//
// What is no view, and views whose handle, accessor or layout a DLTensor cannot describe, are
// refused in a sentence. It is split where the header splits it, because g++ quotes the
// source.
//
// clang-format off
// expect: view: expected a type with the interface of mdspan, found another;
// expect: pass an mdspan by value or reference
// expect: data_handle: expected element_type\*, found a handle that is no such pointer
// expect: make an mdspan over the raw pointer
// expect: accessor: expected reference to be element_type&, found an accessor that
// expect: may change values; specialise is_plain_accessor_v if it does not
// expect: layout: expected a mapping with stride\(r\), found one without strides;
// expect: copy the elements to a strided layout first
// clang-format on
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>

#include <vector>

using extents_type = md::dextents<int, 2>;
constexpr DLDevice some_device{kDLOneAPI, 0};

/// The view of a case, and in its fixed twin a plain one.
#if defined(USM_DLPACK_FIXED)
template <class View>
using view_type = md::mdspan<float, extents_type>;
#else
template <class View>
using view_type = View;
#endif
template <class Accessor>
using view_by = view_type<md::mdspan<float, extents_type, md::layout_right, Accessor>>;
template <class Layout>
using view_in = view_type<md::mdspan<float, extents_type, Layout>>;

auto not_a_view(const view_type<std::vector<float>>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto by_index(const view_by<odd::indexed_accessor<float>>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto changing_values(const view_by<odd::doubling_accessor<float>>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto without_strides(const view_in<odd::layout_swapped>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
