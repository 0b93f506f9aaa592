// SPDX-License-Identifier: Apache-2.0
//
// sycl/memory.hpp: what is known of a pointer in a default context, from the backend itself
// and, where that cannot be asked, from the SYCL queries.
#include <usm_dlpack/sycl/memory.hpp>

#include <gtest/gtest.h>

#include "usm_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace test_memory {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::device_proof;
using usm_dlpack::detail::allocation;
using usm_dlpack::detail::allocation_range;
using usm_dlpack::detail::device_table;
using usm_dlpack::detail::find_allocation;
using usm_dlpack::detail::locate;
using usm_dlpack::detail::opencl_platform;
using usm_dlpack::detail::platform_entry;

const platform_entry& platform_of(std::int32_t device_id) {
  return device_table::get().platform_of(device_id);
}

allocation find(const void* pointer, std::int32_t device_id = 0) {
  return find_allocation(pointer, platform_of(device_id));
}

allocation_range find_range(const void* pointer, const platform_entry& entry) {
  const auto lowest = reinterpret_cast<std::uintptr_t>(pointer);
  const alloc kind = find_allocation(pointer, entry).kind;
  return usm_dlpack::detail::find_range(pointer, lowest, kind, entry);
}

void expect_unknown(const void* pointer) {
  const allocation found = find(pointer);
  EXPECT_EQ(found.kind, alloc::unknown);
  EXPECT_EQ(found.device_id, -1);
  EXPECT_FALSE(found.part.has_value());
  EXPECT_EQ(found.device, device_proof::none);
  const allocation_range range = find_range(pointer, platform_of(0));
  EXPECT_EQ(range.base, 0U);
  EXPECT_EQ(range.size, 0U);
}

/// Every kind of pointer that is no USM of the default context.
void expect_what_is_not_usm_is_unknown() {
  const sycl::queue queue = queue_on();
  const float on_stack = 0;
  const auto on_heap = std::make_unique<std::array<float, 64>>();
  const sycl::context own_context(queue.get_device());
  expect_unknown(nullptr);
  expect_unknown(&on_stack);
  expect_unknown(on_heap.get());
  for (const alloc kind : usm_kinds) {
    usm_memory memory(kind, 1000, queue);
    expect_unknown(memory.at(1000));
    expect_unknown(memory.at(-1));
    const void* const address = memory.at();
    memory.free();
    expect_unknown(address);
    const usm_memory elsewhere(kind, 1000, queue.get_device(), own_context);
    expect_unknown(elsewhere.at());
  }
}

TEST(Allocation, KindAndTrueDeviceAreThoseOfEveryByte) {
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 1000, queue_on());
    for (const std::ptrdiff_t offset : {0, 1, 500, 999}) {
      const allocation found = find(memory.at(offset));
      EXPECT_EQ(found.kind, kind);
      EXPECT_EQ(found.device_id, 0);
      EXPECT_FALSE(found.part.has_value());
      EXPECT_EQ(found.device,
                kind == alloc::host ? device_proof::none : device_proof::backend);
    }
  }
}

TEST(Allocation, RangeIsThatOfTheWholeAllocationFromEveryByteUnpooled) {
  for (const alloc kind : usm_kinds) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{96},
                                   std::size_t{1000}, std::size_t{1} << 20}) {
      const usm_memory memory(kind, size, queue_on());
      for (const std::size_t offset : {std::size_t{0}, size / 2, size - 1}) {
        const void* const inside = memory.at(static_cast<std::ptrdiff_t>(offset));
        const allocation_range range = find_range(inside, platform_of(0));
        EXPECT_EQ(range.base, reinterpret_cast<std::uintptr_t>(memory.at()));
        EXPECT_EQ(range.size, size);
      }
    }
  }
}

TEST(Allocation, WhatIsNoUsmOfTheContextIsUnknownOnOpencl) {
  expect_what_is_not_usm_is_unknown();
}

TEST(Allocation, NothingIsRememberedByAddressUnpooled) {
  const sycl::queue queue = queue_on();
  for (int round = 0; round < 50; ++round) {
    for (const alloc kind : usm_kinds) {
      usm_memory memory(kind, 4096, queue);
      const void* const address = memory.at();
      EXPECT_EQ(find(address).kind, kind);
      memory.free();
      EXPECT_EQ(find(address).kind, alloc::unknown);
    }
  }
}

TEST(Allocation, TheAnswersAreThoseOfTheSyclQueries) {
  const sycl::queue queue = queue_on();
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 1000, queue);
    const allocation found = find(memory.at(3));
    EXPECT_EQ(found.kind, sycl::get_pointer_type(memory.at(3), queue.get_context()));
    EXPECT_EQ(usm_dlpack::root_device(found.device_id),
              sycl::get_pointer_device(memory.at(3), queue.get_context()));
  }
}

TEST(Allocation, ThePlatformThatKnowsAPointerIsFound) {
  const usm_memory memory(alloc::shared, 64, queue_on());
  const auto places = locate(memory.at());
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].entry, &platform_of(0));
  EXPECT_EQ(places[0].found.kind, alloc::shared);
  EXPECT_TRUE(locate(&places).empty());
}

// --- Devices that are parts of others -----------------------------------------------------

