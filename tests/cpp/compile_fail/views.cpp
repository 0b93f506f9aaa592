// SPDX-License-Identifier: Apache-2.0
//
// What is no view, and views whose handle, accessor or layout a DLTensor cannot describe, are
// refused in a sentence, by the bare and by the managed exporters. The sentence is split where
// the header splits it, because g++ quotes the source.
//
// clang-format off
// expect not_a_view: view: expected a type with the interface of mdspan, found another;
// expect not_a_view: pass an mdspan by value or reference
// expect by_index: data_handle: expected element_type\*, found a handle that is no such pointer
// expect by_index: make an mdspan over the raw pointer
// expect by_bytes: data_handle: expected element_type\*, found a handle that is no such pointer
// expect by_bytes: make an mdspan over the raw pointer
// expect changing_values: accessor: expected reference to be element_type&, found an accessor that
// expect changing_values: may change values; specialise is_plain_accessor_v if it does not
// expect without_strides: layout: expected a mapping with stride\(r\), found one without strides;
// expect without_strides: copy the elements to a strided layout first
// expect managed_values: accessor: expected reference to be element_type&, found an accessor that
// expect managed_values: may change values; specialise is_plain_accessor_v if it does not
// expect legacy_layout: layout: expected a mapping with stride\(r\), found one without strides;
// expect legacy_layout: copy the elements to a strided layout first
// clang-format on
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/managed.hpp>

#include <vector>

using extents_type = md::dextents<int, 2>;
using plain_view = md::mdspan<float, extents_type>;

#if defined(USM_DLPACK_FIXED)
using view_type = plain_view;
#elif defined(not_a_view)
using view_type = std::vector<float>;
#elif defined(by_index)
using view_type =
    md::mdspan<float, extents_type, md::layout_right, odd::indexed_accessor<float> >;
#elif defined(by_bytes)
using view_type =
    md::mdspan<float, extents_type, md::layout_right, odd::bytes_accessor<float> >;
#elif defined(changing_values) || defined(managed_values)
using view_type =
    md::mdspan<float, extents_type, md::layout_right, odd::doubling_accessor<float> >;
#elif defined(without_strides) || defined(legacy_layout)
using view_type = md::mdspan<float, extents_type, odd::layout_swapped>;
#endif

constexpr DLDevice some_device{kDLOneAPI, 0};

auto exported(const view_type& view) {
#if defined(managed_values)
  return usm_dlpack::to_managed_tensor(view, some_device, 0);
#elif defined(legacy_layout)
  return usm_dlpack::to_legacy_managed_tensor(view, some_device, 0);
#else
  return usm_dlpack::to_dlpack_tensor(view, some_device);
#endif
}
