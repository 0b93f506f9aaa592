// SPDX-License-Identifier: Apache-2.0
//
// sycl/memory.hpp, sycl/to_dlpack.hpp, sycl/validate.hpp: how often the backend is asked of a
// pointer, because that is what an exchange costs.
#include <usm_dlpack/usm_dlpack.hpp>

#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <vector>

namespace test_backend_queries {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack::detail::device_table;

std::vector<cl_mem_info_intel> asked;
std::map<cl_context, clGetMemAllocInfoINTEL_fn> backends;

cl_int CL_API_CALL ask_and_note(cl_context context, const void* pointer,
                                cl_mem_info_intel what, std::size_t size, void* value,
                                std::size_t* needed) {
  asked.push_back(what);
  return backends.at(context)(context, pointer, what, size, value, needed);
}

/// While it lives, the queries that every platform makes are noted, and then made.
class noted_queries {
 public:
  noted_queries() {
    for (auto& platform : table().platforms) {
      backends[platform.opencl.context] = platform.opencl.query;
      platform.opencl.query = &ask_and_note;
    }
  }
  noted_queries(const noted_queries&) = delete;
  noted_queries& operator=(const noted_queries&) = delete;
  ~noted_queries() {
    for (auto& platform : table().platforms) {
      platform.opencl.query = backends.at(platform.opencl.context);
    }
  }

  template <class Call>
  static std::vector<cl_mem_info_intel> of(Call&& call) {
    asked.clear();
    call();
    return asked;
  }

 private:
  // The table itself is no constant; only the reference that it is handed out by is.
  static device_table& table() { return const_cast<device_table&>(device_table::get()); }
};

using queries = std::vector<cl_mem_info_intel>;
const queries device_alone = {CL_MEM_ALLOC_DEVICE_INTEL};
const queries kind_and_device = {CL_MEM_ALLOC_TYPE_INTEL, CL_MEM_ALLOC_DEVICE_INTEL};
const queries whole = {CL_MEM_ALLOC_TYPE_INTEL, CL_MEM_ALLOC_DEVICE_INTEL,
                       CL_MEM_ALLOC_BASE_PTR_INTEL, CL_MEM_ALLOC_SIZE_INTEL};

TEST(OpenclBackendQueries, AnExportAsksForTheDeviceAlone) {
  const sycl::queue queue = queue_on(0);
  const noted_queries noted;
  for (const alloc kind : {alloc::device, alloc::shared}) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    const auto by_context = [&] {
      static_cast<void>(to_dlpack_tensor(view, queue.get_context()));
    };
    EXPECT_EQ(noted.of(by_context), device_alone);
    EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view, queue)); }),
              device_alone);
    EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view)); }), kind_and_device);
  }
}

TEST(OpenclBackendQueries, HostMemoryHasNoDeviceSoItsKindIsAskedToo) {
  const sycl::queue queue = queue_on(0);
  const usm_memory memory(alloc::host, 64, queue);
  const auto view = view_of(memory.as<float>(), 16);
  const noted_queries noted;
  EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view, queue)); }),
            (queries{CL_MEM_ALLOC_DEVICE_INTEL, CL_MEM_ALLOC_TYPE_INTEL}));
}

TEST(OpenclBackendQueries, AViewThatNamesItsKindAsksForIt) {
  const sycl::queue queue = queue_on(0);
  const usm_memory memory(alloc::device, 64, queue);
  using view_type = decltype(view_of(memory.as<float>(), 16));
  const usm_dlpack::device_mdspan<view_type> view(memory.as<float>(), 16);
  const noted_queries noted;
  EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view, queue)); }),
            kind_and_device);
  EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view)); }), kind_and_device);
}

TEST(OpenclBackendQueries, AnImportAsksForKindDeviceBaseAndSizeOnce) {
  const sycl::queue queue = queue_on(0);
  const usm_memory memory(alloc::device, 64, queue);
  const auto tensor = to_dlpack_tensor(view_of(memory.as<float>(), 16), queue);
  const noted_queries noted;
  EXPECT_EQ(noted.of([&] { static_cast<void>(usm_dlpack::validate(tensor.get())); }), whole);
}

TEST(OpenclBackendQueries, AConversionWithoutSyclAsksNothing) {
  std::array<float, 16> elements{};
  const noted_queries noted;
  EXPECT_EQ(noted.of([&] {
    static_cast<void>(to_dlpack_tensor(view_of(elements.data(), 16), DLDevice{kDLOneAPI, 0}));
  }),
            queries{});
}

TEST(ThreeDevicesOpenclBackendQueries, WithoutAContextEachPlatformIsAsked) {
  const noted_queries noted;
  for (std::size_t id = 0; id < root_devices().size(); ++id) {
    const sycl::queue queue = queue_on(id);
    const usm_memory memory(alloc::device, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    queries each(3, CL_MEM_ALLOC_TYPE_INTEL);  // and the one that knows it, for the device
    each.insert(each.begin() + static_cast<std::ptrdiff_t>(id) + 1, CL_MEM_ALLOC_DEVICE_INTEL);
    EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view)); }), each);
    EXPECT_EQ(noted.of([&] { static_cast<void>(to_dlpack_tensor(view, queue)); }),
              device_alone);
  }
}

}  // namespace test_backend_queries
