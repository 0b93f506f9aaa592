// SPDX-License-Identifier: Apache-2.0
//
// Kernels from source: what they compute of views, and when they are built. The name of a test
// that builds one has the word Kernel in it.
#include <threads.hpp>

#include "held_queues.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
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

// All kernels have one source, since a build takes seconds.
const char* const launched_text = R"(
  #define MDSPAN_IMPL_STANDARD_NAMESPACE Kokkos
  #define MDSPAN_IMPL_PROPOSED_NAMESPACE Experimental
  #include <sycl/sycl.hpp>
  #include <mdspan/mdspan.hpp>
  #include <usm_dlpack/core.hpp>
  #include <usm_dlpack/sycl/accessor.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;
  using namespace sycl::ext::oneapi::this_work_item;
  #define KERNEL(dimensions) extern "C" \
    SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<dimensions>)) void

  using accessor =
      usm_dlpack::usm_accessor<sycl::usm::alloc::device, Kokkos::default_accessor<float>>;
  using extents = Kokkos::dextents<long, 2>;
  using right_view = Kokkos::mdspan<float, extents, Kokkos::layout_right, accessor>;
  using relaxed_view = Kokkos::mdspan<float, extents, usm_dlpack::layout_relaxed, accessor>;
  // Of what no rule can refuse: a kernel throws nothing.
  using column_view = Kokkos::mdspan<float, Kokkos::extents<int, 4, 6>, Kokkos::layout_left>;
  KERNEL(1) copy_backwards(right_view from, relaxed_view to, long* told) {
    const auto i = get_nd_item<1>().get_global_linear_id();
    const std::array<long, 2> index{long(i) / from.extent(1), long(i) % from.extent(1)};
    to[index] = 2 * from[index];
    if (i == 0) {
      // Made again here, from extents and strides alone.
      const relaxed_view::mapping_type again(to.extents(), to.mapping().strides());
      const column_view column(to.data_handle());
      const auto exported = usm_dlpack::to_dlpack_tensor(column, DLDevice{kDLOneAPI, 5});
      const DLTensor tensor = exported.get();
      const long all[] = {sizeof(relaxed_view), again.element_offset(),
                          again.required_span_size(), tensor.data == to.data_handle(),
                          tensor.device.device_id, tensor.dtype.bits, tensor.shape[1],
                          tensor.strides[1]};
      std::copy(all, all + 8, told);
    }
  }

  KERNEL(1) count_1(int* seen, long columns) {
    const long j = get_nd_item<1>().get_global_id(0);
    if (j < columns) { ++seen[j]; }
  }
  KERNEL(2) count_2(int* seen, long columns) {
    const long i = get_nd_item<2>().get_global_id(0), j = get_nd_item<2>().get_global_id(1);
    if (j < columns) { ++seen[i * columns + j]; }
  }
  KERNEL(3) count_3(int* seen, long rows, long columns) {
    const auto item = get_nd_item<3>();
    const long k = item.get_global_id(0), i = item.get_global_id(1), j = item.get_global_id(2);
    if (j < columns) { ++seen[(k * rows + i) * columns + j]; }
  }
  KERNEL(1) set(int* x, int value) {
    if (get_nd_item<1>().get_global_id(0) == 0) { *x = value; }
  }
  extern "C" void no_kernel(int*) {}
  // Takes the longer, the more turns.
  KERNEL(1) add(const int* x, int* out, int turns) {
    volatile int nothing = 0;
    for (int turn = 0; turn < turns; ++turn) { nothing = nothing + 0; }
    if (get_nd_item<1>().get_global_id(0) == 0) { *out = *x + 1 + nothing; }
  }
)";
const kernel_source& launched() {
  static const kernel_source source(launched_text, include_options());
  return source;
}

// What `launch` with a queue does not take.
static_assert(usm_dlpack::detail::is_address<float*>);
static_assert(usm_dlpack::detail::is_address<char[5]>);
static_assert(usm_dlpack::detail::is_address<std::nullptr_t>);
static_assert(!usm_dlpack::detail::is_address<long>);

