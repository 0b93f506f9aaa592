// SPDX-License-Identifier: Apache-2.0
//
// The host pass of a single-source compiler, which sees kernels in host code: the macro that
// such a compiler defines stands here, so nothing else may be in this file. The element type
// is that of no other test.
#include <mdspan_under_test.hpp>
#include <refusal.hpp>

#include <sycl/sycl.hpp>

#define SYCL_LANGUAGE_VERSION 202012L
#include <usm_dlpack/usm_dlpack.hpp>

namespace test_accessor {

using usm_dlpack::errc;

static_assert(usm_dlpack::detail::makes_kernels && !usm_dlpack::detail::is_device_code);

using view = md::mdspan<short, md::dextents<short, 1>>;
using vector = usm_dlpack::device_mdspan<view>;

// A kernel of the page about extensions. Only icpx makes it run.
void twice(sycl::queue& queue, vector x) {
  usm_dlpack::ordered_section work(queue, x);
  queue.parallel_for(sycl::range<1>(x.size()), [=](sycl::id<1> i) { x(i[0]) *= 2; });
}

TEST(UsmAccessor, HostCodeOfASingleSourceCompilerMeetsDeviceUsmAtRunTime) {
  short elements[] = {1, 2, 3};
  const usm_dlpack::device_mdspan<view> on_device(elements, 3);
  // By the accessor itself: Kokkos' mdspan ends a process in which an access throws.
  EXPECT_REFUSAL(on_device.accessor().access(on_device.data_handle(), 1),
                 errc::usm_type_not_accepted, "access", "device code", "host code");
  const usm_dlpack::shared_mdspan<view> shared(elements, 3);
  EXPECT_EQ((shared[md_array<short, 1>{1}]), 2);
  const usm_dlpack::host_mdspan<view> host(elements, 3);
  EXPECT_EQ((host[md_array<short, 1>{2}]), 3);
}

}  // namespace test_accessor
