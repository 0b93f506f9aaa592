// SPDX-License-Identifier: Apache-2.0
//
// opencl_interop.hpp: handles of SYCL objects and of validated memory, SYCL objects of
// handles, and every reference count before and after, also of what is refused.
#include <usm_dlpack/opencl/interop.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <refusal.hpp>
#include <threads.hpp>

#include <gtest/gtest.h>

#include "new_process.hpp"
#include "opencl_objects.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace test_opencl_interop {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::errc;
using usm_dlpack::opencl_context;
using usm_dlpack::opencl_device;
using usm_dlpack::opencl_handle;
using usm_dlpack::opencl_queue;
using usm_dlpack::sycl_context;
using usm_dlpack::sycl_device;
using usm_dlpack::sycl_queue;

const char* const with_id = "a device whose root is in sycl::device::get_devices()";

/// Runs an act that makes a handle, and expects that it owns one reference until it goes.
template <class Native, class Act>
void expect_owned(Native native, const Act& act) {
  const cl_uint before = references_of(native);
  {
    const opencl_handle<Native> owned = act();
    EXPECT_EQ(owned.get(), native);
    EXPECT_EQ(references_of(native), before + 1);
  }
  EXPECT_EQ(references_of(native), before);
}

/// Runs an act, and expects that the counts are the same after it, and after what it gave.
template <class Native, class Act>
void expect_untouched(Native native, const Act& act) {
  const cl_uint before = references_of(native);
  {
    [[maybe_unused]] const auto made = act();
    EXPECT_EQ(references_of(native), before);
  }
  EXPECT_EQ(references_of(native), before);
}

sycl::queue queue_in_order() {
  static auto& kept =
      *new sycl::queue(root_devices().at(0), sycl::property::queue::in_order());
  return kept;
}

// --- To OpenCL ----------------------------------------------------------------------------

TEST(OpenclInterop, ARootDeviceHasItsHandle) {
  EXPECT_EQ(opencl_device(root_devices().at(0)).get(), native_root());
  EXPECT_EQ(opencl_device(queue_on()).get(), native_root());
  EXPECT_EQ(references_of(native_root()), 1U);
}

TEST(OpenclInterop, TheHandleOfASubDeviceIsOwned) {
  const sycl::device part = sub_devices().at(1);
  const cl_device_id native = sycl::get_native<sycl::backend::opencl>(part);
  expect_owned(native, [&] { return opencl_device(part); });
}

TEST(OpenclInterop, TheHandleOfAContextIsOwned) {
  const cl_context native = native_default_context();
  expect_owned(native, [] { return opencl_context(usm_dlpack::default_context(0)); });
  const sycl::queue queue = queue_on();
  expect_owned(native, [&] { return opencl_context(queue); });
}

TEST(OpenclInterop, TheHandleOfAQueueIsOwned) {
  for (const sycl::queue& queue : {queue_on(), queue_in_order()}) {
    const cl_command_queue native = sycl::get_native<sycl::backend::opencl>(queue);
    expect_owned(native, [&] { return opencl_queue(queue); });
    using usm_dlpack::detail::ask_opencl;
    EXPECT_EQ(ask_opencl<cl_context>(native, CL_QUEUE_CONTEXT), native_default_context());
    EXPECT_EQ(ask_opencl<cl_device_id>(native, CL_QUEUE_DEVICE), native_root());
    const auto order = ask_opencl<cl_command_queue_properties>(native, CL_QUEUE_PROPERTIES);
    EXPECT_EQ((order & out_of_order) == 0, queue.is_in_order());
  }
}

TEST(OpenclInterop, AHandleOutlivesTheSyclObject) {
  std::optional<sycl::context> context(std::in_place, root_devices().at(0));
  const opencl_handle<cl_context> handle = opencl_context(*context);
  context.reset();
  EXPECT_EQ(references_of(handle.get()), 1U);
}

TEST(OpenclInterop, ValidatedMemoryHasItsDeviceAndItsContext) {
  for (const alloc kind : usm_kinds) {
    const usm_tensor valid(kind);
    const usm_dlpack::usm_allocation memory = usm_dlpack::validate(valid.tensor);
    EXPECT_EQ(opencl_device(memory).get(), native_root());
    expect_owned(native_default_context(), [&] { return opencl_context(memory); });
  }
}