TEST(KernelSource, AKernelIndexesAndDescribesViewsOfDeviceUsm) {
  using extents_type = md::dextents<long, 2>;
  using right_view = device_mdspan<md::mdspan<float, extents_type>>;
  using relaxed_view = device_mdspan<md::mdspan<float, extents_type, layout_relaxed>>;
  sycl::queue queue = queue_on();
  const usm_memory given(alloc::device, 24 * sizeof(float), queue);
  const usm_memory received(alloc::device, 24 * sizeof(float), queue);
  const usm_memory told(alloc::shared, 8 * sizeof(long), queue);
  std::array<float, 24> numbers{};
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  queue.memcpy(given.at(), numbers.data(), sizeof numbers).wait();

  const right_view from(given.as<float>(), 4, 6);
  const relaxed_view to(received.as<float>(),
                        relaxed_view::mapping_type(extents_type(4, 6), {-6, -1}));
  queue
      .submit([&](sycl::handler& handler) {
        handler.set_args(from, to, told.as<long>());
        handler.parallel_for(sycl::nd_range<1>(24, 6),
                             launched().find(queue, "copy_backwards"));
      })
      .wait();
  queue.memcpy(numbers.data(), received.at(), sizeof numbers).wait();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(numbers[i], 2 * static_cast<float>(23 - i));
  }
  const long* const first = told.as<long>();
  EXPECT_EQ(std::vector<long>(first, first + 8),
            (std::vector<long>{sizeof(relaxed_view), 23, 24, 1, 5, 32, 6, 4}));
}

using row = md::mdspan<int, md::dextents<int, 1>>;
using shared_row = shared_mdspan<row>;

TEST(KernelSource, ThreadsGetKernelsOfOneBuildForAContext) {
  const sycl::queue queue = queue_on();
  of_each_thread<std::optional<sycl::kernel>> found;
  on_eight_threads([&](std::size_t i) { found[i].value = launched().find(queue, "set"); });
  for (const auto& kernel : found) {
    EXPECT_EQ(*kernel.value, *found[0].value);
  }
}

TEST(KernelSource, EachDeviceOfAContextHasKernelsOfItsOwn) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context(parts);
  for (const sycl::device& part : {parts.at(0), parts.at(1)}) {
    const sycl::kernel found = launched().find(sycl::queue(context, part), "set");
    EXPECT_EQ(found.get_kernel_bundle().get_devices(), std::vector{part});
  }
}

TEST(KernelSource, ABuildOfKernelsKeepsNoOtherContextWaiting) {
  using clock = std::chrono::steady_clock;
  const sycl::queue queue = queue_on();
  const sycl::queue other(sycl::context(queue.get_device()), queue.get_device());
  launched().find(queue, "set");
  std::atomic<bool> is_built{false};
  const clock::time_point start = clock::now();
  std::thread building([&] {
    EXPECT_EQ(launched().find(other, "set").get_context(), other.get_context());
    is_built = true;
  });
  clock::duration longest{};
  while (!is_built) {
    const clock::time_point before = clock::now();
    EXPECT_EQ(launched().find(queue, "set").get_context(), queue.get_context());
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
  const std::string text = R"(
    #include <kernel_source_later.hpp>
    #include <sycl/sycl.hpp>
    namespace experimental = sycl::ext::oneapi::experimental;
    extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::single_task_kernel))
    void set(int* x) { *x = VALUE; }
  )";
  const std::string header = folder + "kernel_source_later.hpp";
  std::remove(header.c_str());
  static const kernel_source source(text, {"-I" + folder});
  const auto [code, sentence] = refused(source, "set");
  EXPECT_EQ(code, sycl::errc::build);
  EXPECT_NE(sentence.find("'kernel_source_later.hpp' file not found"), std::string::npos)
      << sentence;
  std::ofstream(header) << "#define VALUE 2";
  EXPECT_NO_THROW(source.find(queue_on(), "set"));
}

TEST(KernelSource, AFunctionThatIsNotDeclaredAsAKernelIsRefused) {
  const auto [code, sentence] = refused(launched(), "no_kernel");
  EXPECT_EQ(code, sycl::errc::invalid);
  EXPECT_EQ(sentence,
            "name: expected a kernel of the source, found \"no_kernel\"; correct it, or "
            "declare the function extern \"C\" "
            "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<1>))");
}

/// Requires that each element below a count was written once, and none behind it.
template <class Extents, class... Bounds>
void expect_each_once(const char* kernel, const Extents& extents, int count,
                      Bounds... bounds) {
  sycl::queue queue = queue_on();
  const usm_array<shared_row> seen(queue, md::dextents<int, 1>(count + 4096));
  std::fill_n(seen.data(), count + 4096, 0);
  launched().launch(queue, kernel, extents, seen, bounds...);
  queue.wait();
  EXPECT_EQ(std::count(seen.data(), seen.data() + count, 1), count);
  EXPECT_EQ(std::count(seen.data() + count, seen.data() + count + 4096, 0), 4096);
}

