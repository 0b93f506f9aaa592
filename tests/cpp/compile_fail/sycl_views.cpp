// SPDX-License-Identifier: Apache-2.0
//
// Host code that indexes device USM, views that change their USM kind, arrays of const
// elements, pointers to tensors, numbers among the views of `check_queue`, other extents of a
// launch than one to three integers, its arguments that are pointers, views with strides,
// tensors or containers of arrays, a view in place of extents, a queue in place of a device,
// an array that is not given away, is copied, is made of other arguments, is a temporary or
// stands for its view, a device in place of a queue, and managed tensors that are not
// dereferenced are refused when they are compiled. A section without a name is warned of.
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
// expect: argument: expected an array or a value that a kernel takes, found another, such as a
// expect: container; pass \*x of an optional; for a vector of arrays, launch for each element in
// expect[gcc]: ignoring return value of .*ordered_section.*nodiscard
// expect[clang]: ignoring temporary created by a constructor declared with 'nodiscard'
// expect: extents: expected an integer, mdspan's extents, a sycl::range or a sycl::nd_range,
// expect: found another type; pass x.extents\(\) of a view
// expect: extents: expected 1 to 3 dimensions, found another number;
// expect: pass a sycl::range with some of them multiplied
// expect: argument: expected an array or a value, found a pointer, whose memory launch cannot
// expect: check or order; pass the view, or an ordered_section of its arrays in place of the queue
// expect: argument: expected a view without gaps \(layout_right or layout_left\), found one with
// expect: strides, which its pointer does not tell the kernel; pass data_handle\(\) and the strides
// expect: in an ordered_section, or by_value\(x\)
// expect: argument: expected an array or a value, found a tensor, whose shape and strides a
// expect: kernel cannot read; pass to_mdspan<View>\(tensor\)
// expect: device: expected the DLDevice of the memory, found a queue;
// expect: pass to_dlpack_tensor\(view, queue\).device\(\)
// expect: deleted function .*validate
// expect: deleted function .*to_mdspan
// expect: deleted function .*to_managed_tensor
// expect[gcc]: deleted function .*validate.*unique_ptr
// expect[gcc]: deleted function .*to_mdspan.*unique_ptr
// expect[gcc]: = delete;  // std::move\(array\)
// expect[gcc]: = delete;  // use std::move\(array\)
// expect[gcc]: = delete;  // std::move it, or share it by a std::shared_ptr
// expect[gcc]: = delete;  // pass queue, View's extents
// expect[gcc]: usm_array\(const Any&.*Rest = \{sycl::.*alloc\}
// expect[gcc]: = delete;  // keep the array in a variable
// expect[gcc]: = delete;  // pass array.view\(\)
// expect[gcc]: = delete;  // pass the queue
// expect[clang]: deleted function .*to_legacy_managed_tensor
// expect[clang]: deleted constructor of
// expect[clang]: deleted (member )?function .*view
// expect[clang]: deleted function .*to_dlpack_tensor
// clang-format on
#include <mdspan_under_test.hpp>

#include <usm_dlpack/sycl/kernel_source.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <optional>
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
using number = int;
inline constexpr int rank = 3;
using strided = view;
using section = usm_dlpack::ordered_section;
using passed = view;
const view& argument_of(const DLTensor&, const view& x) { return x; }
auto extents_of(const view& x) { return x.extents(); }
usm_dlpack::usm_array<view>&& given(usm_dlpack::usm_array<view>& x) { return std::move(x); }
const view exported(const usm_dlpack::usm_array<view>& x) { return x.view(); }
const auto& place_of(const sycl::queue& queue) { return queue; }
using extents_of_array = md::dextents<int, 1>;
using array_of_a_kind = view;
const DLManagedTensorVersioned& of_managed(const usm_dlpack::managed_tensor& x) { return *x; }
DLDevice device_of(const view& x, const sycl::queue& queue) {
  return usm_dlpack::to_dlpack_tensor(x, queue).device();
}
#else
using indexed = device_mdspan<view>;
using wanted = shared_mdspan<view>;
using element = const float;
using argument = float;
const DLTensor* tensor_of(const DLTensor& tensor) { return &tensor; }
inline constexpr auto kind = sycl::usm::alloc::unknown;
using number = float;
inline constexpr int rank = 4;
using strided = md::mdspan<float, md::dextents<int, 1>, md::layout_stride>;
using section = sycl::queue;
using passed = std::optional<view>;
const DLTensor& argument_of(const DLTensor& tensor, const view&) { return tensor; }
const view& extents_of(const view& x) { return x; }
usm_dlpack::usm_array<view>& given(usm_dlpack::usm_array<view>& x) { return x; }
const auto& exported(const usm_dlpack::usm_array<view>& x) { return x; }
sycl::device place_of(const sycl::queue& queue) { return queue.get_device(); }
using extents_of_array = md::dextents<int, 2>;
using array_of_a_kind = device_mdspan<view>;
const usm_dlpack::managed_tensor& of_managed(const usm_dlpack::managed_tensor& x) { return x; }
const sycl::queue& device_of(const view&, const sycl::queue& queue) { return queue; }
#endif