TEST(OpenclInterop, ValidatedMemoryOfAnEmptyTensorHasTheDeviceThatIsNamed) {
  usm_tensor valid;
  valid.shape[0] = 0;
  valid.tensor.data = nullptr;
  const usm_dlpack::usm_allocation memory = usm_dlpack::validate(valid.tensor);
  EXPECT_EQ(opencl_device(memory).get(), native_root());
  EXPECT_EQ(opencl_context(memory).get(), native_default_context());
}

TEST(OpenclInterop, AnotherBackendIsRefused) {
  using usm_dlpack::detail::check_is_opencl;
  EXPECT_NO_THROW(check_is_opencl(sycl::backend::opencl, "queue"));
  EXPECT_REFUSAL(check_is_opencl(sycl::backend::ext_oneapi_level_zero, "queue"),
                 errc::backend_not_accepted, "queue", "one of the backend opencl",
                 "one of the backend level_zero");
  EXPECT_REFUSAL(check_is_opencl(sycl::backend{}, "device"), errc::backend_not_accepted,
                 "device", "one of the backend opencl", "one of the backend unknown");
}

// Handles are compared, and no order is meant: these stand before and behind all others.
void* const lowest = reinterpret_cast<void*>(std::uintptr_t{1});
void* const highest = reinterpret_cast<void*>(UINTPTR_MAX);

TEST(OpenclInterop, OnlyItsHandleIsARoot) {
  using usm_dlpack::detail::is_root;
  usm_dlpack::detail::opencl_platform native;
  native.devices = {native_root()};
  EXPECT_TRUE(is_root(native_root(), {&native, 0}));
  EXPECT_FALSE(is_root(static_cast<cl_device_id>(lowest), {&native, 0}));
  EXPECT_FALSE(is_root(static_cast<cl_device_id>(highest), {&native, 0}));
}

TEST(OpenclInterop, OnlyItsHandleIsADeviceThatFails) {
  using usm_dlpack::detail::is_failed;
  const usm_dlpack::detail::device_entry failed{root_devices().at(0), 0, "text"};
  EXPECT_TRUE(is_failed(native_root(), failed));
  EXPECT_FALSE(is_failed(static_cast<cl_device_id>(lowest), failed));
  EXPECT_FALSE(is_failed(static_cast<cl_device_id>(highest), failed));
  const usm_dlpack::detail::device_entry works{root_devices().at(0), 0, ""};
  EXPECT_FALSE(is_failed(native_root(), works));
}

// --- To SYCL ------------------------------------------------------------------------------

TEST(OpenclInterop, TheHandleOfARootIsTheDeviceOfTheTable) {
  const sycl::device device = sycl_device(native_root());
  EXPECT_EQ(device, root_devices().at(0));
  EXPECT_EQ(references_of(native_root()), 1U);
}

TEST(OpenclInterop, TheHandleOfASubDeviceIsADeviceOfItsRoot) {
  const cl_device_id part = native_sub_device();
  const sycl::device device = sycl_device(part);
  EXPECT_LE(references_of(part), 2U) << "ours, and at most one of the runtime";
  EXPECT_EQ(opencl_device(device).get(), part);
  EXPECT_EQ(usm_dlpack::device_id(device), 0);
  EXPECT_EQ(device.get_info<sycl::info::device::parent_device>(), root_devices().at(0));
  EXPECT_EQ(sycl_device(part), device);
  expect_untouched(part, [&] { return sycl_device(part); });
}

TEST(OpenclInterop, TheHandleOfADefaultContextIsThatContext) {
  const cl_context native = native_default_context();
  expect_untouched(native, [&] { return sycl_context(native); });
  EXPECT_EQ(sycl_context(native), usm_dlpack::default_context(0));
  EXPECT_NE(sycl::make_context<sycl::backend::opencl>(native), sycl_context(native))
      << "then the search in the table is not needed any more";
}

TEST(OpenclInterop, TheHandleOfAnotherContextIsANewOne) {
  const native_context other({native_root()});
  expect_untouched(other.get(), [&] { return sycl_context(other.get()); });
  const sycl::context context = sycl_context(other.get());
  EXPECT_NE(context, usm_dlpack::default_context(0));
  EXPECT_EQ(opencl_context(context).get(), other.get());
  EXPECT_EQ(context.get_devices(), root_devices());
}

