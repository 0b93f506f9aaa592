// SPDX-License-Identifier: Apache-2.0
//
// Kernels from source: what they compute of views, and when they are built. The name of a test
// that builds one has the word Kernel in it.
#include <threads.hpp>

#include "held_queues.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
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

// What `launch` with a queue does not take.
static_assert(usm_dlpack::detail::is_address<float*>);
static_assert(usm_dlpack::detail::is_address<char[5]>);
static_assert(usm_dlpack::detail::is_address<std::nullptr_t>);
static_assert(!usm_dlpack::detail::is_address<long>);

TEST(KernelSource, AKernelIndexesAndDescribesViewsOfDeviceUsm) {
  static const kernel_source source(with_views, include_options());
  using extents_type = md::dextents<long, 2>;
  using right_view = device_mdspan<md::mdspan<float, extents_type>>;
  using relaxed_view = device_mdspan<md::mdspan<float, extents_type, layout_relaxed>>;
  sycl::queue queue = queue_on();
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
  const md::mdspan<long, md::extents<int, 10>> told_view(told.as<long>());
  source.launch(queue, "copy_backwards", sycl::nd_range<1>(24, 6), by_value(from),
                by_value(to), told_view);
  queue.memcpy(numbers.data(), received.at(), sizeof numbers).wait();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(numbers[i], 2 * static_cast<float>(23 - i));
  }
  const long* const first = told_view.data_handle();
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
}

TEST(KernelSource, AFunctionThatIsNotDeclaredAsAKernelIsRefused) {
  static const kernel_source source(one_value + std::string("extern \"C\" void get(int*) {}"),
                                    {"-DVALUE=1"});
  const auto [code, sentence] = refused(source, "get");
  EXPECT_EQ(code, sycl::errc::invalid);
  EXPECT_EQ(sentence,
            "name: expected a kernel of the source, found \"get\"; correct it, or declare the "
            "function extern \"C\" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<1>))");
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

const char* const launched_text = R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;
  using namespace sycl::ext::oneapi::this_work_item;
  #define KERNEL(dimensions) extern "C" \
    SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<dimensions>)) void
  #if 0  // an older version
  KERNEL(2) count_1(float* seen, int rows, int columns) {}
  #endif
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
  typedef int number;
  KERNEL(1) set_number(number* x, number value) {
    if (get_nd_item<1>().get_global_id(0) == 0) { *x = value; }
  }
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<2>))
  void set_from(int* x, const int* from, std::size_t at) {
    const auto item = get_nd_item<2>();
    if (item.get_global_linear_id() == 0) { *x = from[at]; }
  }
  // Takes the longer, the more turns.
  KERNEL(1) add(const int* x, int* out, int turns) {
    volatile int nothing = 0;
    for (int turn = 0; turn < turns; ++turn) { nothing = nothing + 0; }
    if (get_nd_item<1>().get_global_id(0) == 0) { *out = *x + 1 + nothing; }
  }
)";
const kernel_source& launched() {
  static const kernel_source source(launched_text);
  return source;
}

using row = md::mdspan<int, md::dextents<int, 1>>;
using shared_row = shared_mdspan<row>;

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
  for (const int size : {1, 63, 64, 65, 1000, 100'003}) {
    expect_each_once("count_1", size, size, long{size});
    expect_each_once("count_1", md::dextents<int, 1>(size), size, long{size});
  }
  const int shapes[][3] = {{3, 4, 1}, {5, 1, 70}, {65, 2, 130}, {40, 1000, 3}, {7, 64, 1}};
  for (const auto& [planes, rows, columns] : shapes) {
    const std::size_t sizes[] = {static_cast<std::size_t>(planes * rows),
                                 static_cast<std::size_t>(columns)};
    const int count = planes * rows * columns;
    expect_each_once("count_2", sycl::range<2>(sizes[0], sizes[1]), count, long{columns});
    expect_each_once("count_3", md::dextents<long, 3>(planes, rows, columns), count,
                     long{rows}, long{columns});
  }
  expect_each_once("count_1", sycl::nd_range<1>(12, 4), 10, 10L);
}

