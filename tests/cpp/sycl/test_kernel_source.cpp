// SPDX-License-Identifier: Apache-2.0
//
// Kernels from source: what they compute of views, and when they are built. The name of a test
// that builds one has the word Kernel in it.
#include <threads.hpp>

#include "usm_memory.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace test_kernel_source {

using namespace usm_dlpack_test;

/// The options that let a kernel include this library, dlpack.h and mdspan.
std::vector<std::string> include_options() {
  std::istringstream folders(USM_DLPACK_TEST_INCLUDES);
  std::vector<std::string> options;
  for (std::string folder; std::getline(folders, folder, ':');) {
    options.push_back("-I" + folder);
  }
  return options;
}

const char* const with_views = R"(
  #define MDSPAN_IMPL_STANDARD_NAMESPACE Kokkos
  #define MDSPAN_IMPL_PROPOSED_NAMESPACE Experimental
  #include <sycl/sycl.hpp>
  #include <mdspan/mdspan.hpp>
  #include <usm_dlpack/core.hpp>
  #include <usm_dlpack/sycl/accessor.hpp>
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
      const long all[] = {sizeof(right_view), sizeof(relaxed_view), again.element_offset(),
                          again.required_span_size(), tensor.data == to.data_handle(),
                          tensor.device.device_id, tensor.dtype.bits, tensor.shape[1],
                          tensor.strides[0], tensor.strides[1]};
      for (int k = 0; k < 10; ++k) {
        told[k] = all[k];
      }
    }
  }
)";

TEST(KernelSource, AKernelIndexesAndDescribesViewsOfDeviceUsm) {
  static const kernel_source source(with_views, include_options());
  using extents_type = md::dextents<long, 2>;
  using right_view = device_mdspan<md::mdspan<float, extents_type>>;
  using relaxed_view = device_mdspan<md::mdspan<float, extents_type, layout_relaxed>>;
  sycl::queue queue = queue_on();
  const sycl::kernel kernel = source.find(queue, "copy_backwards");
  const usm_memory given(alloc::device, 24 * sizeof(float), queue);
  const usm_memory received(alloc::device, 24 * sizeof(float), queue);
  const usm_memory told(alloc::shared, 10 * sizeof(long), queue);
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
  EXPECT_EQ(std::vector<long>(first, first + 10),
            (std::vector<long>{sizeof(right_view), sizeof(relaxed_view), 23, 24, 1, 5, 32, 6,
                               1, 4}));
}

const char* const one_value = R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::single_task_kernel))
  void set(int* x) { *x = VALUE; }
)";

TEST(KernelSource, ThreadsGetKernelsOfOneBuildForAContext) {
  static const kernel_source source(one_value, {"-DVALUE=1"});
  const sycl::queue queue = queue_on();
  of_each_thread<std::optional<sycl::kernel>> found;
  on_eight_threads([&](std::size_t i) { found[i].value = source.find(queue, "set"); });
  for (const auto& kernel : found) {
    EXPECT_EQ(*kernel.value, *found[0].value);
  }
}

TEST(KernelSource, ThreadsLaunchAKernelEachWithItsOwnArguments) {
  static const kernel_source source(R"(
    #include <sycl/sycl.hpp>
    namespace experimental = sycl::ext::oneapi::experimental;
    extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::single_task_kernel))
    void store(int* x, int value) { *x = value; }
  )");
  source.find(queue_on(), "store");
  std::atomic<int> wrong{0};
  on_eight_threads([&](std::size_t i) {
    sycl::queue queue = queue_on(0, sycl::property::queue::in_order());
    const usm_memory received(alloc::host, sizeof(int), queue);
    for (int launch = 0; launch < 1000; ++launch) {
      const int value = 1000 * static_cast<int>(i) + launch;
      const sycl::kernel kernel = source.find(queue, "store");
      queue.submit([&](sycl::handler& handler) {
        handler.set_args(received.as<int>(), value);
        handler.single_task(kernel);
      });
      queue.wait();
      wrong += *received.as<int>() != value;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(KernelSource, EachDeviceOfAContextHasKernelsOfItsOwn) {
  static const kernel_source source(one_value, {"-DVALUE=1"});
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context(parts);
  for (const sycl::device& part : parts) {
    const sycl::kernel found = source.find(sycl::queue(context, part), "set");
    EXPECT_EQ(found.get_kernel_bundle().get_devices(), std::vector{part});
  }
}

TEST(KernelSource, ABuildOfKernelsKeepsNoOtherContextWaiting) {
  using clock = std::chrono::steady_clock;
  static const kernel_source source(one_value, {"-DVALUE=1"});
  const sycl::queue queue = queue_on();
  const sycl::queue other(sycl::context(queue.get_device()), queue.get_device());
  source.find(queue, "set");
  std::atomic<bool> is_built{false};
  const clock::time_point start = clock::now();
  std::thread building([&] {
    EXPECT_EQ(source.find(other, "set").get_context(), other.get_context());
    is_built = true;
  });
  clock::duration longest{};
  while (!is_built) {
    const clock::time_point before = clock::now();
    EXPECT_EQ(source.find(queue, "set").get_context(), queue.get_context());
    longest = std::max(longest, clock::now() - before);
  }
  EXPECT_LT(longest, (clock::now() - start) / 2);
  building.join();
}

/// Code and sentence of the error that a search for a kernel ends in.
std::pair<std::error_code, std::string> refused(const kernel_source& source,
                                                const std::string& name) {
  try {
    source.find(queue_on(), name);
    return {};
  } catch (const sycl::exception& error) {
    return {error.code(), error.what()};
  }
}

TEST(KernelSource, ABuildOfKernelsThatFailsHasTheLogAndIsTriedAgain) {
  const std::string folder = testing::TempDir();
  const std::string header = folder + "kernel_source_later.hpp";
  std::remove(header.c_str());
  static const kernel_source source(
      std::string("#include <kernel_source_later.hpp>") + one_value, {"-I" + folder});
  const auto [code, sentence] = refused(source, "set");
  EXPECT_EQ(code, sycl::errc::build);
  EXPECT_NE(sentence.find("'kernel_source_later.hpp' file not found"), std::string::npos)
      << sentence;
  std::ofstream(header) << "#define VALUE 2";
  EXPECT_NO_THROW(source.find(queue_on(), "set"));
  EXPECT_EQ(refused(source, "get").first, sycl::errc::invalid);
}

TEST(KernelSource, ATerminalIsToldOfTheFirstBuildOfKernels) {
  static const kernel_source source("#include <not_there.hpp>");
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_EQ(grantpt(terminal) + unlockpt(terminal), 0);
  const int other_end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const int kept = dup(STDERR_FILENO);
  dup2(other_end, STDERR_FILENO);
  refused(source, "set");
  refused(source, "set");
  dup2(kept, STDERR_FILENO);
  std::array<char, 200> said{};
  EXPECT_GT(read(terminal, said.data(), said.size() - 1), 0);
  EXPECT_STREQ(said.data(),
               "SYCL kernels are built from source: the first build takes seconds\r\n");
  for (const int file : {terminal, other_end, kept}) {
    close(file);
  }
}

}  // namespace test_kernel_source
