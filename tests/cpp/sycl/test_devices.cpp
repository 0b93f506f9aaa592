// SPDX-License-Identifier: Apache-2.0
//
// device.hpp: ids of root devices, roots of sub-devices, default contexts, and processes that
// have no device, several, or a broken one.
#include <usm_dlpack/usm_dlpack.hpp>

#include <refusal.hpp>

#include "new_process.hpp"
#include "usm_memory.hpp"

#include <CL/cl.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace test_devices {

using namespace usm_dlpack_test;
using usm_dlpack::default_context;
using usm_dlpack::device_id;
using usm_dlpack::errc;
using usm_dlpack::root_device;

const char* const device_id_field = "device.device_id";

void expect_ids_are_positions() {
  const std::vector<sycl::device> devices = root_devices();
  for (std::size_t position = 0; position < devices.size(); ++position) {
    EXPECT_EQ(device_id(devices[position]), static_cast<std::int32_t>(position));
  }
}

void expect_roots_and_default_contexts() {
  const std::vector<sycl::device> devices = root_devices();
  for (std::size_t position = 0; position < devices.size(); ++position) {
    const auto id = static_cast<std::int32_t>(position);
    EXPECT_EQ(root_device(id), devices[position]);
    EXPECT_EQ(default_context(id), sycl::queue(devices[position]).get_context());
    EXPECT_NE(default_context(id), sycl::context(devices[position]));
  }
}

void expect_ids_outside_are_refused() {
  const auto count = static_cast<std::int32_t>(root_devices().size());
  const std::string expected =
      "from 0 to " + std::to_string(count - 1) + " (root devices in this process)";
  for (const std::int32_t id : {count, count + 1, std::numeric_limits<std::int32_t>::max(), -1,
                                std::numeric_limits<std::int32_t>::min()}) {
    EXPECT_REFUSAL(root_device(id), errc::device_id_out_of_range, device_id_field, expected,
                   std::to_string(id));
    EXPECT_REFUSAL(default_context(id), errc::device_id_out_of_range, device_id_field,
                   expected, std::to_string(id));
  }
}

TEST(Device, IdIsThePositionInGetDevices) { expect_ids_are_positions(); }

TEST(Device, RootDeviceAndDefaultContextAreThoseOfTheId) {
  expect_roots_and_default_contexts();
}

TEST(Device, IdsOutsideAreRefused) { expect_ids_outside_are_refused(); }

TEST(Device, SubDevicesHaveTheIdOfTheirRootOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  ASSERT_GT(parts.size(), 1U);
  for (const sycl::device& part : parts) {
    EXPECT_EQ(device_id(part), 0);
    EXPECT_NE(root_device(device_id(part)), part);
  }
}

TEST(Device, PartsOfPartsHaveTheIdOfTheirRootOnOpencl) {
  const sycl::device part = nested_sub_device();
  const auto parent = part.get_info<sycl::info::device::parent_device>();
  ASSERT_NE(parent, root_devices().at(0));
  EXPECT_EQ(device_id(part), 0);
  EXPECT_EQ(usm_dlpack::detail::root_of(part), root_devices().at(0));
}

TEST(Device, DefaultContextKnowsItsPlatform) {
  const auto& table = usm_dlpack::detail::device_table::get();
  EXPECT_EQ(table.find(default_context(0)), &table.platform_of(0));
  EXPECT_EQ(table.find(sycl::context(root_devices().at(0))), nullptr);
  EXPECT_EQ(table.platform_of(0).device_count, 1);
  EXPECT_EQ(table.platform_of(0).first_device, 0);
}

TEST(Device, WhatTheRuntimeThrowsIsRefusedWithItsText) {
  std::string text;
  const auto broken_query = [] { sycl::get_pointer_device(nullptr, default_context(0)); };
  try {
    broken_query();
  } catch (const sycl::exception& error) {
    text = error.what();
  }
  ASSERT_FALSE(text.empty());
  EXPECT_REFUSAL(usm_dlpack::detail::ask_runtime("device", broken_query), errc::runtime_error,
                 "device", "an answer of the SYCL runtime", "the exception \"" + text + "\"");
}