TEST(KernelSource, GroupsAreWithinTheLimitsAndRoundOnlyTheLastExtentUp) {
  for (const std::size_t limit : {1UL, 48UL, 256UL, 1024UL, 8192UL}) {
    for (const std::size_t columns : {1UL, 3UL, 64UL, 100UL, 3001UL, 1'000'000UL}) {
      for (const std::size_t rows : {1UL, 7UL, 4096UL}) {
        const std::size_t size = detail::group_size(96 * rows * columns, limit, 2);
        const sycl::range<3> items(96, rows, columns), most(16, limit, limit);
        const sycl::nd_range<3> range = detail::divide(items, size, most);
        const sycl::range<3> group = range.get_local_range(), all = range.get_global_range();
        EXPECT_LE(group.size(), limit);
        EXPECT_LE(group[0], 16);
        EXPECT_EQ(all, sycl::range<3>(96, rows, all[2]));
        EXPECT_EQ(all[0] % group[0] + all[1] % group[1] + all[2] % group[2], 0);
        EXPECT_LT(all[2] - columns, std::max(64UL, columns / 8 + 1));
        EXPECT_LT(all[2] - columns, group[2]);
      }
    }
  }
  EXPECT_EQ(detail::divide(sycl::range<2>(3000, 4), 64, sycl::range<2>(64, 64)),
            sycl::nd_range<2>({3000, 4}, {8, 4}));
  static_assert(detail::group_size(100, 8192, 2) == 64);
  static_assert(detail::group_size(1000, 8192, 2) == 256);
  static_assert(detail::group_size(1000, 8192, 64) == 64);
  static_assert(detail::group_size(1'000'000, 1024, 64) == 256);
  static_assert(detail::group_size(1'000'000, 32, 64) == 32);
}

TEST(KernelSource, ALaunchWithoutWorkItemsStartsNoKernel) {
  sycl::queue queue = queue_on();
  const usm_array<shared_row> x(queue, md::dextents<int, 1>(1));
  *x.data() = 5;
  using sycl::info::event_command_status;
  const std::size_t huge = std::size_t{1} << 32;
  const auto status = [](const sycl::event& event) {
    return event.get_info<sycl::info::event::command_execution_status>();
  };
  EXPECT_EQ(status(launched().launch(queue, "set", 0, x, 7)), event_command_status::complete);
  EXPECT_EQ(status(launched().launch(queue, "count_2", sycl::range<2>(0, 5), x, 5L)),
            event_command_status::complete);
  EXPECT_THROW(launched().launch(queue, "count_2", sycl::range<2>(huge, huge), x, 5L),
               sycl::exception);
  queue.wait();
  EXPECT_EQ(*x.data(), 5);
}

TEST(KernelSource, ABuildOptionLetsALaunchHaveMoreWorkItemsThanAnIntHolds) {
  static const kernel_source source(launched_text, {"-fno-sycl-id-queries-fit-in-int"});
  const int most = std::numeric_limits<int>::max();  // one less than a whole number of groups
  sycl::queue queue = queue_on();
  const usm_array<shared_row> x(queue, md::dextents<int, 1>(1));
  try {
    launched().launch(queue, "set", most, x, 7);
    ADD_FAILURE() << "expected an exception";
  } catch (const sycl::exception& error) {
    EXPECT_NE(std::string(error.what()).find("storable in an int"), std::string::npos);
  }
  source.launch(queue, "set", most, x, 7);
  queue.wait();
  EXPECT_EQ(*x.data(), 7);
}