TEST(OpenclInterop, TheHandleOfAContextOfSubDevicesIsANewOne) {
  const native_context parts({native_sub_device()});
  const sycl::context context = sycl_context(parts.get());
  EXPECT_EQ(opencl_context(context).get(), parts.get());
  EXPECT_EQ(usm_dlpack::device_id(context.get_devices().at(0)), 0);
}

/// Fills shared USM through a queue of SYCL that submits to one of OpenCL.
void expect_works(sycl::queue queue) {
  const usm_memory memory(alloc::shared, 4 * sizeof(int), queue);
  const std::vector<int> sevens(4, 7);
  queue.copy(sevens.data(), memory.as<int>(), sevens.size()).wait();
  EXPECT_EQ(memory.as<int>()[3], 7);
}

TEST(OpenclInterop, TheHandleOfAQueueIsAQueueOfTheDefaultContext) {
  for (const cl_command_queue_properties order : {in_order, out_of_order}) {
    static auto& kept = *new std::deque<native_queue>;
    const native_queue& native =
        kept.emplace_back(native_default_context(), native_root(), order);
    const cl_uint contexts = references_of(native_default_context());
    expect_untouched(native.get(), [&] { return sycl_queue(native.get()); });
    static auto& queues = *new std::deque<sycl::queue>;
    const sycl::queue& queue = queues.emplace_back(sycl_queue(native.get()));
    EXPECT_EQ(queue.get_context(), usm_dlpack::default_context(0));
    EXPECT_EQ(queue.get_device(), root_devices().at(0));
    EXPECT_EQ(opencl_queue(queue).get(), native.get());
    EXPECT_FALSE(queue.is_in_order()) << "then the documentation of sycl_queue is to say so";
    expect_works(queue);
    EXPECT_EQ(references_of(native.get()), 1U);
    EXPECT_EQ(references_of(native_default_context()), contexts);
  }
}

TEST(OpenclInterop, AQueueFromSyclComesBackToTheSameHandle) {
  for (const sycl::queue& queue : {queue_on(), queue_in_order()}) {
    const opencl_handle<cl_command_queue> handle = opencl_queue(queue);
    expect_untouched(handle.get(), [&] { return sycl_queue(handle.get()); });
    const sycl::queue back = sycl_queue(handle.get());
    EXPECT_EQ(back.get_context(), queue.get_context());
    EXPECT_EQ(opencl_queue(back).get(), handle.get());
  }
}

TEST(OpenclInterop, AQueueOfAnotherContextIsInThat) {
  static auto& other = *new native_context({native_root()});
  static auto& native = *new native_queue(other.get(), native_root(), in_order);
  const cl_uint contexts = references_of(other.get());
  static auto& queue = *new sycl::queue(sycl_queue(native.get()));
  EXPECT_EQ(opencl_context(queue).get(), other.get());
  EXPECT_NE(queue.get_context(), usm_dlpack::default_context(0));
  expect_works(queue);
  EXPECT_EQ(references_of(native.get()), 1U);
  EXPECT_EQ(references_of(other.get()), contexts);
}

TEST(OpenclInterop, NullIsRefused) {
  EXPECT_REFUSAL(sycl_device(nullptr), errc::runtime_error, "device", "a cl_device_id",
                 "null");
  EXPECT_REFUSAL(sycl_context(nullptr), errc::runtime_error, "context", "a cl_context",
                 "null");
  EXPECT_REFUSAL(sycl_queue(nullptr), errc::runtime_error, "queue", "a cl_command_queue",
                 "null");
}

TEST(OpenclInterop, AnObjectOfAnotherTypeIsRefused) {
  const native_context object({native_root()});
  void* const address = object.get();
  EXPECT_REFUSAL(sycl_device(static_cast<cl_device_id>(address)), errc::runtime_error,
                 "device", "a cl_device_id",
                 "one for which OpenCL says CL_INVALID_DEVICE (-33)");
  EXPECT_REFUSAL(sycl_queue(static_cast<cl_command_queue>(address)), errc::runtime_error,
                 "queue", "a cl_command_queue",
                 "one for which OpenCL says CL_INVALID_COMMAND_QUEUE (-36)");
  void* const device = native_root();
  EXPECT_REFUSAL(sycl_context(static_cast<cl_context>(device)), errc::runtime_error, "context",
                 "a cl_context", "one for which OpenCL says CL_INVALID_CONTEXT (-34)");
  EXPECT_EQ(references_of(object.get()), 1U);
}

