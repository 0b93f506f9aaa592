// SPDX-License-Identifier: Apache-2.0
//
// A kernel indexes views of device USM, and describes one with the core headers.
#include "built_kernel.hpp"
#include "usm_memory.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace test_kernels {

using namespace usm_dlpack_test;
using namespace usm_dlpack;
using sycl::usm::alloc;

const char* const source = R"(
  #define MDSPAN_IMPL_STANDARD_NAMESPACE Kokkos
  #define MDSPAN_IMPL_PROPOSED_NAMESPACE Experimental
  #include <sycl/sycl.hpp>
  #include <mdspan/mdspan.hpp>
  #include <usm_dlpack/core.hpp>
  #include <usm_dlpack/sycl/mdspan.hpp>
  namespace syclext = sycl::ext::oneapi;
  using accessor =
      usm_dlpack::usm_accessor<sycl::usm::alloc::device, Kokkos::default_accessor<float>>;
  using extents = Kokkos::dextents<long, 2>;
  using right_view = Kokkos::mdspan<float, extents, Kokkos::layout_right, accessor>;
  using relaxed_view = Kokkos::mdspan<float, extents, usm_dlpack::layout_relaxed, accessor>;
  // Of what no rule can refuse: a kernel throws nothing.
  using column_view = Kokkos::mdspan<float, Kokkos::extents<int, 4, 6>, Kokkos::layout_left>;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void copy_backwards(right_view from, relaxed_view to, long* told) {
    const auto i = syclext::this_work_item::get_nd_item<1>().get_global_linear_id();
    const std::array<long, 2> index{long(i) / from.extent(1), long(i) % from.extent(1)};
    to[index] = 2 * from[index];
    if (i == 0) {
      // Made again here, from extents and strides alone.
      const relaxed_view::mapping_type again(to.extents(), to.mapping().strides());
      const column_view column(to.data_handle());
      const auto exported = usm_dlpack::to_dlpack_tensor(column, DLDevice{kDLOneAPI, 5});
      const DLTensor tensor = exported.get();
      const long all[] = {sizeof(right_view),
                          sizeof(relaxed_view),
                          again.element_offset(),
                          again.required_span_size(),
                          tensor.data == to.data_handle(),
                          tensor.device.device_id,
                          tensor.ndim,
                          tensor.dtype.code,
                          tensor.dtype.bits,
                          tensor.dtype.lanes,
                          tensor.shape[0],
                          tensor.shape[1],
                          tensor.strides[0],
                          tensor.strides[1]};
      for (int k = 0; k < 14; ++k) {
        told[k] = all[k];
      }
    }
  }
)";

TEST(Usm, AKernelIndexesAndDescribesViewsOfDeviceUsm) {
  using extents_type = md::dextents<long, 2>;
  using right_view = device_mdspan<md::mdspan<float, extents_type>>;
  using relaxed_view = device_mdspan<md::mdspan<float, extents_type, layout_relaxed>>;
  sycl::queue queue = queue_on();
  const sycl::kernel kernel = built_kernel(queue, source, "copy_backwards");
  const usm_memory given(alloc::device, 24 * sizeof(float), queue);
  const usm_memory received(alloc::device, 24 * sizeof(float), queue);
  const usm_memory told(alloc::shared, 14 * sizeof(long), queue);
  std::array<float, 24> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i);
  }
  queue.memcpy(given.at(), numbers.data(), sizeof numbers).wait();

  const right_view from(given.as<float>(), 4, 6);
  const relaxed_view to(received.as<float>(),
                        relaxed_view::mapping_type(extents_type(4, 6), {-6, -1}));
  queue.submit([&](sycl::handler& handler) {
    handler.set_args(from, to, told.as<long>());
    handler.parallel_for(sycl::nd_range<1>(24, 6), kernel);
  });
  queue.wait();
  queue.memcpy(numbers.data(), received.at(), sizeof numbers).wait();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(numbers[i], 2 * static_cast<float>(23 - i));
  }
  const long* const first = told.as<long>();
  EXPECT_EQ(std::vector<long>(first, first + 14),
            (std::vector<long>{sizeof(right_view), sizeof(relaxed_view), 23, 24, 1, 5, 2,
                               kDLFloat, 32, 1, 4, 6, 1, 4}));
}

}  // namespace test_kernels
