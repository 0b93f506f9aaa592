// SPDX-License-Identifier: Apache-2.0
//
// sycl/memory.hpp: what SYCL alone can tell of a pointer, and how often the backend is asked,
// because that is what an exchange costs. sycl/backends/backend.hpp: which pieces are joined.
#include "usm_memory.hpp"

#include <map>

namespace test_memory {

using namespace usm_dlpack_test;

TEST(Allocation, TheSyclQueryOfTheDeviceIsExactOnlyWithOneRootDeviceOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context({parts.at(1)});
  detail::platform_entry entry{root_devices().at(0).get_platform(), context, 0, 2};
  entry.queries = std::make_shared<detail::backend_queries>(context);
  const usm_memory memory(alloc::device, 64, parts[1], context);
  const detail::allocation one_of_two = detail::find_allocation(memory.at(), entry);
  EXPECT_EQ(one_of_two.device, device_proof::runtime);
  entry.device_count = 1;
  const detail::allocation the_only = detail::find_allocation(memory.at(), entry);
  EXPECT_EQ(the_only.device, device_proof::only_device);
  EXPECT_EQ(the_only.device_id, 0);
  ASSERT_TRUE(the_only.part.has_value());
  EXPECT_EQ(*the_only.part, parts[1]);
}

// --- Memory that is mapped in pieces --------------------------------------------------------

TEST(Allocation, PiecesAreJoinedUpToAGapOrAnOverlap) {
  using detail::allocation_range;
  const std::vector<allocation_range> pieces = {{10, 10}, {20, 5}, {25, 5}, {31, 9}, {38, 4}};
  const auto find = [&](const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    for (const allocation_range& piece : pieces) {
      if (piece.base <= address && address - piece.base < piece.size) {
        return piece;
      }
    }
    return allocation_range{};
  };
  const auto expect_joined = [&](std::uintptr_t lowest, std::uint64_t nbytes,
                                 std::uintptr_t base, std::size_t size) {
    const auto joined = detail::join_pieces({lowest, lowest, nbytes, false, true}, find);
    EXPECT_EQ(joined.base, base);
    EXPECT_EQ(joined.size, size);
  };
  expect_joined(12, 8, 10, 10);
  expect_joined(12, 9, 10, 15);
  expect_joined(24, 6, 20, 10);
  expect_joined(12, 20, 10, 20);  // 30 is of no piece
  expect_joined(30, 2, 0, 0);
  expect_joined(32, 9, 31, 9);  // the piece that 40 is of begins at 38
  const auto without_bytes = [](const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address < 20 ? allocation_range{10, 10} : allocation_range{address, 0};
  };
  EXPECT_EQ(detail::join_pieces({12, 12, 20, false, true}, without_bytes).size, 10U);
}

// --- What is asked of the backend -----------------------------------------------------------

using queries = std::vector<cl_mem_info_intel>;

queries asked;
std::map<cl_context, clGetMemAllocInfoINTEL_fn> backends;

cl_int CL_API_CALL ask_and_note(cl_context context, const void* pointer,
                                cl_mem_info_intel what, std::size_t size, void* value,
                                std::size_t* needed) {
  asked.push_back(what);
  return backends.at(context)(context, pointer, what, size, value, needed);
}

template <class Call>
queries queries_of(const Call& call) {
  const changed_table noted([](device_table& table) {
    for (auto& platform : table.platforms) {
      change_queries<detail::opencl_queries>(platform, [](auto& opencl) {
        backends[opencl.native] = opencl.query;
        opencl.query = &ask_and_note;
      });
    }
  });
  asked.clear();
  static_cast<void>(call());
  return asked;
}

constexpr cl_mem_info_intel type = CL_MEM_ALLOC_TYPE_INTEL;
constexpr cl_mem_info_intel device = CL_MEM_ALLOC_DEVICE_INTEL;

TEST(OpenclBackendQueries, AnExportAsksForTheKindAndAnImportForEverythingOnce) {
  const sycl::queue queue = queue_on(0);
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    const usm_floats memory(kind, queue);
    const bool on_host = kind == alloc::host;
    const queries kind_and_device = on_host ? queries{type} : queries{type, device};
    EXPECT_EQ(queries_of([&] { return to_dlpack_tensor(memory.view, queue.get_context()); }),
              queries{type});
    EXPECT_EQ(queries_of([&] { return to_dlpack_tensor(memory.view, queue); }), queries{type});
    EXPECT_EQ(queries_of([&] { return to_dlpack_tensor(memory.view); }), kind_and_device);
    queries everything = kind_and_device;
    everything.insert(everything.end(),
                      {CL_MEM_ALLOC_BASE_PTR_INTEL, CL_MEM_ALLOC_SIZE_INTEL});
    const auto tensor = to_dlpack_tensor(memory.view, queue);
    EXPECT_EQ(queries_of([&] { return validate(tensor.get()); }), everything);

    const changed_table several(
        [](device_table& table) { table.platforms[0].device_count = 2; });
    EXPECT_EQ(queries_of([&] { return to_dlpack_tensor(memory.view, queue); }),
              kind_and_device);
  }
}

TEST(ThreeDevicesOpenclBackendQueries, WithoutAContextEachPlatformIsAsked) {
  for (const int id : {0, 1, 2}) {
    const sycl::queue queue = queue_on(id);
    const usm_floats memory(alloc::device, queue);
    queries each(3, type);  // and the one that knows it, for the device
    each.insert(each.begin() + id + 1, device);
    EXPECT_EQ(queries_of([&] { return to_dlpack_tensor(memory.view); }), each);
    EXPECT_EQ(queries_of([&] { return to_dlpack_tensor(memory.view, queue); }), queries{type});
  }
}

}  // namespace test_memory