// --- Threads ------------------------------------------------------------------------------

TEST(OpenclInterop, ReferencesAreCountedForAllThreads) {
  const sycl::queue queue = queue_on();
  const cl_command_queue native = sycl::get_native<sycl::backend::opencl>(queue);
  const cl_uint queues = references_of(native);
  const cl_uint contexts = references_of(native_default_context());
  on_eight_threads([&](std::size_t) {
    for (int round = 0; round < 50; ++round) {
      const opencl_handle<cl_command_queue> handle = opencl_queue(queue);
      EXPECT_EQ(sycl_queue(handle.get()).get_context(), queue.get_context());
      EXPECT_EQ(sycl_context(opencl_context(queue).get()), queue.get_context());
      EXPECT_EQ(sycl_device(opencl_device(queue).get()), queue.get_device());
    }
  });
  EXPECT_EQ(references_of(native), queues);
  EXPECT_EQ(references_of(native_default_context()), contexts);
}

// --- Two platforms ------------------------------------------------------------------------

TEST(TwoDevicesOpenclInterop, HandlesAreThoseOfTheirPlatform) {
  ASSERT_NE(native_root(0), native_root(1));
  for (const std::size_t id : {std::size_t{0}, std::size_t{1}}) {
    const sycl::queue queue = queue_on(id);
    EXPECT_EQ(opencl_device(queue).get(), native_root(id));
    EXPECT_EQ(opencl_context(queue).get(), native_default_context(id));
    EXPECT_EQ(sycl_device(native_root(id)), root_devices().at(id));
    EXPECT_EQ(sycl_context(native_default_context(id)),
              usm_dlpack::default_context(static_cast<std::int32_t>(id)));
    EXPECT_EQ(sycl_queue(opencl_queue(queue).get()).get_device(), root_devices().at(id));
    const usm_tensor valid(alloc::device, queue, static_cast<std::int32_t>(id));
    const usm_dlpack::usm_allocation memory = usm_dlpack::validate(valid.tensor);
    EXPECT_EQ(opencl_device(memory).get(), native_root(id));
    EXPECT_EQ(opencl_context(memory).get(), native_default_context(id));
  }
  EXPECT_EQ(usm_dlpack::device_id(sycl_device(native_sub_device(1))), 1);
}

TEST(TwoDevicesOpenclInterop, WhatSyclDoesNotListIsRefusedAndStaysAsItIs) {
  in_a_new_process({{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}, {"USM_DLPACK_TEST_DEVICES", "1"}},
                   [] {
                     const cl_device_id hidden = hidden_native_root();
                     EXPECT_REFUSAL(sycl_device(hidden), errc::device_without_id, "device",
                                    with_id, "one that is not");
                     const native_context context({hidden});
                     const native_queue queue(context.get(), hidden, in_order);
                     const cl_uint contexts = references_of(context.get());
                     EXPECT_REFUSAL(sycl_context(context.get()), errc::device_without_id,
                                    "context", with_id, "one that is not");
                     EXPECT_REFUSAL(sycl_queue(queue.get()), errc::device_without_id,
                                    "context", with_id, "one that is not");
                     EXPECT_EQ(references_of(context.get()), contexts);
                     EXPECT_EQ(references_of(queue.get()), 1U);
                   });
}

// --- A device that the runtime lists, and cannot use --------------------------------------

TEST(BrokenDeviceOpenclInterop, NullIsNotTheContextThatItLacks) {
  EXPECT_REFUSAL(sycl_context(nullptr), errc::runtime_error, "context", "a cl_context",
                 "null");
}

TEST(BrokenDeviceOpenclInterop, OnlyItIsRefused) {
  EXPECT_EQ(sycl_device(native_root(0)), root_devices().at(0));
  EXPECT_EQ(sycl_context(native_default_context(0)), usm_dlpack::default_context(0));
  const std::string& text = usm_dlpack::detail::device_table::get().devices[1].failure;
  ASSERT_NE(text.find("DEVICE_NOT_AVAILABLE"), std::string::npos);
  EXPECT_REFUSAL(sycl_device(native_root(1)), errc::device_failed, "device",
                 "a device that the SYCL runtime can use",
                 "device 1, for which it throws \"" + text + "\"");
}

}  // namespace test_opencl_interop
