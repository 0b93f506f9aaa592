// SPDX-License-Identifier: Apache-2.0
//
// Three root devices in one default context of OpenCL, of a driver that names a device for
// host USM too. Run on PoCL by `dev.py gpu`.
#include "opencl_objects.hpp"

namespace test_pocl {

using namespace usm_dlpack_test;

constexpr std::int32_t ids[] = {0, 1, 2};

DLTensor named(const usm_floats& memory, std::int32_t id) {
  static std::deque<dlpack_tensor<1>> kept;
  return kept.emplace_back(to_dlpack_tensor(memory.view, DLDevice{kDLOneAPI, id})).get();
}

TEST(PoclRoots, AreOfOneDefaultContext) {
  for (const std::int32_t id : ids) {
    EXPECT_EQ(device_id(root_devices().at(static_cast<std::size_t>(id))), id);
    EXPECT_EQ(default_context(id), default_context(0));
  }
}

TEST(PoclRoots, MemoryIsOfItsDeviceAloneAndHostMemoryOfEach) {
  for (const std::int32_t id : ids) {
    for (const alloc kind : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(kind));
      const usm_floats memory(kind, queue_on(id));
      const bool on_host = kind == alloc::host;
      const std::int32_t first = on_host ? 0 : id;
      EXPECT_EQ(id_of(to_dlpack_tensor(memory.view)), first);
      EXPECT_EQ(id_of(to_dlpack_tensor(memory.view, default_context(0))), first);
      EXPECT_EQ(id_of(to_dlpack_tensor(memory.view, native_default_context())), first);
      for (const std::int32_t other : ids) {
        const sycl::queue queue = queue_on(other);
        const auto by_queue = [&] { return to_dlpack_tensor(memory.view, queue); };
        const auto prove = [&] { return validate(named(memory, other)); };
        if (on_host || other == id) {
          EXPECT_EQ(id_of(by_queue()), other);
          EXPECT_EQ(prove().usm_type(), kind);
          EXPECT_EQ(prove().device(), queue.get_device());
          check_queue(queue, memory.view);
          continue;
        }
        const std::string there = std::to_string(id);
        const std::string here = std::to_string(other);
        EXPECT_REFUSAL(by_queue(), errc::device_mismatch, "queue",
                       "a queue on device " + there + ", where the memory is",
                       "one on device " + here);
        EXPECT_REFUSAL(check_queue(queue, memory.view), errc::device_mismatch, "queue");
        EXPECT_REFUSAL(prove(), errc::device_mismatch, "device.device_id",
                       there + " (the root device of the memory)", here);
      }
    }
  }
}

TEST(PoclRoots, HostMemoryIsNotSaidToBeOnAnotherDevice) {
  const usm_floats memory(alloc::host, queue_on(0));
  const sycl::device other = queue_on(1).get_device();
  EXPECT_REFUSAL(to_dlpack_tensor(memory.view, sycl::queue(sycl::context(other), other)),
                 errc::pointer_unknown, "data", "USM of the given context",
                 "an allocation unknown to it", "pass the context that it is of");
}

TEST(PoclRoots, AnArrayForResultsIsOfItsQueuesDevice) {
  for (const std::int32_t id : ids) {
    for (const alloc kind : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(kind));
      usm_array<row_view<float>> made(queue_on(id), md::dextents<std::int64_t, 1>(24), kind);
      const managed_tensor managed = to_managed_tensor(std::move(made));
      const usm_allocation proved = validate(*managed);
      EXPECT_EQ(proved.device_id(), id);
      EXPECT_EQ(proved.usm_type(), kind);
      EXPECT_EQ(proved.bounds_proved(), bounds_proof::allocation);
    }
  }
}

}  // namespace test_pocl
