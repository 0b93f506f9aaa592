// SPDX-License-Identifier: Apache-2.0
//
// sycl/devices.hpp: native handles, the root of a native device, and the range of an
// allocation.
#include <usm_dlpack/sycl/memory.hpp>

#include <gtest/gtest.h>

#include "usm_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace test_opencl_query {

using namespace usm_dlpack_test;
using usm_dlpack::detail::opencl_platform;

TEST(OpenclQuery, ANativeDeviceHasTheIdOfItsRoot) {
  const opencl_platform& native =
      usm_dlpack::detail::device_table::get().platforms.at(0).opencl;
  const auto id_of_native = [&](const sycl::device& device) {
    return usm_dlpack::detail::root_id_of(native,
                                          sycl::get_native<sycl::backend::opencl>(device));
  };
  EXPECT_EQ(id_of_native(root_devices().at(0)), 0);
  EXPECT_EQ(id_of_native(sub_devices().at(1)), 0);
  EXPECT_EQ(id_of_native(nested_sub_device()), 0);
  EXPECT_EQ(usm_dlpack::detail::root_id_of(native, nullptr), -1);
}

TEST(OpenclQuery, TheRangeIsToldFromEveryByteAndOfNothingElse) {
  const opencl_platform& native =
      usm_dlpack::detail::device_table::get().platforms.at(0).opencl;
  ASSERT_NE(native.query, nullptr);
  const usm_memory memory(sycl::usm::alloc::device, 96, queue_on());
  for (const std::ptrdiff_t at : {std::ptrdiff_t{0}, std::ptrdiff_t{95}}) {
    std::uintptr_t base = 0;
    std::size_t size = 0;
    ASSERT_TRUE(native.get_range(memory.at(at), base, size));
    EXPECT_EQ(base, reinterpret_cast<std::uintptr_t>(memory.at()));
    EXPECT_EQ(size, 96U);
  }
  std::array<float, 1> on_stack{};
  std::uintptr_t base = 1;
  std::size_t size = 0;
  native.get_range(on_stack.data(), base, size);
  EXPECT_EQ(size, 0U);
}

TEST(TwoDevicesOpenclQuery, ANativeDeviceOfAnotherPlatformHasNoIdHere) {
  const auto& table = usm_dlpack::detail::device_table::get();
  ASSERT_EQ(table.platforms.size(), 2U);
  const auto second = sycl::get_native<sycl::backend::opencl>(root_devices().at(1));
  EXPECT_EQ(usm_dlpack::detail::root_id_of(table.platforms[0].opencl, second), -1);
  EXPECT_EQ(usm_dlpack::detail::root_id_of(table.platforms[1].opencl, second), 1);
}

}  // namespace test_opencl_query
