// SPDX-License-Identifier: Apache-2.0
#include <threads.hpp>

#include <gtest/gtest.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstddef>
#include <optional>
#include <string>

#include "usm_memory.hpp"

namespace test_kernel_source {

using usm_dlpack::kernel_source;
using usm_dlpack_test::queue_on;

const char* const twice = R"(
#include <sycl/sycl.hpp>
namespace experimental = sycl::ext::oneapi::experimental;
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
void twice(float* x) { x[sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0)] *= FACTOR; }
)";

TEST(KernelSource, AKernelOfTheSourceRuns) {
  kernel_source source(twice, {"-DFACTOR=2"});
  sycl::queue queue = queue_on(0);
  float* const x = sycl::malloc_shared<float>(2, queue);
  x[0] = 1;
  x[1] = 5;
  const sycl::kernel kernel = source.find(queue, "twice");
  queue
      .submit([&](sycl::handler& handler) {
        handler.set_args(x);
        handler.parallel_for(sycl::nd_range<1>(2, 1), kernel);
      })
      .wait();
  EXPECT_EQ(x[0], 2);
  EXPECT_EQ(x[1], 10);
  sycl::free(x, queue);
}

TEST(KernelSource, ThreadsGetKernelsOfOneBuildForAContext) {
  kernel_source source(twice, {"-DFACTOR=2"});
  const sycl::queue queue = queue_on(0);
  usm_dlpack_test::of_each_thread<std::optional<sycl::kernel>> found;
  usm_dlpack_test::on_eight_threads(
      [&](std::size_t i) { found[i].value = source.find(queue, "twice"); });
  for (const auto& kernel : found) {
    EXPECT_EQ(kernel.value->get_kernel_bundle(), found[0].value->get_kernel_bundle());
  }
  const sycl::queue other(sycl::context(queue.get_device()), queue.get_device());
  const sycl::kernel second = source.find(other, "twice");
  EXPECT_EQ(second.get_context(), other.get_context());
  EXPECT_EQ(source.find(queue, "twice").get_context(), queue.get_context());
}

TEST(KernelSource, ARefusalHasTheCompilersLogOrTheName) {
  kernel_source wrong(twice);  // without FACTOR
  try {
    wrong.find(queue_on(0), "twice");
    FAIL();
  } catch (const sycl::exception& error) {
    EXPECT_EQ(error.code(), sycl::errc::build);
    EXPECT_NE(std::string(error.what()).find("FACTOR"), std::string::npos) << error.what();
  }
  kernel_source source(twice, {"-DFACTOR=2"});
  try {
    source.find(queue_on(0), "thrice");
    FAIL();
  } catch (const sycl::exception& error) {
    EXPECT_EQ(error.code(), sycl::errc::invalid);
    EXPECT_STREQ(error.what(),
                 "name: expected a kernel of the source, found \"thrice\"; "
                 "correct it, or declare the kernel extern \"C\"");
  }
}

}  // namespace test_kernel_source
