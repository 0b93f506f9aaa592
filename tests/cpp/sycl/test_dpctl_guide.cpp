// SPDX-License-Identifier: Apache-2.0
//
// Both protocols as dpctl's guide "DLPack exchange of USM allocated arrays" shows them in C++,
// step by step with plain SYCL calls, and beside each step what this library says. The guide's
// type errors are our three refusals `pointer_unknown`, `context_not_default` and
// `device_without_id`.
#include <usm_dlpack/usm_dlpack.hpp>

#include <refusal.hpp>

#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace test_dpctl_guide {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::conversion_error;
using usm_dlpack::errc;

/// The guide's `get_parent_root_device`.
sycl::device parent_root_device_of(sycl::device device) {
  while (device.get_info<sycl::info::device::partition_type_property>() !=
         sycl::info::partition_property::no_partition) {
    device = device.get_info<sycl::info::device::parent_device>();
  }
  return device;
}

/// The guide's last steps of the export: the position of the root device.
std::int32_t position_of(const sycl::device& root) {
  const std::vector<sycl::device> all_root_devices = sycl::device::get_devices();
  const auto position = std::find(all_root_devices.begin(), all_root_devices.end(), root);
  if (position == all_root_devices.end()) {
    throw std::invalid_argument("Could not produce DLPack: failed finding device_id");
  }
  return static_cast<std::int32_t>(std::distance(all_root_devices.begin(), position));
}

/// The code that our export refuses memory of a context with.
errc refused_export(const usm_memory& memory, const sycl::context& context) {
  try {
    static_cast<void>(usm_dlpack::to_dlpack_tensor(view_of(memory.as<float>(), 16), context));
  } catch (const conversion_error& error) {
    return error.code();
  }
  throw std::runtime_error("the export was not refused");
}

/// Walks through the export of memory that the guide accepts.
void expect_steps_of_the_export(const usm_memory& memory, const sycl::context& context) {
  // Get device where allocation was originally made
  const sycl::device device = sycl::get_pointer_device(memory.at(), context);
  const std::int32_t id = usm_dlpack::device_id(device);
  const auto& entry = usm_dlpack::detail::device_table::get().platform_of(id);
  const auto found = usm_dlpack::detail::find_allocation(memory.at(), entry);
  EXPECT_EQ(usm_dlpack::root_device(found.device_id), device);

  // Assert that ctx is the default platform context, or throw
  const sycl::context default_context = device.get_platform().khr_get_default_context();
  ASSERT_EQ(context, default_context);
  EXPECT_EQ(usm_dlpack::default_context(id), default_context);

  // Find parent root device if ptr_dev is a sub-device
  const sycl::device root = parent_root_device_of(device);
  EXPECT_EQ(usm_dlpack::root_device(id), root);

  // Find position of parent_root_device in sycl::get_devices
  EXPECT_EQ(id, position_of(root));
  const auto exported = usm_dlpack::to_dlpack_tensor(view_of(memory.as<float>(), 16), context);
  EXPECT_EQ(exported.get().device.device_type, kDLOneAPI);
  EXPECT_EQ(exported.get().device.device_id, position_of(root));
}

/// Walks through the import of a tensor that the guide accepts.
void expect_steps_of_the_import(const DLTensor& tensor) {
  const usm_dlpack::usm_allocation proved = usm_dlpack::validate(tensor);
  const void* const ptr = tensor.data;
  const std::int32_t device_id = tensor.device.device_id;

  // Get root_device from device_id
  const std::vector<sycl::device> device_vector = sycl::device::get_devices();
  const sycl::device root = device_vector.at(static_cast<std::size_t>(device_id));
  EXPECT_EQ(usm_dlpack::root_device(device_id), root);
  EXPECT_EQ(proved.root_device(), root);

  // Check if the backend of the device is supported by consumer
  usm_dlpack::requirements wanted;
  wanted.backends = {root.get_backend()};
  EXPECT_EQ(usm_dlpack::validate(tensor, wanted).device_id(), device_id);

  // Get default platform context
  const sycl::context default_context = root.get_platform().khr_get_default_context();
  EXPECT_EQ(usm_dlpack::default_context(device_id), default_context);
  EXPECT_EQ(proved.context(), default_context);

  // Check that pointer is known in the context
  const alloc kind = sycl::get_pointer_type(ptr, default_context);
  ASSERT_NE(kind, alloc::unknown);
  EXPECT_EQ(proved.usm_type(), kind);

  // Perform check that USM allocation type is supported by consumer if needed
  wanted.usm_types = {kind};
  EXPECT_EQ(usm_dlpack::validate(tensor, wanted).usm_type(), kind);

  // Get sycl::device where the data was allocated
  EXPECT_EQ(proved.device(), sycl::get_pointer_device(ptr, default_context));
  EXPECT_EQ(proved.data(), ptr);
}

void expect_the_guide_on_each_device() {
  const std::size_t count = root_devices().size();
  for (std::size_t place = 0; place < count; ++place) {
    const sycl::queue queue = queue_on(place);
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue);
      expect_steps_of_the_export(memory, queue.get_context());
      const auto exported =
          usm_dlpack::to_dlpack_tensor(view_of(memory.as<float>(), 16), queue);
      expect_steps_of_the_import(exported.get());
    }
  }
}

TEST(DpctlGuide, ExportAndImportGoTheSameStepsForEachKind) {
  expect_the_guide_on_each_device();
}

TEST(TwoDevicesDpctlGuide, ExportAndImportGoTheSameStepsForEachKind) {
  expect_the_guide_on_each_device();
}

TEST(DpctlGuide, ExportRefusesMemoryOfASubDeviceForItsContextThoughItsRootHasAnIdOnOpencl) {
  for (const sycl::device& part : {sub_devices().at(1), nested_sub_device()}) {
    const sycl::queue queue(part);
    const sycl::context context = queue.get_context();
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue);
      const sycl::device ptr_dev = sycl::get_pointer_device(memory.at(), context);
      EXPECT_EQ(ptr_dev, part);
      EXPECT_NE(context, ptr_dev.get_platform().khr_get_default_context());
      EXPECT_EQ(refused_export(memory, context), errc::context_not_default);

      const sycl::device root = parent_root_device_of(ptr_dev);
      EXPECT_EQ(usm_dlpack::device_id(ptr_dev), position_of(root));
      EXPECT_EQ(usm_dlpack::root_device(usm_dlpack::device_id(ptr_dev)), root);
    }
  }
}

TEST(DpctlGuide, ImportRefusesAPointerThatTheDefaultContextDoesNotKnowOnOpencl) {
  usm_tensor valid;
  const sycl::device root = sycl::device::get_devices().at(0);
  const sycl::context default_context = root.get_platform().khr_get_default_context();
  for (const alloc kind : usm_kinds) {
    const usm_memory elsewhere(kind, 96, root, sycl::context(root));
    const usm_memory of_a_part(kind, 96, sycl::queue(sub_devices().at(0)));
    for (void* const ptr : {elsewhere.at(), of_a_part.at()}) {
      EXPECT_EQ(sycl::get_pointer_type(ptr, default_context), alloc::unknown);
      valid.tensor.data = ptr;
      EXPECT_REFUSAL(usm_dlpack::validate(valid.tensor), errc::pointer_unknown, "data",
                     "USM of the default context of device 0", "an allocation unknown to it");
    }
  }
}

}  // namespace test_dpctl_guide
