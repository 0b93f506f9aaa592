// SPDX-License-Identifier: Apache-2.0
//
// sycl/validate.hpp: what a consumer can require, and what is told of what was proved.
#include <usm_dlpack/sycl/to_dlpack.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <gtest/gtest.h>

#include "usm_memory.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace test_usm_allocation {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::accepted;
using usm_dlpack::bounds_proof;
using usm_dlpack::device_proof;
using usm_dlpack::usm_allocation;

TEST(UsmAllocation, EverythingIsAcceptedUnlessTold) {
  static_assert(accepted<alloc>{}.contains(alloc::host));
  static_assert(accepted<alloc>{}.contains(alloc::device));
  static_assert(accepted<alloc>{}.contains(alloc::shared));
  static_assert(accepted<sycl::backend>{}.contains(sycl::backend::opencl));
  static_assert(accepted<sycl::backend>{}.contains(sycl::backend::ext_oneapi_level_zero));
  const usm_dlpack::requirements wanted;
  EXPECT_FALSE(wanted.writable);
  EXPECT_FALSE(wanted.unique);
}

TEST(UsmAllocation, OnlyTheNamedValuesAreAcceptedIfTold) {
  constexpr accepted<alloc> two{alloc::device, alloc::shared};
  static_assert(!two.contains(alloc::host));
  static_assert(two.contains(alloc::device) && two.contains(alloc::shared));
  constexpr accepted<sycl::backend> one{sycl::backend::ext_oneapi_level_zero};
  static_assert(!one.contains(sycl::backend::opencl));
  static_assert(one.contains(sycl::backend::ext_oneapi_level_zero));
}

TEST(UsmAllocation, ValuesCanBeInsertedOneByOne) {
  accepted<alloc> kinds({});
  for (const alloc kind : usm_kinds) {
    EXPECT_FALSE(kinds.contains(kind));
    kinds.insert(kind);
    EXPECT_TRUE(kinds.contains(kind));
  }
}

TEST(UsmAllocation, KindsHaveTheNamesOfSycl) {
  using usm_dlpack::to_string;
  static_assert(std::string_view(to_string(alloc::host)) == "host");
  static_assert(std::string_view(to_string(alloc::device)) == "device");
  static_assert(std::string_view(to_string(alloc::shared)) == "shared");
  static_assert(std::string_view(to_string(alloc::unknown)) == "unknown");
}

TEST(UsmAllocation, EveryFieldIsTrueOfTheMemoryUnpooled) {
  const sycl::queue queue = queue_on();
  for (const alloc kind : usm_kinds) {
    usm_tensor valid(kind, queue);
    valid.shape = {2, 3};
    valid.tensor.byte_offset = 4;
    const usm_allocation proved = usm_dlpack::validate(valid.tensor);
    EXPECT_EQ(proved.data(), valid.memory.at(4));
    EXPECT_EQ(proved.usm_type(), kind);
    EXPECT_EQ(proved.device_id(), 0);
    EXPECT_EQ(proved.root_device(), queue.get_device());
    EXPECT_EQ(proved.device(), queue.get_device());
    EXPECT_EQ(proved.context(), queue.get_context());
    EXPECT_EQ(proved.device_proved(),
              kind == alloc::host ? device_proof::none : device_proof::backend);
    EXPECT_EQ(proved.bounds_proved(), bounds_proof::allocation);
    EXPECT_EQ(proved.base(), reinterpret_cast<std::uintptr_t>(valid.memory.at()));
    EXPECT_EQ(proved.size(), usm_tensor::size);
    EXPECT_EQ(proved.structure().first, reinterpret_cast<std::uintptr_t>(valid.memory.at(4)));
    EXPECT_EQ(proved.structure().lowest, proved.structure().first);
    EXPECT_EQ(proved.structure().nbytes, (6U + 3U) * 4U);
    EXPECT_FALSE(proved.structure().empty);
    EXPECT_TRUE(proved.structure().unique);
  }
}

TEST(UsmAllocation, TheDeviceOfASubDevicesMemoryIsTheSubDeviceOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context({parts.at(0), parts.at(1)});
  const changed_natives of_parts([&](native_platforms& platforms) {
    platforms.at(0).opencl.context = sycl::get_native<sycl::backend::opencl>(context);
  });
  const usm_memory memory(alloc::device, 64, parts[1], context);
  const auto exported = usm_dlpack::to_dlpack_tensor(view_of(memory.as<float>(), 16));
  const usm_allocation proved = usm_dlpack::validate(exported.get());
  EXPECT_EQ(proved.device_id(), 0);
  EXPECT_EQ(proved.root_device(), root_devices().at(0));
  EXPECT_EQ(sycl::get_native<sycl::backend::opencl>(proved.device()),
            sycl::get_native<sycl::backend::opencl>(parts[1]));
}

TEST(UsmAllocation, AViewOfNegativeStrideStartsAtItsFirstElementAndSpansFromItsLowest) {
  usm_tensor valid;
  valid.strides = {-6, -1};
  valid.tensor.byte_offset = 23 * 4;
  const usm_allocation proved = usm_dlpack::validate(valid.tensor);
  EXPECT_EQ(proved.data(), valid.memory.at(92));
  EXPECT_EQ(proved.structure().lowest, reinterpret_cast<std::uintptr_t>(valid.memory.at()));
  EXPECT_EQ(proved.structure().nbytes, usm_tensor::size);
}

TEST(UsmAllocation, OfAnEmptyTensorWithoutMemoryOnlyTheDeviceIsProved) {
  usm_tensor valid;
  valid.shape = {0, 6};
  valid.tensor.data = nullptr;
  const usm_allocation proved = usm_dlpack::validate(valid.tensor);
  EXPECT_EQ(proved.data(), nullptr);
  EXPECT_EQ(proved.usm_type(), alloc::unknown);
  EXPECT_EQ(proved.device_id(), 0);
  EXPECT_EQ(proved.root_device(), root_devices().at(0));
  EXPECT_EQ(proved.device(), root_devices().at(0));
  EXPECT_EQ(proved.context(), queue_on().get_context());
  EXPECT_EQ(proved.device_proved(), device_proof::none);
  EXPECT_EQ(proved.bounds_proved(), bounds_proof::none);
  EXPECT_EQ(proved.base(), 0U);
  EXPECT_EQ(proved.size(), 0U);
  EXPECT_TRUE(proved.structure().empty);
}

TEST(TwoDevicesUsmAllocation, DeviceAndContextAreThoseOfTheNamedDevice) {
  for (const std::int32_t id : {0, 1}) {
    const sycl::queue queue = queue_on(static_cast<std::size_t>(id));
    for (const alloc kind : usm_kinds) {
      const usm_tensor valid(kind, queue, id);
      const usm_allocation proved = usm_dlpack::validate(valid.tensor);
      EXPECT_EQ(proved.device_id(), id);
      EXPECT_EQ(proved.root_device(), queue.get_device());
      EXPECT_EQ(proved.device(), queue.get_device());
      EXPECT_EQ(proved.context(), queue.get_context());
    }
  }
}

}  // namespace test_usm_allocation