TEST(KernelSource, ALaunchOfKernelsRunsAsManyWorkItemsAsExtentsSay) {
  expect_each_once("count_1", 100'003, 100'003, 100'003L);
  expect_each_once("count_2", md::dextents<int, 2>(3, 70), 210, 70L);
  expect_each_once("count_3", md::dextents<long, 3>(5, 2, 130), 1300, 2L, 130L);
  expect_each_once("count_2", sycl::range<2>(12, 1), 12, 1L);
  expect_each_once("count_1", sycl::nd_range<1>(12, 4), 10, 10L);
}

TEST(KernelSource, GroupsAreOf64OrOfTheLimitAndOnlyTheLastExtentIsRoundedUp) {
  using detail::range_of_launch;
  EXPECT_EQ(range_of_launch(997, 8192), sycl::nd_range<1>(1024, 64));
  EXPECT_EQ(range_of_launch(997, 48), sycl::nd_range<1>(1008, 48));
  EXPECT_EQ(range_of_launch(10, 8192), sycl::nd_range<1>(10, 10));
  EXPECT_EQ(range_of_launch(10, 4), sycl::nd_range<1>(12, 4));
  EXPECT_EQ(range_of_launch(128, 8192), sycl::nd_range<1>(128, 64));
  EXPECT_EQ(range_of_launch(md::dextents<int, 3>(5, 7, 65), 8192),
            sycl::nd_range<3>({5, 7, 128}, {1, 1, 64}));
  EXPECT_EQ(range_of_launch(sycl::range<2>(3, 997), 8192), sycl::range<2>(3, 997));
  EXPECT_EQ(range_of_launch(sycl::nd_range<1>(12, 4), 8192), sycl::nd_range<1>(12, 4));
}

TEST(KernelSource, ALaunchWithoutWorkItemsSubmitsNoKernel) {
  const sycl::queue queue = new_queue(true);
  const usm_memory memory(alloc::shared, 64, queue);
  const row x(memory.as<int>(), 1);
  launched().find(queue, "set");
  const auto is_complete = [](const sycl::event& event) {
    return event.get_info<sycl::info::event::command_execution_status>() ==
           sycl::info::event_command_status::complete;
  };
  ordered_section work(queue);
  gate closed(queue);  // a kernel would wait for it
  EXPECT_TRUE(is_complete(launched().launch(work, "set", 0, x, 7)));
  EXPECT_TRUE(is_complete(launched().launch(work, "set", md::dextents<int, 2>(0, 5), x, 7)));
  EXPECT_TRUE(is_complete(launched().launch(work, "set", sycl::range<2>(5, 0), x, 7)));
  const std::size_t huge = std::size_t{1} << 32;
  EXPECT_FALSE(detail::has_no_items(sycl::range<2>(huge, huge))) << "their product wraps to 0";
}

TEST(KernelSource, ALaunchWithAnotherNumberOfArgumentsThanTheKernelHasIsRefused) {
  sycl::queue queue = queue_on();
  const usm_array<shared_row> x(queue, md::dextents<int, 1>(1));
  *x.data() = 6;
  const auto expect_refused = [&](const char* count, const auto&... arguments) {
    try {
      launched().launch(queue, "set", 1, arguments...);
      ADD_FAILURE() << "expected an exception";
    } catch (const sycl::exception& error) {
      EXPECT_EQ(error.code(), sycl::errc::kernel_argument);
      EXPECT_EQ(error.what(), "arguments: expected 2 for the kernel \"set\", found " +
                                  std::string(count) +
                                  "; pass one for each of its parameters");
    }
  };
  expect_refused("1", x);
  expect_refused("3", x, 7, 8);
  EXPECT_EQ(*x.data(), 6);
}

TEST(KernelSource, ALaunchOfKernelsRefusesAsCheckQueueAndWrongExtents) {
  sycl::queue queue = queue_on();
  const usm_array<shared_row> x(queue, md::dextents<int, 1>(1));
  const sycl::queue foreign(sycl::context(queue.get_device()), queue.get_device());
  EXPECT_REFUSAL(launched().launch(foreign, "set", 1, x, 7), errc::context_not_default,
                 "queue");
  int on_stack = 0;
  const row view(&on_stack, 1);
  EXPECT_REFUSAL(launched().launch(queue, "add", 1, x, view, 0), errc::pointer_unknown, "data",
                 "USM of the given context", "an allocation unknown to it, for view 2");
  EXPECT_REFUSAL(launched().launch(queue, "set", -1, x, 7), errc::out_of_range, "shape[0]");
}

TEST(KernelSource, ALaunchOfKernelsIsBehindTheQueuesOfArgumentsAndDoneOnReturn) {
  for (const bool from_in_order : {true, false}) {
    SCOPED_TRACE(from_in_order);
    for (const bool to_in_order : {true, false}) {
      SCOPED_TRACE(to_in_order);
      const sycl::queue from = new_queue(from_in_order), to = new_queue(to_in_order);
      const usm_memory memory(alloc::shared, 64, from);
      *memory.as<int>() = *memory.as<int>(32) = 0;
      gate closed(from);
      const known_view<row> x{row(memory.as<int>(), 1), from};
      const row out(memory.as<int>(32), 1);
      const std::future<void> call = std::async(std::launch::async, [&] {
        launched().launch(to, "add", 1, x, out, 10'000'000);
        EXPECT_EQ(*out.data_handle(), 8);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      *x.view().data_handle() = 7;
      closed.open();
      call.wait();
    }
  }
}

/// What a function submits to a queue that records.
template <class Submit>
auto recorded(sycl::queue& queue, const Submit& submit) {
  launched().find(queue, "add");
  sycl::ext::oneapi::experimental::command_graph graph(queue.get_context(),
                                                       queue.get_device());
  graph.begin_recording(queue);
  submit();
  graph.end_recording(queue);
  return graph;
}

TEST(KernelSource, ALaunchOfKernelsWhileTheQueueRecordsIsRecordedOnce) {
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    sycl::queue queue = new_queue(in_order);
    const usm_memory memory(alloc::shared, 64, queue);
    const row x(memory.as<int>(), 1);
    *x.data_handle() = 0;
    auto graph = recorded(queue, [&] { launched().launch(queue, "add", 1, x, x, 0); });
    EXPECT_EQ(*x.data_handle(), 0);
    auto executable = graph.finalize();
    for (const int expected : {1, 2}) {
      queue.ext_oneapi_graph(executable);
      queue.wait();
      EXPECT_EQ(*x.data_handle(), expected);
    }
  }
}

TEST(KernelSource, LaunchesOfKernelsInASectionAreRecordedInOrder) {
  sycl::queue queue = new_queue(false);
  const usm_memory memory(alloc::shared, 64, queue);
  const row x(memory.as<int>(), 1);
  const auto graph = recorded(queue, [&] {
    ordered_section work(queue, x);
    launched().launch(work, "add", 1, x, x, 0);
    launched().launch(work, "add", 1, x, x, 0);
  });
  EXPECT_EQ(graph.get_root_nodes().size(), 1u);
}

TEST(KernelSource, LaunchesOfKernelsInASectionRunInOrderAndEndWithIt) {
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    const sycl::queue queue = new_queue(in_order);
    const usm_memory memory(alloc::shared, 64, queue);
    const row x(memory.as<int>(), 1), y(memory.as<int>(32), 1);
    const usm_array<shared_row> own(queue, md::dextents<int, 1>(1));
    *x.data_handle() = *y.data_handle() = 0;
    launched().find(queue, "add");
    {
      ordered_section work(queue);  // takes the views from the launches
      for (int turns : {10'000'000, 0, 1'000'000, 0, 100'000, 0}) {
        launched().launch(work, "add", 1, x, y, turns);
        launched().launch(work, "add", 1, y, x, 0);
      }
      launched().launch(work, "add", 1, own, own, 10'000'000);
    }
    EXPECT_EQ(*x.data_handle(), 12);
  }
}

// A barrier would miss some of them, those that already run.
TEST(KernelSource, ALaunchOfAKernelInASectionIsBehindHostTasks) {
  sycl::queue queue = new_queue(false);
  const usm_memory memory(alloc::shared, 64, queue);
  const row x(memory.as<int>(), 1), y(memory.as<int>(32), 1);
  int wrong = 0;
  for (int turn = 1; turn <= 300; ++turn) {
    ordered_section work(queue, x, y);
    queue.submit([&](sycl::handler& handler) {
      handler.host_task([turn, to = x.data_handle()] {
        std::this_thread::sleep_for(std::chrono::microseconds(10 * turn));
        *to = turn;
      });
    });
    launched().launch(work, "add", 1, x, y, 0);
    queue.wait();
    wrong += *y.data_handle() != turn + 1;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(KernelSource, ThreadsLaunchAKernelEachWithItsOwnArguments) {
  launched().find(queue_on(), "set");
  std::atomic<int> wrong{0};
  on_eight_threads([&](std::size_t i) {
    const sycl::queue queue = new_queue(i % 2 == 0);
    const usm_memory received(alloc::host, sizeof(int), queue);
    const row x(received.as<int>(), 1);
    for (int launch = 0; launch < 500; ++launch) {
      const int value = 1000 * static_cast<int>(i) + launch;
      launched().launch(queue, "set", 1, x, value);
      wrong += *received.as<int>() != value;
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace test_kernel_source