/// The sentence of a launch that is refused for its arguments or extents.
template <class Extents, class... Arguments>
std::string refused_launch(const char* name, sycl::errc code, const Extents& extents,
                           const Arguments&... arguments) {
  try {
    launched().launch(queue_on(), name, extents, arguments...);
  } catch (const sycl::exception& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "nothing";
}

TEST(KernelSource, ALaunchOfAnotherNumberOrOtherArgumentsThanTheKernelHasIsRefused) {
  sycl::queue queue = queue_on();
  const usm_array<shared_row> x(queue, md::dextents<int, 1>(1));
  constexpr sycl::errc code = sycl::errc::kernel_argument;
  launched().launch(queue, "set_number", 1, x, 6);
  queue.wait();
  EXPECT_EQ(*x.data(), 6);
  EXPECT_EQ(refused_launch("set", code, 1, x),
            "arguments: expected 2 for the kernel \"set(int*, int)\", found 1; pass one for "
            "each of its parameters");
  EXPECT_EQ(refused_launch("set_number", code, 1, x, 7, 8),
            "arguments: expected 2 for the kernel \"set_number\", found 3; pass one for each "
            "of its parameters");
  const auto expect_refused = [](const std::string& sentence, const std::string& found) {
    EXPECT_EQ(sentence.find("arguments: expected the types of the parameters of the kernel "
                            "\"set_number\", found " +
                            found + ", for which the runtime throws \""),
              0)
        << sentence;
  };
  expect_refused(refused_launch("set_number", code, 1, x, 7L), "a pointer, 8 bytes");
  expect_refused(refused_launch("set_number", code, 1, x, x), "a pointer, a pointer");
  expect_refused(refused_launch("set_number", code, 1, 7L, 7), "8 bytes, 4 bytes");
  queue.wait();
  EXPECT_EQ(*x.data(), 6);
}

TEST(KernelSource, ALaunchOfAKernelWithArgumentsOfOtherTypesThanItsSourceSpellsIsRefused) {
  sycl::queue queue = queue_on();
  const usm_memory memory(alloc::shared, 64, queue);
  const row x(memory.as<int>(), 1);
  const md::mdspan<const int, md::dextents<int, 1>> read_only(memory.as<int>(), 1);
  const md::mdspan<float, md::dextents<int, 1>> other(memory.as<float>(), 1);
  const sycl::range<2> extents(1, 1);
  *memory.as<int>() = 5;
  const auto expect_refused = [](const std::string& sentence, const std::string& field,
                                 const std::string& wanted, const std::string& found) {
    EXPECT_EQ(sentence, field + ": expected " + wanted +
                            " for the kernel \"set_from(int*, const int*, unsigned long)\", "
                            "found " +
                            found);
  };
  const auto refused_set = [&](const auto&... arguments) {
    return refused_launch("set_from", sycl::errc::kernel_argument, extents, arguments...);
  };
  expect_refused(refused_set(other, x, 0UL), "argument 1", "int*",
                 "an array of float; pass an array of int, or declare the parameter float*");
  expect_refused(refused_set(read_only, x, 0UL), "argument 1", "int*",
                 "an array of const int; pass an array of int, or declare the parameter const "
                 "int*");
  expect_refused(refused_set(x, other, 0UL), "argument 2", "const int*",
                 "an array of float; pass an array of const int, or declare the parameter "
                 "float*");
  expect_refused(refused_set(x, 7L, 0UL), "argument 2", "const int*",
                 "long; pass an array of const int, or declare the parameter long");
  expect_refused(refused_set(x, x, 0.0), "argument 3", "unsigned long",
                 "double; pass static_cast<unsigned long>(...), or declare the parameter "
                 "double");
  expect_refused(refused_set(x, x, 0), "argument 3", "unsigned long",
                 "int; pass static_cast<unsigned long>(...), or declare the parameter int");
  expect_refused(refused_set(x, x, x), "argument 3", "unsigned long",
                 "an array of int; pass a value, or declare the parameter int*");
  expect_refused(refused_launch("set_from", sycl::errc::nd_range, 1, x, x, 0UL), "extents",
                 "2", "1; pass one for each dimension that it declares");
  EXPECT_EQ(*memory.as<int>(), 5);

  memory.as<int>()[1] = 7;
  launched().launch(queue, "set_from", extents, x, read_only, 1L);
  queue.wait();
  EXPECT_EQ(*memory.as<int>(), 7);
  enum class number : int { eight = 8 };  // has no dtype
  launched().launch(queue, "set", 1, x, number::eight);
  queue.wait();
  EXPECT_EQ(*memory.as<int>(), 8);
}

/// Dimensions and parameters, `?` for each that is unknown.
std::string signature_of(const char* source) {
  const detail::kernel_signature read = detail::read_signature(source, "f");
  std::string text = std::to_string(read.dimensions);
  for (const detail::kernel_type& parameter : read.parameters) {
    text += ", " + (parameter.dtype.bits == 0 ? "?" : parameter.name());
  }
  return text;
}

TEST(KernelSource, ASourceTellsWhatItSpellsExactly) {
  const std::pair<const char*, const char*> cases[] = {
      {"PROPERTY((experimental::nd_range_kernel<2>)) void f(const float* x, float const *y)",
       "2, const float*, const float*"},
      {"PROPERTY((nd_range_kernel < 3 >))\n  void f(unsigned char c, const int n, bool)",
       "3, unsigned char, int, bool"},
      {"void f(size_t a, std::int64_t b, unsigned int c, long long d, char e)",
       "0, unsigned long, long, unsigned, long, char"},
      {"void f(double *const x, float* __restrict__ y, sycl::half* z)",
       "0, double*, float*, sycl::half*"},
      // Types that are not sure.
      {"void f(real* x, float** y, float& z, float z[], void* u, T, int&)",
       "0, ?, ?, ?, ?, ?, ?, ?"},
      {"void f(long double x, long double, unsigned real, float x = 1)",
       "0, ?, ?, unsigned, ?"},
      {"void f(std::array<float, 3> x, int n)", "0, ?, int"},
      // Aliases.
      {"using real = float; using size = unsigned long;\nvoid f(const real* x, real, size n)",
       "0, const float*, float, unsigned long"},
      {"using real = float;\n#else\nusing real = double;\n#endif\nvoid f(real* x)", "0, ?"},
      {"using real = T; using namespace sycl; using", "0"},
      {"using real = T; typedef int number; void f(real x, number n)", "0, ?, ?"},
      {"#define KERNEL(n) PROPERTY((nd_range_kernel<n>)) void\nKERNEL(2) f(int* x)",
       "0, int*"},
      {"#define ONE PROPERTY((nd_range_kernel<1>))\nTWO void f(int* x)", "0, int*"},
      {"PROPERTY((nd_range_kernel<dimensions>)) void f(int* x)", "0, int*"},
      {"PROPERTY((nd_range_kernel<1>, other)) void f(int* x)", "0, int*"},
      // Older versions, and macros.
      {"// void f(int* x)\n/* f(int) */ 'f' \"f(int)\" 1'000 void f(float* x)", "0, float*"},
      {"#if 0\n((nd_range_kernel<2>)) void f(int* x);\n#endif\n"
       "((nd_range_kernel<1>)) void f(float* x)",
       "0"},
      {"void f(int* x, int n); void f(int* x)", "0"},
      {"void f(int* x); DEFINE(f, float)", "0"},
      {"DEFINE(float, f) void f(int* x);", "0"},
      {"inner::f(1); g(int* f); f = 1; void f(int* x)", "0, int*"},
      // No sources at all.
      {"f", "0"},
      {"void f(", "0"},
      {"void f(int", "0"},
      {"/* void f(int x)", "0"},
      {"\"\\", "0"},
  };
  for (const auto& [source, expected] : cases) {
    EXPECT_EQ(signature_of(source), expected) << source;
  }
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
  EXPECT_REFUSAL(launched().launch(queue, "add", 1, by_value(view), x, 0),
                 errc::pointer_unknown, "data");
  EXPECT_REFUSAL(launched().launch(queue, "set", -1, x, 7), errc::extent_out_of_range,
                 "shape[0]");
  const std::size_t wrapped = std::size_t{1} - 2;
  EXPECT_REFUSAL(launched().launch(queue, "count_2", sycl::range<2>(4, wrapped), x, 1L),
                 errc::extent_out_of_range, "shape[1]");
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

TEST(KernelSource, ALaunchOfKernelsWhileTheQueueRecordsIsRecordedOnce) {
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    sycl::queue queue = new_queue(in_order);
    const usm_memory memory(alloc::shared, 64, queue);
    const row x(memory.as<int>(), 1);
    *x.data_handle() = 0;
    launched().find(queue, "add");
    sycl::ext::oneapi::experimental::command_graph graph(queue.get_context(),
                                                         queue.get_device());
    graph.begin_recording(queue);
    launched().launch(queue, "add", 1, x, x, 0);
    graph.end_recording(queue);
    EXPECT_EQ(*x.data_handle(), 0);
    auto executable = graph.finalize();
    for (const int expected : {1, 2}) {
      queue.ext_oneapi_graph(executable);
      queue.wait();
      EXPECT_EQ(*x.data_handle(), expected);
    }
  }
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

TEST(KernelSource, ASingleTaskKernelIsLaunchedAsOneWorkItem) {
  static const kernel_source source(one_value, {"-DVALUE=9"});
  sycl::queue queue = queue_on();
  const usm_memory memory(alloc::shared, sizeof(int), queue);
  source.launch(queue, "set", 1, row(memory.as<int>(), 1));
  EXPECT_EQ(*memory.as<int>(), 9);
}

}  // namespace test_kernel_source
