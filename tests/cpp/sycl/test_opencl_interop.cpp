// SPDX-License-Identifier: Apache-2.0
//
// opencl/handle.hpp, opencl/interop.hpp: one reference is owned, moved and given back; handles
// of SYCL objects and of validated memory, SYCL objects of handles, and every reference count
// before and after, also of what is refused.
#include <usm_dlpack/opencl/interop.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <refusal.hpp>

#include <gtest/gtest.h>

#include "new_process.hpp"
#include "opencl_objects.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
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

// --- Handles --------------------------------------------------------------------------------

static_assert(!std::is_copy_constructible_v<opencl_handle<cl_context>>);
static_assert(!std::is_copy_assignable_v<opencl_handle<cl_context>>);
static_assert(std::is_nothrow_move_constructible_v<opencl_handle<cl_context>>);
static_assert(std::is_nothrow_move_assignable_v<opencl_handle<cl_context>>);
static_assert(!std::is_convertible_v<cl_context, opencl_handle<cl_context>>,
              "taking over is written out");
static_assert(sizeof(opencl_handle<cl_context>) == sizeof(cl_context));

/// Each act of a handle, with the count after it.
template <class Native>
void expect_one_reference(Native native) {
  const cl_uint before = references_of(native);
  {
    opencl_handle<Native> first = opencl_handle<Native>::retain(native);
    EXPECT_EQ(references_of(native), before + 1);
    EXPECT_EQ(first.get(), native);
    EXPECT_TRUE(first);

    opencl_handle<Native> second(std::move(first));
    EXPECT_EQ(references_of(native), before + 1) << "moved";
    EXPECT_EQ(first.get(), nullptr);
    EXPECT_EQ(second.get(), native);
    auto& same = second;
    second = std::move(same);
    EXPECT_EQ(second.get(), native) << "assigned to itself";

    first = opencl_handle<Native>::retain(native);
    EXPECT_EQ(references_of(native), before + 2);
    first = std::move(second);
    EXPECT_EQ(references_of(native), before + 1) << "what was assigned over is given back";

    const Native given = first.release();
    EXPECT_EQ(given, native);
    EXPECT_FALSE(first);
    EXPECT_EQ(references_of(native), before + 1) << "handed to the caller";
    const opencl_handle<Native> third(given);
    EXPECT_EQ(references_of(native), before + 1) << "taken over";
  }
  EXPECT_EQ(references_of(native), before);
}

TEST(OpenclHandle, OwnsOneReference) {
  const native_context context({native_root()});
  expect_one_reference(context.get());
  const native_queue queue(context.get(), native_root(), in_order);
  expect_one_reference(queue.get());
  expect_one_reference(native_sub_device());

  const auto root = opencl_handle<cl_device_id>::retain(native_root());
  EXPECT_EQ(root.get(), native_root());
  EXPECT_EQ(references_of(native_root()), 1U) << "OpenCL does not count these";
  EXPECT_FALSE(opencl_handle<cl_context>());
  EXPECT_FALSE(opencl_handle<cl_command_queue>(nullptr));
}

/// Expects a function that takes a handle to refuse null and an object of another type.
template <class Native, class Act>
void expect_true_handles_only(const Act& act, void* of_another_type, const char* field,
                              const char* type, const char* said) {
  const std::string expected = std::string("a ") + type;
  EXPECT_REFUSAL(act(Native{}), errc::runtime_error, field, expected, "null");
  EXPECT_REFUSAL(act(static_cast<Native>(of_another_type)), errc::runtime_error, field,
                 expected, std::string("one for which OpenCL says ") + said);
}

TEST(OpenclHandle, NullAndObjectsOfAnotherTypeAreRefused) {
  const native_context context({native_root()});
  const char* const no_device = "CL_INVALID_DEVICE (-33)";
  const auto retain = [](auto handle) {
    return opencl_handle<decltype(handle)>::retain(handle);
  };
  expect_true_handles_only<cl_device_id>(retain, context.get(), "device", "cl_device_id",
                                         no_device);
  expect_true_handles_only<cl_device_id>(sycl_device, context.get(), "device", "cl_device_id",
                                         no_device);
  const char* const no_context = "CL_INVALID_CONTEXT (-34)";
  expect_true_handles_only<cl_context>(retain, native_root(), "context", "cl_context",
                                       no_context);
  expect_true_handles_only<cl_context>(sycl_context, native_root(), "context", "cl_context",
                                       no_context);
  const char* const no_queue = "CL_INVALID_COMMAND_QUEUE (-36)";
  expect_true_handles_only<cl_command_queue>(retain, context.get(), "queue",
                                             "cl_command_queue", no_queue);
  expect_true_handles_only<cl_command_queue>(sycl_queue, context.get(), "queue",
                                             "cl_command_queue", no_queue);
  EXPECT_EQ(references_of(context.get()), 1U);
}