TEST(Device, BackendsHaveTheNamesOfFilterStrings) {
  using usm_dlpack::to_string;
  static_assert(std::string_view(to_string(sycl::backend::opencl)) == "opencl");
  static_assert(std::string_view(to_string(sycl::backend::ext_oneapi_level_zero)) ==
                "level_zero");
  static_assert(std::string_view(to_string(sycl::backend::ext_oneapi_cuda)) == "cuda");
  static_assert(std::string_view(to_string(sycl::backend::ext_oneapi_hip)) == "hip");
  static_assert(std::string_view(to_string(sycl::backend::all)) == "unknown");
}

// --- Once in a process --------------------------------------------------------------------

TEST(Device, AProcessWithoutDevicesRefusesEverythingAndSaysWhatToInstallOnOpencl) {
  in_a_new_process(
      {{"OCL_ICD_FILENAMES", "/nonexistent"}, {"USM_DLPACK_TEST_DEVICES", "0"}}, [] {
        ASSERT_TRUE(root_devices().empty());
        const auto expect_no_device = [](const auto& act) {
          EXPECT_REFUSAL(act(), errc::no_device, device_id_field,
                         "a root device of this process", "none at all");
        };
        expect_no_device([] { return root_device(0); });
        expect_no_device([] { return root_device(-1); });
        expect_no_device([] { return default_context(0); });
        std::array<float, 4> elements{};
        const auto view = view_of(elements.data(), 4);
        expect_no_device([&] { return usm_dlpack::to_dlpack_tensor(view); });
        const auto wrapper = usm_dlpack::to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
        const DLTensor tensor = wrapper.get();
        expect_no_device([&] { return usm_dlpack::validate(tensor); });
        try {
          root_device(0);
        } catch (const usm_dlpack::conversion_error& error) {
          EXPECT_NE(error.remedy().find("OCL_ICD_FILENAMES"), std::string::npos);
        }
      });
}

// --- Several root devices ----------------------------------------------------------------

TEST(TwoDevicesDevice, IdIsThePositionInGetDevices) { expect_ids_are_positions(); }

TEST(TwoDevicesDevice, RootDeviceAndDefaultContextAreThoseOfTheId) {
  expect_roots_and_default_contexts();
  EXPECT_NE(default_context(0), default_context(1));
}

TEST(TwoDevicesDevice, IdsOutsideAreRefused) { expect_ids_outside_are_refused(); }

TEST(TwoDevicesDevice, SubDevicesHaveTheIdOfTheirRoot) {
  const std::vector<sycl::device> parts =
      root_devices()
          .at(1)
          .create_sub_devices<sycl::info::partition_property::partition_equally>(1);
  for (const sycl::device& part : parts) {
    EXPECT_EQ(device_id(part), 1);
  }
}

TEST(TwoDevicesDevice, EachIsTheFirstDeviceOfItsPlatform) {
  const auto& table = usm_dlpack::detail::device_table::get();
  ASSERT_EQ(table.platforms.size(), 2U);
  for (const std::int32_t id : {0, 1}) {
    EXPECT_EQ(table.platform_of(id).first_device, id);
    EXPECT_EQ(table.platform_of(id).device_count, 1);
  }
}

