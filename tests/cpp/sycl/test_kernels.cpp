// SPDX-License-Identifier: Apache-2.0
//
// Kernels fill what is exported, index views of device USM, and describe views of their own.
#include "built_kernel.hpp"
#include "usm_memory.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace test_kernels {

using namespace usm_dlpack_test;
using namespace usm_dlpack;
using sycl::usm::alloc;

const char* const fill_source = R"(
  #include <sycl/sycl.hpp>
  namespace syclext = sycl::ext::oneapi;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void fill(float* elements, float first) {
    const auto i = syclext::this_work_item::get_nd_item<1>().get_global_linear_id();
    elements[i] = first + static_cast<float>(i);
  }
)";

TEST(Usm, WhatAKernelWroteIsReadThroughTheExportedTensor) {
  constexpr std::size_t count = 24;
  sycl::queue queue = queue_on();
  const sycl::kernel fill = built_kernel(queue, fill_source, "fill");
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, count * sizeof(float), queue);
    queue.submit([&](sycl::handler& handler) {
      handler.set_args(memory.as<float>(), 0.5F);
      handler.parallel_for(sycl::nd_range<1>(count, 8), fill);
    });
    queue.wait();

    using column_view = md::mdspan<float, md::dextents<std::int64_t, 2>, md::layout_left>;
    const auto exported = to_dlpack_tensor(column_view(memory.as<float>(), 4, 6), queue);
    EXPECT_EQ(exported.strides(), (std::array<std::int64_t, 2>{1, 4}));
    const usm_allocation proved = validate(exported.get());
    EXPECT_EQ(proved.usm_type(), kind);

    std::array<float, count> received{};
    sycl::queue consumer(proved.context(), proved.device());
    consumer.memcpy(received.data(), proved.data(), proved.structure().nbytes).wait();
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(received[i], 0.5F + static_cast<float>(i));
    }
  }
}

/// Exports a view of a kernel's own making, inside the kernel.
const char* const export_source = R"(
  #include <sycl/sycl.hpp>
  #include <usm_dlpack/core.hpp>
  namespace syclext = sycl::ext::oneapi;
  struct column_view {
    using element_type = float;
    using index_type = int;
    using data_handle_type = float*;
    struct accessor_type {
      using element_type = float;
      using reference = float&;
      using data_handle_type = float*;
    };
    struct mapping_type {
      using index_type = int;
      int operator()(int i, int j) const { return i + 4 * j; }
      int stride(std::size_t r) const { return r == 0 ? 1 : 4; }
      static constexpr bool is_always_strided() { return true; }
      static constexpr bool is_strided() { return true; }
    };
    float* elements;
    static constexpr std::size_t rank() { return 2; }
    int extent(std::size_t r) const { return r == 0 ? 4 : 6; }
    float* data_handle() const { return elements; }
    mapping_type mapping() const { return {}; }
    accessor_type accessor() const { return {}; }
  };
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void describe(float* elements, long* told) {
    const auto exported =
        usm_dlpack::to_dlpack_tensor(column_view{elements}, DLDevice{kDLOneAPI, 5});
    const DLTensor tensor = exported.get();
    const long all[] = {tensor.data == elements, tensor.device.device_id, tensor.ndim,
                        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes,
                        tensor.shape[0], tensor.shape[1], tensor.strides[0],
                        tensor.strides[1]};
    for (int i = 0; i < 10; ++i) {
      told[i] = all[i];
    }
  }
)";

TEST(Usm, AKernelDescribesAViewWithTheCoreHeaders) {
  sycl::queue queue = queue_on();
  const sycl::kernel describe = built_kernel(queue, export_source, "describe");
  const usm_memory memory(alloc::device, 96, queue);
  const usm_memory told(alloc::shared, 10 * sizeof(long), queue);
  queue.submit([&](sycl::handler& handler) {
    handler.set_args(memory.as<float>(), told.as<long>());
    handler.parallel_for(sycl::nd_range<1>(1, 1), describe);
  });
  queue.wait();
  const long* const first = told.as<long>();
  EXPECT_EQ(std::vector<long>(first, first + 10),
            (std::vector<long>{1, 5, 2, kDLFloat, 32, 1, 4, 6, 1, 4}));
}

/// Every header that a kernel needs to index a view of device USM, in device code.
const char* const index_source = R"(
  #define MDSPAN_IMPL_STANDARD_NAMESPACE Kokkos
  #define MDSPAN_IMPL_PROPOSED_NAMESPACE Experimental
  #include <sycl/sycl.hpp>
  #include <mdspan/mdspan.hpp>
  #include <usm_dlpack/core/dtype.hpp>
  #include <usm_dlpack/core/strides.hpp>
  #include <usm_dlpack/core/layout_relaxed.hpp>
  #include <usm_dlpack/sycl/mdspan.hpp>
  namespace syclext = sycl::ext::oneapi;
  using accessor =
      usm_dlpack::usm_accessor<sycl::usm::alloc::device, Kokkos::default_accessor<float>>;
  using extents = Kokkos::dextents<long, 2>;
  using right_view = Kokkos::mdspan<float, extents, Kokkos::layout_right, accessor>;
  using relaxed_view = Kokkos::mdspan<float, extents, usm_dlpack::layout_relaxed, accessor>;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
      (syclext::experimental::nd_range_kernel<1>))
  void copy_backwards(right_view from, relaxed_view to, long* told) {
    const auto i = syclext::this_work_item::get_nd_item<1>().get_global_linear_id();
    const std::array<long, 2> index{long(i) / from.extent(1), long(i) % from.extent(1)};
    to[index] = 2 * from[index];
    if (i == 0) {
      const std::int64_t shape[] = {from.extent(0), from.extent(1)};
      std::int64_t strides[2] = {};
      usm_dlpack::detail::write_compact_strides(shape, strides, 2);
      const auto span = usm_dlpack::detail::span_of(shape, strides, 2);
      const std::int64_t huge[] = {1L << 32, 1L << 32};
      // Made again here, from extents and strides alone.
      const relaxed_view::mapping_type again(to.extents(), to.mapping().strides());
      const long all[] = {sizeof(right_view),
                          sizeof(relaxed_view),
                          usm_dlpack::data_type_v<float>.bits,
                          usm_dlpack::data_type_v<double>.code,
                          span.highest,
                          to.mapping().element_offset(),
                          to.mapping().stride(0),
                          long(usm_dlpack::detail::magnitude(to.stride(1))),
                          usm_dlpack::detail::span_of(huge, nullptr, 2).overflow,
                          again.element_offset(),
                          again.required_span_size()};
      for (int k = 0; k < 11; ++k) {
        told[k] = all[k];
      }
    }
  }
)";

TEST(Usm, AKernelIndexesViewsOfDeviceUsm) {
  using extents_type = md::dextents<long, 2>;
  using right_view = device_mdspan<md::mdspan<float, extents_type>>;
  using relaxed_view = device_mdspan<md::mdspan<float, extents_type, layout_relaxed>>;
  sycl::queue queue = queue_on();
  const sycl::kernel kernel = built_kernel(queue, index_source, "copy_backwards");
  const usm_memory given(alloc::device, 24 * sizeof(float), queue);
  const usm_memory received(alloc::device, 24 * sizeof(float), queue);
  const usm_memory told(alloc::shared, 11 * sizeof(long), queue);
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
  EXPECT_EQ(std::vector<long>(first, first + 11),
            (std::vector<long>{sizeof(right_view), sizeof(relaxed_view), 32, kDLFloat, 23, 23,
                               -6, 1, 1, 23, 24}));
}

}  // namespace test_kernels
