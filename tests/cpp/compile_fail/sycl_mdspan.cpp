// SPDX-License-Identifier: Apache-2.0
//
// Host code that indexes device USM, views that change their USM kind, and arrays of const
// elements are refused when they are compiled.
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
// clang-format on
#include <mdspan_under_test.hpp>

#include <usm_dlpack/sycl/usm_array.hpp>

using view = md::mdspan<float, md::dextents<int, 1>>;
using usm_dlpack::device_mdspan;
using usm_dlpack::shared_mdspan;

namespace indexed_on_host {
#if defined(USM_DLPACK_FIXED)
using indexed = shared_mdspan<view>;
#else
using indexed = device_mdspan<view>;
#endif
float first(const indexed& all) { return all[md_array<int, 1>{0}]; }
}  // namespace indexed_on_host

namespace device_to_shared {
#if defined(USM_DLPACK_FIXED)
using wanted = device_mdspan<md::mdspan<const float, md::dextents<int, 1>>>;
#else
using wanted = shared_mdspan<view>;
#endif
wanted converted(const device_mdspan<view>& all) { return all; }
}  // namespace device_to_shared

namespace no_kind {
#if defined(USM_DLPACK_FIXED)
inline constexpr auto kind = sycl::usm::alloc::host;
#else
inline constexpr auto kind = sycl::usm::alloc::unknown;
#endif
usm_dlpack::usm_accessor<kind, md::default_accessor<float>> made() { return {}; }
}  // namespace no_kind

namespace const_elements {
#if defined(USM_DLPACK_FIXED)
using element = float;
#else
using element = const float;
#endif
auto made(const sycl::queue& queue) {
  using extents = md::dextents<int, 1>;
  return usm_dlpack::usm_array<md::mdspan<element, extents>>(queue, extents(4)).size_bytes();
}
}  // namespace const_elements
