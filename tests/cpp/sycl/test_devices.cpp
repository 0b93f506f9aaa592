// SPDX-License-Identifier: Apache-2.0
//
// sycl/devices.hpp: ids of root devices, roots of sub-devices, default contexts, and processes
// that have no device, several, a hidden or a broken one.
#include "new_process.hpp"
#include "opencl_objects.hpp"

namespace test_devices {

using namespace usm_dlpack_test;

const char* const device_id_field = "device.device_id";

static_assert(std::string_view(to_string(sycl::backend::opencl)) == "opencl");
static_assert(std::string_view(to_string(sycl::backend::all)) == "unknown");

void expect_ids_outside_are_refused(const std::string& expected) {
  const auto count = static_cast<std::int32_t>(root_devices().size());
  const char* const of_this_process =
      "give an id of this process, or check ONEAPI_DEVICE_SELECTOR";
  EXPECT_REFUSAL(root_device(count), errc::no_device, device_id_field, expected,
                 std::to_string(count), of_this_process);
  EXPECT_REFUSAL(root_device(-1), errc::no_device, device_id_field, expected, "-1",
                 "give the id of a root device");
  EXPECT_REFUSAL(default_context(count), errc::no_device, device_id_field, expected);
}

/// Where each root device is on a platform of its own, as those of CPU drivers are.
void expect_ids_are_positions(const std::string& ids) {
  const std::vector<sycl::device> devices = root_devices();
  const device_table& table = device_table::get();
  ASSERT_EQ(table.platforms.size(), devices.size());
  for (std::size_t position = 0; position < devices.size(); ++position) {
    const sycl::device& device = devices[position];
    const auto id = static_cast<std::int32_t>(position);
    EXPECT_EQ(device_id(device), id);
    EXPECT_EQ(root_device(id), device);
    EXPECT_EQ(default_context(id), sycl::queue(device).get_context());
    EXPECT_EQ(default_context(id), device.get_platform().khr_get_default_context());
    EXPECT_EQ(table.find(default_context(id)), &table.platform_of(id));
    EXPECT_EQ(table.find(sycl::context(device)), nullptr);
    EXPECT_EQ(table.platform_of(id).first_device, id);
    EXPECT_EQ(table.platform_of(id).device_count, 1);
  }
  expect_ids_outside_are_refused(ids + " in this process)");
}

TEST(Device, IdIsThePositionInGetDevices) {
  expect_ids_are_positions("0 (the only root device");
}
TEST(TwoDevicesDevice, IdIsThePositionInGetDevices) {
  expect_ids_are_positions("from 0 to 1 (root devices");
}

TEST(Device, OfATensorIsNamedByTypeAndNumber) {
  EXPECT_EQ(device_id(DLDevice{kDLOneAPI, 0}), 0);
  EXPECT_REFUSAL(device_id(DLDevice{kDLOneAPI, 7}), errc::no_device, device_id_field);
  EXPECT_REFUSAL(device_id(DLDevice{kDLROCM, 0}), errc::device_type_unsupported,
                 "device.device_type", "kDLOneAPI (14)", "kDLROCM (10)");
  for (const DLDeviceType type : {kDLCUDA, kDLCUDAHost, kDLCUDAManaged}) {
    EXPECT_REFUSAL(device_id(DLDevice{type, -1}), errc::device_type_unsupported,
                   "device.device_type",
                   "kDLOneAPI (14), or CUDA memory of a GPU that is a SYCL device of this "
                   "process",
                   detail::device_type_name(type) + " of CUDA device -1, which is none",
                   "SYCL's backend cuda");
  }
  EXPECT_REFUSAL(cuda_device(7), errc::no_device, device_id_field);
}

TEST(Device, HasNoNumberInCudaOnOpencl) {
  EXPECT_REFUSAL(cuda_device(0), errc::device_not_accepted, device_id_field,
                 "a device of the backend cuda", "device 0 of the backend opencl");
}

TEST(TwoDevicesDevice, SubDevicesHaveTheIdOfTheirRoot) {
  for (const int id : {0, 1}) {
    for (const sycl::device& part : sub_devices(id)) {
      EXPECT_EQ(device_id(part), id);
    }
  }
  const sycl::device nested = nested_sub_device();
  ASSERT_NE(nested.get_info<sycl::info::device::parent_device>(), root_devices().at(0));
  EXPECT_EQ(device_id(nested), 0);
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
  EXPECT_REFUSAL(detail::with_runtime_errors("device", broken_query), errc::runtime_error,
                 "device", "an answer of the SYCL runtime", "the exception \"" + text + "\"");
}

// --- Once in a process --------------------------------------------------------------------

TEST(Device, AProcessWithoutDevicesRefusesEverythingAndSaysWhatToInstallOnOpencl) {
  in_a_new_process({{"OCL_ICD_FILENAMES", "/nonexistent"}, {"USM_DLPACK_TEST_DEVICES", "0"}},
                   [] {
                     ASSERT_TRUE(root_devices().empty());
                     EXPECT_REFUSAL(root_device(-1), errc::no_device, device_id_field, {}, {},
                                    "OCL_ICD_FILENAMES");
                     EXPECT_REFUSAL(default_context(0), errc::no_device, device_id_field);
                     std::array<float, 4> elements{};
                     const auto view = view_of(elements.data(), 4);
                     EXPECT_REFUSAL(to_dlpack_tensor(view), errc::no_device, device_id_field);
                     const auto wrapper = to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
                     EXPECT_REFUSAL(validate(wrapper.get()), errc::no_device, device_id_field);
                   });
}

TEST(DeviceTable, ASelectorThatTheRuntimeCannotReadIsRefusedWithItsText) {
  in_a_new_process({{"ONEAPI_DEVICE_SELECTOR", "no such backend"}}, [] {
    try {
      root_device(0);
      ADD_FAILURE() << "expected a refusal";
    } catch (const conversion_error& error) {
      EXPECT_EQ(error.code(), errc::runtime_error);
      EXPECT_GT(error.found().size(), std::string("the exception \"\"").size());
    }
  });
}

TEST(BrokenDevice, HasAnIdAndIsRefusedWithTheTextOfTheRuntime) {
  const std::vector<sycl::device> devices = root_devices();
  EXPECT_EQ(device_id(devices.at(0)), 0);
  EXPECT_EQ(device_id(devices.at(1)), 1);
  expect_ids_outside_are_refused("from 0 to 1 (root devices in this process)");

  std::string text;
  try {
    sycl::queue queue(devices.at(1));
  } catch (const sycl::exception& error) {
    text = error.what();
  }
  ASSERT_NE(text.find("DEVICE_NOT_AVAILABLE"), std::string::npos);
  const std::string found = "device 1, for which it throws \"" + text + "\"";
  EXPECT_REFUSAL(root_device(1), errc::no_device, device_id_field,
                 "a device that the SYCL runtime can use", found);
  EXPECT_REFUSAL(default_context(1), errc::no_device, device_id_field, {}, found);
  std::array<float, 4> elements{};
  const auto wrapper = to_dlpack_tensor(view_of(elements.data(), 4), DLDevice{kDLOneAPI, 1});
  EXPECT_REFUSAL(validate(wrapper.get()), errc::no_device, device_id_field, {}, found);
}

TEST(BrokenDevice, DoesNotDisturbTheUseOfTheOther) {
  const sycl::queue queue = queue_on(0);
  EXPECT_EQ(root_device(0), root_devices().at(0));
  EXPECT_EQ(default_context(0), queue.get_context());
  const usm_floats memory(alloc::device, queue);
  EXPECT_EQ(id_of(to_dlpack_tensor(memory.view, queue)), 0);
  const auto wrapper = to_dlpack_tensor(memory.view);
  EXPECT_EQ(validate(wrapper.get()).usm_type(), alloc::device);
  std::array<float, 4> elements{};
  EXPECT_REFUSAL(to_dlpack_tensor(view_of(elements.data(), 4)), errc::pointer_unknown, "data");

  EXPECT_EQ(sycl_context(native_default_context(0)), default_context(0));
  EXPECT_EQ(native_default_context(1), nullptr);

  const device_table& table = device_table::get();
  ASSERT_EQ(table.platforms.size(), 2U);
  EXPECT_NE(detail::opencl_of(table.platforms[0]), nullptr);
  EXPECT_EQ(table.platforms[1].queries, nullptr);
  EXPECT_EQ(table.find(sycl::context(root_device(0))), nullptr);
  EXPECT_EQ(table.find(default_context(0)), &table.platforms[0]);
}

}  // namespace test_devices