TEST(OpenclHandle, EveryStatusButSuccessIsAnError) {
  using usm_dlpack::detail::check_answer;
  EXPECT_NO_THROW(check_answer(native_root(), CL_SUCCESS));
  for (const cl_int status : {1, -5}) {
    EXPECT_REFUSAL(check_answer(native_root(), status), errc::runtime_error, "device",
                   "a cl_device_id",
                   "one for which OpenCL says error (" + std::to_string(status) + ")");
  }
}

TEST(OpenclHandle, AProcessWithoutOpenClIsToldSo) {
  in_a_new_process({{"ONEAPI_DEVICE_SELECTOR", "cuda:*"}}, [] {
    int object = 0;
    void* const address = &object;
    EXPECT_REFUSAL(opencl_handle<cl_context>(static_cast<cl_context>(address)),
                   errc::backend_not_accepted, "device",
                   "libOpenCL.so.1 (1.2 or newer), loaded by the SYCL runtime",
                   "no such library");
    EXPECT_FALSE(opencl_handle<cl_context>());
  });
}

// --- To OpenCL ------------------------------------------------------------------------------

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

sycl::queue queue_in_order() {
  static auto& kept =
      *new sycl::queue(root_devices().at(0), sycl::property::queue::in_order());
  return kept;
}

TEST(OpenclInterop, HandlesOfSyclObjectsAreOwned) {
  EXPECT_EQ(opencl_device(root_devices().at(0)).get(), native_root());
  EXPECT_EQ(opencl_device(queue_on()).get(), native_root());
  EXPECT_EQ(references_of(native_root()), 1U);
  const sycl::device part = sub_devices().at(1);
  expect_owned(sycl::get_native<sycl::backend::opencl>(part),
               [&] { return opencl_device(part); });

  const cl_context context = native_default_context();
  expect_owned(context, [] { return opencl_context(usm_dlpack::default_context(0)); });
  for (const sycl::queue& queue : {queue_on(), queue_in_order()}) {
    expect_owned(context, [&] { return opencl_context(queue); });
    const cl_command_queue native = sycl::get_native<sycl::backend::opencl>(queue);
    expect_owned(native, [&] { return opencl_queue(queue); });
    using usm_dlpack::detail::ask_opencl;
    EXPECT_EQ(ask_opencl<cl_context>(native, CL_QUEUE_CONTEXT), context);
    EXPECT_EQ(ask_opencl<cl_device_id>(native, CL_QUEUE_DEVICE), native_root());
  }
}

TEST(OpenclInterop, ValidatedMemoryHasItsDeviceAndItsContext) {
  const usm_tensor valid;
  usm_tensor empty;
  empty.shape[0] = 0;
  empty.tensor.data = nullptr;
  for (const DLTensor& tensor : {valid.tensor, empty.tensor}) {
    const usm_dlpack::usm_allocation memory = usm_dlpack::validate(tensor);
    EXPECT_EQ(opencl_device(memory).get(), native_root());
    expect_owned(native_default_context(), [&] { return opencl_context(memory); });
  }
}

TEST(OpenclInterop, AnotherBackendIsRefused) {
  using usm_dlpack::detail::check_is_opencl;
  EXPECT_NO_THROW(check_is_opencl(sycl::backend::opencl, "queue"));
  EXPECT_REFUSAL(check_is_opencl(sycl::backend::ext_oneapi_level_zero, "queue"),
                 errc::backend_not_accepted, "queue", "one of the backend opencl",
                 "one of the backend level_zero");
}

// --- To SYCL --------------------------------------------------------------------------------

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

TEST(OpenclInterop, TheHandleOfADeviceIsThatDeviceOrAPartOfIt) {
  EXPECT_EQ(sycl_device(native_root()), root_devices().at(0));
  EXPECT_EQ(references_of(native_root()), 1U);

  const cl_device_id part = native_sub_device();
  const sycl::device device = sycl_device(part);
  EXPECT_LE(references_of(part), 2U) << "ours, and at most one of the runtime";
  EXPECT_EQ(opencl_device(device).get(), part);
  EXPECT_EQ(usm_dlpack::device_id(device), 0);
  EXPECT_EQ(device.get_info<sycl::info::device::parent_device>(), root_devices().at(0));
  EXPECT_EQ(sycl_device(part), device);
  expect_untouched(part, [&] { return sycl_device(part); });

  const auto nested = opencl_device(nested_sub_device());
  EXPECT_EQ(opencl_device(sycl_device(nested.get())).get(), nested.get());
}