float indexed_on_host(const indexed& all) { return all[md_array<int, 1>{0}]; }
wanted device_to_shared(const device_mdspan<view>& all) { return all; }
usm_dlpack::usm_accessor<kind, md::default_accessor<float>> no_kind() { return {}; }
auto const_elements(const sycl::queue& queue) {
  using extents = md::dextents<int, 1>;
  return usm_dlpack::usm_array<md::mdspan<element, extents>>(queue, extents(4)).size_bytes();
}
auto validated(const DLTensor& tensor) { return usm_dlpack::validate(tensor_of(tensor)); }
auto viewed(const DLTensor& tensor) { return usm_dlpack::to_mdspan<view>(tensor_of(tensor)); }
void check(const sycl::queue& queue, const view& x, const argument& y) {
  usm_dlpack::check_queue(queue, x, y);
}
void launch(const usm_dlpack::kernel_source& kernels, const sycl::queue& queue,
            const view& x) {
  kernels.launch(queue, "of", number{4}, x);
  kernels.launch(queue, "of", md::dextents<int, rank>(), x);
}
void launch_pointer(const usm_dlpack::kernel_source& kernels, section& work, const view& x) {
  kernels.launch(work, "of", 4, x.data_handle() + 1);
}
void launch_strided(const usm_dlpack::kernel_source& kernels, const sycl::queue& queue,
                    const usm_dlpack::usm_array<strided>& x) {
  kernels.launch(queue, "of", 4, x);
}
void launch_container(const usm_dlpack::kernel_source& kernels, const sycl::queue& queue,
                      const passed& x) {
  kernels.launch(queue, "of", 4, x);
}
void launch_tensor(const usm_dlpack::kernel_source& kernels, const sycl::queue& queue,
                   const DLTensor& tensor, const view& x) {
  kernels.launch(queue, "of", 4, argument_of(tensor, x));
}
auto share(const view& x, const sycl::queue& queue) {
  return usm_dlpack::to_managed_tensor(x, device_of(x, queue), 0);
}
void launch_without_extents(const usm_dlpack::kernel_source& kernels, const sycl::queue& queue,
                            const view& x) {
  kernels.launch(queue, "of", extents_of(x), x);
}
auto give(usm_dlpack::usm_array<view>& x) { return usm_dlpack::to_managed_tensor(given(x)); }
auto give_legacy(usm_dlpack::usm_array<view>& x) {
  return usm_dlpack::to_legacy_managed_tensor(given(x));
}
usm_dlpack::usm_array<view> pass(usm_dlpack::usm_array<view>& x) { return given(x); }
usm_dlpack::usm_array<view> make(const sycl::queue& queue) {
  return {queue, extents_of_array()};
}
auto make_shared(const sycl::queue& queue) {
  const md::dextents<int, 1> extents(4);
  return usm_dlpack::usm_array<array_of_a_kind>(queue, extents, sycl::usm::alloc::shared);
}
auto view_of(usm_dlpack::usm_array<view>& x) {
#if defined(USM_DLPACK_FIXED)
  return x.view();
#else
  return std::move(x).view();
#endif
}
auto export_array(const usm_dlpack::usm_array<view>& x, const sycl::queue& queue) {
  return usm_dlpack::to_dlpack_tensor(exported(x), queue);
}
auto export_view(const view& x, const sycl::queue& queue) {
  return usm_dlpack::to_dlpack_tensor(x, place_of(queue));
}
auto validated(const usm_dlpack::managed_tensor& x) {
  return usm_dlpack::validate(of_managed(x));
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