/// The native side of a context of sub-devices, which no default context is.
opencl_platform native_side_of(const sycl::context& context) {
  opencl_platform native = usm_dlpack::detail::device_table::get().platforms.at(0).opencl;
  native.context = sycl::get_native<sycl::backend::opencl>(context);
  return native;
}

TEST(Allocation, TheBackendNamesTheTrueDeviceWhereTheSyclQueryNamesTheFirstOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context({parts.at(0), parts.at(1)});
  const opencl_platform native = native_side_of(context);
  for (const alloc kind : {alloc::device, alloc::shared}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}}) {
      const usm_memory memory(kind, 64, parts[place], context);
      EXPECT_EQ(sycl::get_pointer_device(memory.at(), context), parts[0]);
      allocation found;
      usm_dlpack::detail::find_by_opencl(memory.at(), native, found);
      EXPECT_EQ(found.kind, kind);
      EXPECT_EQ(found.device_id, 0);
      EXPECT_EQ(found.device, device_proof::backend);
      ASSERT_TRUE(found.part.has_value());
      // The runtime makes another object of the same device: only the natives are equal.
      EXPECT_EQ(sycl::get_native<sycl::backend::opencl>(*found.part),
                sycl::get_native<sycl::backend::opencl>(parts[place]));
      EXPECT_EQ(usm_dlpack::device_id(*found.part), 0);
    }
  }
}

// --- Where the backend cannot be asked ----------------------------------------------------

TEST(Allocation, TheSyclQueriesAnswerWhereTheBackendCannotBeAskedOnOpencl) {
  const changed_natives backends_are_silent(silence_backends);
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 1000, queue_on());
    for (const std::ptrdiff_t offset : {0, 1, 999}) {
      const allocation found = find(memory.at(offset));
      EXPECT_EQ(found.kind, kind);
      EXPECT_EQ(found.device_id, 0);
      EXPECT_FALSE(found.part.has_value());
      EXPECT_EQ(found.device,
                kind == alloc::host ? device_proof::none : device_proof::only_device);
      EXPECT_EQ(find_range(memory.at(offset), platform_of(0)).size, 0U);
    }
  }
  expect_what_is_not_usm_is_unknown();
}

TEST(Allocation, TheSyclQueryOfTheDeviceIsExactOnlyWithOneRootDeviceOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context({parts.at(1)});
  platform_entry entry{root_devices().at(0).get_platform(),
                       std::make_shared<sycl::context>(context), 0, 2};
  const usm_memory memory(alloc::device, 64, parts[1], context);
  allocation one_of_two;
  usm_dlpack::detail::find_by_sycl(memory.at(), entry, one_of_two);
  EXPECT_EQ(one_of_two.device, device_proof::runtime);
  entry.device_count = 1;
  allocation the_only;
  usm_dlpack::detail::find_by_sycl(memory.at(), entry, the_only);
  EXPECT_EQ(the_only.device, device_proof::only_device);
  EXPECT_EQ(the_only.device_id, 0);
  ASSERT_TRUE(the_only.part.has_value());
  EXPECT_EQ(*the_only.part, parts[1]);
}

TEST(Allocation, AnOpenclPlatformWithoutUsmKnowsNoPointer) {
  const usm_memory memory(alloc::device, 64, queue_on());
  const changed_natives no_usm(
      [](native_platforms& platforms) { platforms.at(0).has_usm = false; });
  expect_unknown(&no_usm);
  EXPECT_EQ(find(memory.at()).kind, alloc::unknown);
}

// --- Several root devices -----------------------------------------------------------------

TEST(TwoDevicesAllocation, IsKnownOnItsOwnPlatformOnly) {
  for (const std::int32_t id : {0, 1}) {
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue_on(static_cast<std::size_t>(id)));
      EXPECT_EQ(find(memory.at(), id).kind, kind);
      EXPECT_EQ(find(memory.at(), id).device_id, id);
      EXPECT_EQ(find(memory.at(), 1 - id).kind, alloc::unknown);
      EXPECT_EQ(find_range(memory.at(), platform_of(id)).size, 64U);
      EXPECT_EQ(find_range(memory.at(), platform_of(1 - id)).size, 0U);
      const auto places = locate(memory.at());
      ASSERT_EQ(places.size(), 1U);
      EXPECT_EQ(places[0].entry, &platform_of(id));
      EXPECT_EQ(places[0].device_id(), id);
    }
  }
}

TEST(TwoDevicesAllocation, TheTrueDeviceIsKnownOnAPlatformOfSeveral) {
  const changed_natives moved(move_to_id_1);
  const usm_memory memory(alloc::shared, 64, queue_on(0));
  const allocation found = find(memory.at(), 0);
  EXPECT_EQ(found.device_id, 1);
  EXPECT_EQ(found.device, device_proof::backend);
  EXPECT_FALSE(found.part.has_value());
}

TEST(TwoDevicesAllocation, TheSyclQueriesNameTheSameDevices) {
  const changed_natives backends_are_silent(silence_backends);
  for (const std::int32_t id : {0, 1}) {
    const usm_memory memory(alloc::device, 64, queue_on(static_cast<std::size_t>(id)));
    EXPECT_EQ(find(memory.at(), id).device_id, id);
    EXPECT_EQ(find(memory.at(), 1 - id).kind, alloc::unknown);
  }
}

}  // namespace test_memory