/// The OpenCL devices of all drivers, those included that SYCL does not list.
std::vector<cl_device_id> opencl_devices() {
  void* loader = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto platforms_of =
      reinterpret_cast<decltype(&clGetPlatformIDs)>(dlsym(loader, "clGetPlatformIDs"));
  const auto devices_of =
      reinterpret_cast<decltype(&clGetDeviceIDs)>(dlsym(loader, "clGetDeviceIDs"));
  std::array<cl_platform_id, 8> platforms{};
  cl_uint platform_count = 0;
  platforms_of(8, platforms.data(), &platform_count);
  std::vector<cl_device_id> devices;
  for (std::size_t place = 0; place < platform_count; ++place) {
    cl_device_id device = nullptr;
    devices_of(platforms[place], CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
    devices.push_back(device);
  }
  return devices;
}

TEST(TwoDevicesDevice, ADeviceHiddenByTheSelectorHasNoIdAndTheOtherIsCountedFrom0) {
  in_a_new_process({{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}, {"USM_DLPACK_TEST_DEVICES", "1"}},
                   [] {
                     const sycl::device shown = root_devices().at(0);
                     EXPECT_EQ(device_id(shown), 0);
                     int hidden = 0;
                     for (const cl_device_id native : opencl_devices()) {
                       const auto device = sycl::make_device<sycl::backend::opencl>(native);
                       if (device == shown) {
                         continue;
                       }
                       ++hidden;
                       EXPECT_REFUSAL(device_id(device), errc::device_without_id, "device",
                                      "a device whose root is in sycl::device::get_devices()",
                                      "one that is not");
                     }
                     EXPECT_EQ(hidden, 1);
                   });
}

TEST(ThreeDevicesDevice, IdIsThePositionInGetDevices) { expect_ids_are_positions(); }

TEST(ThreeDevicesDevice, RootDeviceAndDefaultContextAreThoseOfTheId) {
  expect_roots_and_default_contexts();
}

TEST(ThreeDevicesDevice, IdsOutsideAreRefused) { expect_ids_outside_are_refused(); }

// --- A device that the runtime lists, and cannot use --------------------------------------

/// The runtime's own words on the broken device.
std::string text_of_failure(const sycl::device& device) {
  try {
    sycl::queue queue(device);
  } catch (const sycl::exception& error) {
    return error.what();
  }
  return "nothing is broken";
}

TEST(BrokenDevice, TakesItsPlaceAmongTheIds) {
  const std::vector<sycl::device> devices = root_devices();
  EXPECT_EQ(device_id(devices.at(0)), 0);
  EXPECT_EQ(device_id(devices.at(1)), 1);
}

TEST(BrokenDevice, IsRefusedWithTheTextOfTheRuntime) {
  const std::string text = text_of_failure(root_devices().at(1));
  ASSERT_NE(text.find("DEVICE_NOT_AVAILABLE"), std::string::npos);
  const std::string found = "device 1, for which it throws \"" + text + "\"";
  const char* const expected = "a device that the SYCL runtime can use";
  EXPECT_REFUSAL(root_device(1), errc::device_failed, device_id_field, expected, found);
  EXPECT_REFUSAL(default_context(1), errc::device_failed, device_id_field, expected, found);
  usm_tensor valid;
  valid.tensor.device.device_id = 1;
  EXPECT_REFUSAL(usm_dlpack::validate(valid.tensor), errc::device_failed, device_id_field,
                 expected, found);
}

TEST(BrokenDevice, IdsOutsideAreRefusedAsOnAnyOther) { expect_ids_outside_are_refused(); }

TEST(BrokenDevice, DoesNotDisturbTheUseOfTheOther) {
  const sycl::queue queue = queue_on(0);
  EXPECT_EQ(root_device(0), root_devices().at(0));
  EXPECT_EQ(default_context(0), queue.get_context());
  for (const sycl::usm::alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    EXPECT_EQ(id_of(usm_dlpack::to_dlpack_tensor(view, queue)), 0);
    EXPECT_EQ(id_of(usm_dlpack::to_dlpack_tensor(view, default_context(0))), 0);
    const auto wrapper = usm_dlpack::to_dlpack_tensor(view);
    EXPECT_EQ(usm_dlpack::validate(wrapper.get()).usm_type(), kind);
  }
}

TEST(BrokenDevice, AnUnknownPointerIsStillCalledUnknown) {
  std::array<float, 4> elements{};
  const auto view = view_of(elements.data(), 4);
  EXPECT_REFUSAL(usm_dlpack::to_dlpack_tensor(view), errc::pointer_unknown, "data",
                 "USM of the default context of a platform", "an allocation unknown to it");
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
  EXPECT_REFUSAL(usm_dlpack::validate(wrapper.get()), errc::pointer_unknown, "data",
                 "USM of the default context of device 0", "an allocation unknown to it");
}

TEST(BrokenDevice, HasNoNativeHandlesAndTheOtherHas) {
  const auto& table = usm_dlpack::detail::device_table::get();
  ASSERT_EQ(table.platforms.size(), 2U);
  EXPECT_NE(table.platforms[0].opencl.query, nullptr);
  EXPECT_EQ(table.platforms[1].opencl.query, nullptr);
}

}  // namespace test_devices
