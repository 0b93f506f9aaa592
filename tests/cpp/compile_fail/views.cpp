// SPDX-License-Identifier: Apache-2.0
//
// What is no view, and views whose element type, handle, accessor or layout a DLTensor cannot
// describe, or `to_mdspan` cannot make, are refused in a sentence. It is split where the
// header splits it, because g++ quotes the source.
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
// expect: element_type: expected a type with a DLPack dtype, found one without;
// expect: use a type of the dtype table or specialise data_type_of for yours
// expect: data_type_of: expected bits \* lanes == 8 \* sizeof\(T\), found a value that
// expect: its object does not have; correct the specialisation
// expect: data_type_of: expected a static constexpr \w+ value, found another
// expect: value; correct the specialisation
// expect: element_type: expected packed elements, found padded ones, which a bare
// expect: DLTensor cannot declare; export a managed tensor
// expect: layout: expected right, left, a padded one of both, or a mapping
// expect: construct the view by hand after validate
// expect: accessor: expected one that is made of nothing, found another;
// clang-format on
#include <float4_types.hpp>
#include <mdspan_under_test.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <cstdint>
#include <variant>
#include <vector>

using extents_type = md::dextents<int, 2>;
inline constexpr DLDevice some_device{kDLOneAPI, 0};

template <int>
struct users_type {
  std::uint32_t bits;
};

/// What a case has, and what its fixed twin has instead.
#if defined(USM_DLPACK_FIXED)
template <class, class Fixed>
using one_of = Fixed;
template <int Number>
struct usm_dlpack::data_type_of<users_type<Number>> {
  static constexpr DLDataType value{kDLFloat, 32, 1};
};
#else
template <class Refused, class>
using one_of = Refused;
template <>
struct usm_dlpack::data_type_of<users_type<1>> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
template <>
struct usm_dlpack::data_type_of<users_type<2>> {
  static const DLDataType value;
};
#endif

template <class Element, class Layout = md::layout_right,
          class Accessor = md::default_accessor<Element>>
using view_of = md::mdspan<Element, extents_type, Layout, Accessor>;
template <class Accessor>
using view_by = view_of<float, md::layout_right, Accessor>;
/// The view of a case, and in its fixed twin a plain one.
template <class View>
using view_type = one_of<View, view_of<float>>;

auto not_a_view(const view_type<std::vector<float>>& view) {
  return usm_dlpack::to_managed_tensor(view, some_device, std::monostate{});
}
auto a_pointer(const view_type<float*>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto no_view_of(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_type<float>>(tensor);
}
auto by_index(const view_type<view_by<odd::indexed_accessor<float>>>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto changing_values(const view_type<view_by<odd::doubling_accessor<float>>>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto without_strides(const view_type<view_of<float, odd::layout_swapped>>& view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}

// --- Element types

auto no_dtype(view_of<const users_type<0>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto untrue_dtype(view_of<const users_type<1>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto value_at_run_time(view_of<const users_type<2>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}
auto padded_bare(view_type<view_of<usm_dlpack_test::padded_float4>> view) {
  return usm_dlpack::to_dlpack_tensor(view, some_device);
}

// --- Views that cannot be made. clang notes only that `to_mdspan` was called in each case.

struct scaled_accessor : odd::plain_accessor<float> {
  explicit scaled_accessor(int) {}
};

auto with_an_anchor(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_type<view_of<float, odd::layout_anchored>>>(tensor);
}
auto with_strides_of_some(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_type<view_of<float, odd::layout_perhaps_strided>>>(tensor);
}
auto without_default(const DLTensor& tensor) {
  return usm_dlpack::to_mdspan<view_type<view_by<scaled_accessor>>>(tensor);
}
