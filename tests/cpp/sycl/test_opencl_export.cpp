// SPDX-License-Identifier: Apache-2.0
//
// opencl/interop.hpp: which device may be given to the export protocol with a context's
// handle. test_to_dlpack.cpp gives handles too, and test_order_of_checks.cpp breaks each rule.
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

  explicit exported_memory(alloc kind = alloc::device, int device_id = 0)
      : memory(kind, 16 * sizeof(float), queue_on(device_id)), view(memory.as<float>(), 16) {}
};

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

TEST(TwoDevicesOpenclExport, ADeviceOfAnotherPlatformThanTheMemorysIsRefused) {
  for (const int id : {0, 1}) {
    const cl_context context = native_default_context(id);
    const cl_device_id other = native_root(1 - id);
    const auto expect_refused = [&](const floats& view, const std::string& expected) {
      EXPECT_REFUSAL(to_dlpack_tensor(view, context, other), errc::device_mismatch, "device",
                     expected, "device " + std::to_string(1 - id));
    };
    for (const alloc kind : usm_kinds) {
      const exported_memory mine(kind, id);
      expect_refused(mine.view, kind == alloc::host ? "a device of the given context"
                                                    : "device " + std::to_string(id) +
                                                          ", where the memory is");
      EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context(1 - id), other),
                     errc::pointer_unknown, "data");
    }
    expect_refused(floats(nullptr, 0), "a device of the given context");
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
