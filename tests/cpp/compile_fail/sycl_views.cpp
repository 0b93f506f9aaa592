// SPDX-License-Identifier: Apache-2.0
//
// Host code that indexes device USM, views that change their USM kind, arrays of const
// elements, numbers among the views of `check_queue`, arguments of a launch that are pointers
// or views with strides, and the view of a temporary array are refused when they are compiled.
// A section without a name is warned of.
//
// clang-format off
// expect: access: expected device code, found host code;
// expect: copy the elements to host or shared USM, or index in a kernel
// expect[gcc]: conversion from .*device.* to non-scalar type .*|could not convert
// expect[clang]: no viable conversion from
// expect: usm_accessor: expected the kind device, shared or host, found unknown;
// expect: use the plain accessor
// expect: element_type: expected mutable elements, found const ones;
// expect: take the element type without const, and a view of const elements of it
// expect: views: expected types with the interface of mdspan, found another;
// expect: pass only arrays, and \*x of an optional; for a vector of arrays, launch for each
// expect: element in one ordered_section
// expect[gcc]: ignoring return value of .*ordered_section.*nodiscard
// expect[clang]: ignoring temporary created by a constructor declared with 'nodiscard'
// expect: argument: expected an array or a value, found a pointer, whose memory launch cannot
// expect: check or order; pass the view, or an ordered_section of its arrays in place of the queue
// expect: argument: expected a view without gaps \(layout_right or layout_left\), found one with
// expect: strides, which its pointer does not tell the kernel; pass data_handle\(\) and the strides
// expect: in an ordered_section
// expect: deleted function .*to_mdspan
// expect[gcc]: deleted function .*to_mdspan.*unique_ptr
// expect[gcc]: = delete;  // keep the array in a variable
// expect[clang]: deleted (member )?function .*view
// clang-format on
#include <mdspan_under_test.hpp>

#include <usm_dlpack/sycl/kernel_source.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <utility>

using view = md::mdspan<float, md::dextents<int, 1>>;
using usm_dlpack::device_mdspan;
using usm_dlpack::shared_mdspan;

#if defined(USM_DLPACK_FIXED)
using indexed = shared_mdspan<view>;
using wanted = device_mdspan<md::mdspan<const float, md::dextents<int, 1>>>;
using element = float;
using argument = view;
const DLTensor& tensor_of(const DLTensor& tensor) { return tensor; }
inline constexpr auto kind = sycl::usm::alloc::host;
using strided = view;
using section = usm_dlpack::ordered_section;
const DLManagedTensorVersioned& of_managed(const usm_dlpack::managed_tensor& x) { return *x; }
#else
using indexed = device_mdspan<view>;
using wanted = shared_mdspan<view>;
using element = const float;
using argument = float;
const DLTensor* tensor_of(const DLTensor& tensor) { return &tensor; }
inline constexpr auto kind = sycl::usm::alloc::unknown;
using strided = md::mdspan<float, md::dextents<int, 1>, md::layout_stride>;
using section = sycl::queue;
const usm_dlpack::managed_tensor& of_managed(const usm_dlpack::managed_tensor& x) { return x; }
#endif

float indexed_on_host(const indexed& all) { return all[md_array<int, 1>{0}]; }
wanted device_to_shared(const device_mdspan<view>& all) { return all; }
usm_dlpack::usm_accessor<kind, md::default_accessor<float>> no_kind() { return {}; }
auto const_elements(const sycl::queue& queue) {
  using extents = md::dextents<int, 1>;
  return usm_dlpack::usm_array<md::mdspan<element, extents>>(queue, extents(4)).size_bytes();
}
auto viewed(const DLTensor& tensor) { return usm_dlpack::to_mdspan<view>(tensor_of(tensor)); }
void check(const sycl::queue& queue, const view& x, const argument& y) {
  usm_dlpack::check_queue(queue, x, y);
}
void launch_pointer(const usm_dlpack::kernel_source& kernels, section& work, const view& x) {
  kernels.launch(work, "of", 4, x.data_handle() + 1);
}
void launch_strided(const usm_dlpack::kernel_source& kernels, const sycl::queue& queue,
                    const usm_dlpack::usm_array<strided>& x) {
  kernels.launch(queue, "of", 4, x);
}
auto view_of(usm_dlpack::usm_array<view>& x) {
#if defined(USM_DLPACK_FIXED)
  return x.view();
#else
  return std::move(x).view();
#endif
}
auto viewed(const usm_dlpack::managed_tensor& x) {
  return usm_dlpack::to_mdspan<view>(of_managed(x));
}
void unnamed_section(const sycl::queue& queue, const view& x) {
#if defined(USM_DLPACK_FIXED)
  const usm_dlpack::ordered_section work(queue, x);
#else
  usm_dlpack::ordered_section(queue, x);
#endif
}
