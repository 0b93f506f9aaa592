// SPDX-License-Identifier: Apache-2.0
//
// opencl/interop.hpp: USM goes through the export protocol by the handles that OpenCL code
// has. test_order_of_checks.cpp breaks each rule alone, and any two.
#include <usm_dlpack/opencl.hpp>

#include <refusal.hpp>

#include <gtest/gtest.h>

#include "opencl_objects.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace test_opencl_export {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::errc;
using usm_dlpack::to_dlpack_tensor;

using floats = row_view<float>;

/// USM of the default context, and a view that fills it.
struct exported_memory {
  usm_memory memory;
  floats view;

  explicit exported_memory(alloc kind = alloc::device, std::size_t device_id = 0)
      : memory(kind, 16 * sizeof(float), queue_on(device_id)), view(memory.as<float>(), 16) {}
};

// --- What is exported -----------------------------------------------------------------------

TEST(OpenclExport, AnEmptyViewNeedsNoMemory) {
  std::array<float, 1> on_stack{};
  for (float* data : {static_cast<float*>(nullptr), on_stack.data()}) {
    const floats empty(data, 0);
    EXPECT_EQ(id_of(to_dlpack_tensor(empty, native_default_context())), 0);
    const auto wrapper = to_dlpack_tensor(empty, native_default_context(), native_root());
    EXPECT_EQ(id_of(wrapper), 0);
    EXPECT_EQ(wrapper.get().data, nullptr);
  }
}

// --- What is refused ------------------------------------------------------------------------

TEST(OpenclExport, AContextThatIsNotADefaultOneIsRefused) {
  std::array<float, 16> on_stack{};
  const std::string wanted =
      "the default context of the platform \"" +
      root_devices().at(0).get_platform().get_info<sycl::info::platform::name>() + "\"";
  for (const cl_device_id device : {native_root(), native_sub_device()}) {
    const auto other = native_context({device});
    const auto memory = native_floats(other.get(), device);
    const floats view(memory.get(), 16);
    EXPECT_REFUSAL(to_dlpack_tensor(view, native_default_context(), native_root()),
                   errc::pointer_unknown, "data", "USM of the given context",
                   "an allocation unknown to it");
    EXPECT_REFUSAL(to_dlpack_tensor(view, other.get(), device), errc::context_not_default,
                   "context", wanted, "another one, of 1 device(s)");
    const floats empty(nullptr, 0);
    EXPECT_REFUSAL(to_dlpack_tensor(empty, other.get()), errc::context_not_default, "context",
                   wanted, "another one, of 1 device(s)");
    // What the context does not know, is refused before it.
    for (const cl_context context : {native_default_context(), other.get()}) {
      EXPECT_REFUSAL(to_dlpack_tensor(floats(nullptr, 16), context), errc::data_null, "data");
      EXPECT_REFUSAL(to_dlpack_tensor(floats(on_stack.data(), 16), context),
                     errc::pointer_unknown, "data");
    }
  }
}

TEST(OpenclExport, APartOfTheDeviceIsRefusedUnlessItIsHostMemoryAndNullAlways) {
  for (const alloc kind : usm_kinds) {
    const exported_memory mine(kind);
    EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context(), nullptr),
                   errc::runtime_error, "device", "a cl_device_id", "null");
    const auto exported = [&] {
      return to_dlpack_tensor(mine.view, native_default_context(), native_sub_device());
    };
    if (kind == alloc::host) {
      EXPECT_EQ(id_of(exported()), 0);
    } else {
      EXPECT_REFUSAL(exported(), errc::device_mismatch, "device",
                     "device 0, where the memory is", "a sub-device of device 0");
    }
  }
}

/// The device that all memory is on for `on_part`.
cl_device_id part_with_all_memory = nullptr;
clGetMemAllocInfoINTEL_fn true_query = nullptr;

/// Answers as a driver that has memory of sub-devices in a default context.
cl_int CL_API_CALL on_part(cl_context context, const void* pointer, cl_mem_info_intel what,
                           std::size_t size, void* value, std::size_t* needed) {
  if (what != CL_MEM_ALLOC_DEVICE_INTEL) {
    return true_query(context, pointer, what, size, value, needed);
  }
  *static_cast<cl_device_id*>(value) = part_with_all_memory;
  return CL_SUCCESS;
}

TEST(OpenclExport, MemoryOfASubDeviceGoesWithThatAndWithItsRootAlone) {
  const std::array<cl_device_id, 2> parts{native_sub_device(), native_sub_device()};
  ASSERT_NE(parts[0], parts[1]);
  const exported_memory mine;
  const changed_table changed([](device_table& table) {
    true_query = table.platforms.at(0).opencl.query;
    table.platforms.at(0).opencl.query = &on_part;
  });
  const cl_context context = native_default_context();
  part_with_all_memory = parts[0];
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, parts[0])), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, native_root())), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context)), 0);
  EXPECT_REFUSAL(to_dlpack_tensor(mine.view, context, parts[1]), errc::device_mismatch,
                 "device", "a sub-device of device 0, where the memory is",
                 "another sub-device of device 0");
}

TEST(OpenclExport, APlatformWithoutUsmKnowsNoMemory) {
  const exported_memory mine;
  const auto other = native_context({native_root()});
  const auto foreign = native_floats(other.get(), native_root());
  const changed_table no_usm([](device_table& table) {
    table.platforms.at(0).has_usm = false;
    table.platforms.at(0).opencl.query = nullptr;
  });
  const floats empty(nullptr, 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(empty, native_default_context(), native_root())), 0);
  EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context()), errc::pointer_unknown,
                 "data");
  EXPECT_REFUSAL(to_dlpack_tensor(floats(foreign.get(), 16), other.get()),
                 errc::pointer_unknown, "data");
}

// --- Two platforms --------------------------------------------------------------------------

TEST(TwoDevicesOpenclExport, TheDeviceIsThatOfTheMemoryAndAnotherIsRefused) {
  for (const std::size_t id : {std::size_t{0}, std::size_t{1}}) {
    const auto expected_id = static_cast<std::int32_t>(id);
    const cl_context context = native_default_context(id);
    const cl_device_id other = native_root(1 - id);
    const std::string found = "device " + std::to_string(1 - id);
    for (const alloc kind : usm_kinds) {
      const exported_memory mine(kind, id);
      EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context)), expected_id);
      EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, native_root(id))), expected_id);
      EXPECT_REFUSAL(
          to_dlpack_tensor(mine.view, context, other), errc::device_mismatch, "device",
          kind == alloc::host ? std::string("a device of the given context")
                              : "device " + std::to_string(id) + ", where the memory is",
          found);
      EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context(1 - id), other),
                     errc::pointer_unknown, "data");
    }
    EXPECT_REFUSAL(to_dlpack_tensor(floats(nullptr, 0), context, other), errc::device_mismatch,
                   "device", "a device of the given context", found);
  }
}

TEST(TwoDevicesOpenclExport, OnAPlatformOfSeveralTheIdIsThatOfTheTrueOrElseTheGivenDevice) {
  const exported_memory device;
  const exported_memory host(alloc::host);
  const changed_table two_roots([](device_table& table) {
    move_to_id_1(table);
    table.devices[1].platform = 0;
  });
  const cl_context context = native_default_context(0);
  EXPECT_EQ(id_of(to_dlpack_tensor(device.view, context)), 1);
  EXPECT_EQ(id_of(to_dlpack_tensor(device.view, context, native_root(0))), 1);
  EXPECT_EQ(id_of(to_dlpack_tensor(host.view, context)), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(host.view, context, native_root(0))), 1);
}

}  // namespace test_opencl_export