TEST(OpenclInterop, TheHandleOfADefaultContextIsThatContextAndOfAnotherANewOne) {
  const cl_context native = native_default_context();
  expect_untouched(native, [&] { return sycl_context(native); });
  EXPECT_EQ(sycl_context(native), usm_dlpack::default_context(0));
  EXPECT_NE(sycl::make_context<sycl::backend::opencl>(native), sycl_context(native))
      << "then the search in the table is not needed any more";

  const native_context other({native_root()});
  expect_untouched(other.get(), [&] { return sycl_context(other.get()); });
  const sycl::context context = sycl_context(other.get());
  EXPECT_NE(context, usm_dlpack::default_context(0));
  EXPECT_EQ(opencl_context(context).get(), other.get());
  EXPECT_EQ(context.get_devices(), root_devices());

  const native_context parts({native_sub_device(), native_sub_device()});
  const sycl::context of_parts = sycl_context(parts.get());
  EXPECT_EQ(opencl_context(of_parts).get(), parts.get());
  ASSERT_EQ(of_parts.get_devices().size(), 2U);
  EXPECT_EQ(usm_dlpack::device_id(of_parts.get_devices().at(1)), 0);
}

/// Fills shared USM through a queue of SYCL that submits to one of OpenCL.
void expect_works(sycl::queue queue) {
  const usm_memory memory(alloc::shared, 4 * sizeof(int), queue);
  const std::vector<int> sevens(4, 7);
  queue.copy(sevens.data(), memory.as<int>(), sevens.size()).wait();
  EXPECT_EQ(memory.as<int>()[3], 7);
}

TEST(OpenclInterop, TheHandleOfAQueueIsAQueueOfItsContext) {
  static auto& other = *new native_context({native_root()});
  static auto& kept = *new std::deque<native_queue>;
  static auto& queues = *new std::deque<sycl::queue>;
  for (const cl_context context : {native_default_context(), other.get()}) {
    for (const cl_command_queue_properties order : {in_order, out_of_order}) {
      const native_queue& native = kept.emplace_back(context, native_root(), order);
      const cl_uint contexts = references_of(context);
      expect_untouched(native.get(), [&] { return sycl_queue(native.get()); });
      const sycl::queue& queue = queues.emplace_back(sycl_queue(native.get()));
      EXPECT_EQ(opencl_context(queue).get(), context);
      EXPECT_EQ(queue.get_context() == usm_dlpack::default_context(0),
                context == native_default_context());
      EXPECT_EQ(queue.get_device(), root_devices().at(0));
      EXPECT_EQ(opencl_queue(queue).get(), native.get());
      EXPECT_FALSE(queue.is_in_order()) << "then the documentation of sycl_queue is to say so";
      expect_works(queue);
      EXPECT_EQ(references_of(native.get()), 1U);
      EXPECT_EQ(references_of(context), contexts);
    }
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

// --- Two platforms --------------------------------------------------------------------------

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
  in_a_new_process(
      {{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}, {"USM_DLPACK_TEST_DEVICES", "1"}}, [] {
        const cl_device_id hidden = hidden_native_root();
        EXPECT_REFUSAL(sycl_device(hidden), errc::device_without_id, "device");
        const native_context context({hidden});
        const native_queue queue(context.get(), hidden, in_order);
        const cl_uint contexts = references_of(context.get());
        EXPECT_REFUSAL(sycl_context(context.get()), errc::device_without_id, "context");
        EXPECT_REFUSAL(sycl_queue(queue.get()), errc::device_without_id, "context");
        EXPECT_EQ(references_of(context.get()), contexts);
        EXPECT_EQ(references_of(queue.get()), 1U);
      });
}

// --- A device that the runtime lists, and cannot use ----------------------------------------

TEST(BrokenDeviceOpenclInterop, OnlyItIsRefused) {
  EXPECT_EQ(sycl_device(native_root(0)), root_devices().at(0));
  EXPECT_EQ(sycl_context(native_default_context(0)), usm_dlpack::default_context(0));
  EXPECT_REFUSAL(sycl_context(nullptr), errc::runtime_error, "context");  // it has none
  const std::string& text = device_table::get().devices[1].failure;
  ASSERT_NE(text.find("DEVICE_NOT_AVAILABLE"), std::string::npos);
  EXPECT_REFUSAL(sycl_device(native_root(1)), errc::device_failed, "device",
                 "a device that the SYCL runtime can use",
                 "device 1, for which it throws \"" + text + "\"");
}

}  // namespace test_opencl_interop
