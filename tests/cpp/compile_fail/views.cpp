// SPDX-License-Identifier: Apache-2.0
//
// What is no view, and views whose handle, accessor or layout a DLTensor cannot describe, are
// refused in a sentence. It is split where the header splits it, because g++ quotes the
// source.
//
// clang-format off
// expect: view: expected a type with the interface of mdspan, found another;
// expect: use an mdspan, such as mdspan<float, dextents<int, 2>>\(pointer, 4, 6\)
// expect[gcc]: use of deleted function .*to_dlpack_tensor\(const NoMdspan&.* NoMdspan = float\*
// expect[gcc]: = delete;  // use mdspan\(pointer, 4, 6\)
// expect[gcc]: use of deleted function .*to_mdspan\(const Tensor&.* NoMdspan = float;
// expect[gcc]: = delete;  // name the type of an mdspan
// expect[clang]: deleted function .*to_dlpack_tensor
// expect[clang]: deleted function .*to_mdspan
// expect: data_handle: expected element_type\*, found a handle that is no such pointer
// expect: make an mdspan over the raw pointer
// expect: accessor: expected reference to be element_type&, found an accessor that
// expect: may change values; specialise is_plain_accessor_v if it does not
// expect: layout: expected a mapping with stride\(r\), found one without strides;
// expect: copy the elements to a strided layout first
// clang-format on
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

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
  return usm_dlpack::to_managed_tensor(view, some_device, 0);
}
auto a_pointer(const view_type<float*>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto no_view_of(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_type<float>>(tensor);
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
