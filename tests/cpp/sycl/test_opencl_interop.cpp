// SPDX-License-Identifier: Apache-2.0
//
// opencl/handle.hpp, opencl/interop.hpp: one reference is owned, moved and given back; handles
// of SYCL objects and of validated memory, SYCL objects of handles, and every reference count
// before and after, also of what is refused; and which device may be given to an export beside
// the handle of a context. test_to_dlpack.cpp gives handles too.
#include "new_process.hpp"
#include "opencl_objects.hpp"

namespace test_opencl_interop {

using namespace usm_dlpack_test;
using floats = row_view<float>;

static_assert(!std::is_copy_constructible_v<opencl_handle<cl_context>>);
static_assert(!std::is_convertible_v<cl_context, opencl_handle<cl_context>>,
              "taking over is written out");

/// Each act of a handle, with the count after it.
template <class Native>
void expect_one_reference(Native native) {
  const cl_uint before = references_of(native);
  {
    auto first = opencl_handle<Native>::retain(native);
    EXPECT_EQ(references_of(native), before + 1);
    EXPECT_EQ(first.get(), native);
    EXPECT_TRUE(first);

    auto second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(references_of(native), before + 1) << "moved";

    const Native given = second.release();
    EXPECT_EQ(given, native);
    EXPECT_EQ(references_of(native), before + 1) << "handed to the caller";
    first = opencl_handle<Native>(given);
    EXPECT_EQ(references_of(native), before + 1) << "taken over";
  }
  EXPECT_EQ(references_of(native), before);
}

TEST(OpenclHandle, OwnsOneReference) {
  const auto context = native_context({native_root()});
  expect_one_reference(context.get());
  expect_one_reference(native_queue(context.get(), native_root(), in_order).get());
  expect_one_reference(native_sub_device());

  const auto root = opencl_handle<cl_device_id>::retain(native_root());
  EXPECT_EQ(root.get(), native_root());
  EXPECT_EQ(references_of(native_root()), 1U) << "OpenCL does not count these";
  EXPECT_FALSE(opencl_handle<cl_context>());
  EXPECT_FALSE(opencl_handle<cl_command_queue>(nullptr));
}

/// Expects null and an object of another type to be refused as handles.
/// @param make what makes an object of SYCL
template <class Native, class Make>
void expect_true_handles_only(const Make& make, void* of_another_type, const char* field,
                              const char* type, const std::string& said) {
  for (const Native wrong : {Native{}, static_cast<Native>(of_another_type)}) {
    const std::string found = wrong == nullptr ? "null" : "one for which OpenCL says " + said;
    EXPECT_REFUSAL(make(wrong), errc::runtime_error, field, type, found);
    EXPECT_REFUSAL(opencl_handle<Native>::retain(wrong), errc::runtime_error, field, type,
                   found);
  }
}

TEST(OpenclHandle, NullAndObjectsOfAnotherTypeAreRefused) {
  const auto context = native_context({native_root()});
  expect_true_handles_only<cl_device_id>(sycl_device, context.get(), "device",
                                         "a cl_device_id", "CL_INVALID_DEVICE (-33)");
  expect_true_handles_only<cl_context>(sycl_context, native_root(), "context", "a cl_context",
                                       "CL_INVALID_CONTEXT (-34)");
  expect_true_handles_only<cl_command_queue>(sycl_queue, context.get(), "queue",
                                             "a cl_command_queue",
                                             "CL_INVALID_COMMAND_QUEUE (-36)");
  EXPECT_EQ(references_of(context.get()), 1U);
}

TEST(OpenclHandle, EveryStatusButSuccessIsAnError) {
  using detail::check_answer;
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

/// Runs an act, and expects that it adds references, and that what it gave returns them.
template <class Native, class Act>
void expect_added(cl_uint added, Native native, const Act& act) {
  const cl_uint before = references_of(native);
  {
    [[maybe_unused]] const auto made = act();
    EXPECT_EQ(references_of(native), before + added);
  }
  EXPECT_EQ(references_of(native), before);
}

// --- To OpenCL ------------------------------------------------------------------------------

/// Expects that an act makes a handle of `native` that owns one reference.
template <class Native, class Act>
void expect_owned(Native native, const Act& act) {
  EXPECT_EQ(act().get(), native);
  expect_added(1, native, act);
}

TEST(OpenclInterop, HandlesOfSyclObjectsAreOwnedAndLeadBack) {
  EXPECT_EQ(opencl_device(root_devices().at(0)).get(), native_root());
  EXPECT_EQ(opencl_device(queue_on()).get(), native_root());
  EXPECT_EQ(references_of(native_root()), 1U);
  const sycl::device part = sub_devices().at(1);
  expect_owned(sycl::get_native<sycl::backend::opencl>(part),
               [&] { return opencl_device(part); });

  const cl_context context = native_default_context();
  expect_owned(context, [] { return opencl_context(default_context(0)); });
  for (const sycl::queue& queue :
       {queue_on(), queue_on(0, sycl::property::queue::in_order())}) {
    expect_owned(context, [&] { return opencl_context(queue); });
    const cl_command_queue native = sycl::get_native<sycl::backend::opencl>(queue);
    expect_owned(native, [&] { return opencl_queue(queue); });
    EXPECT_EQ(ask_opencl<cl_context>(native, CL_QUEUE_CONTEXT), context);
    EXPECT_EQ(ask_opencl<cl_device_id>(native, CL_QUEUE_DEVICE), native_root());
    expect_added(0, native, [&] { return sycl_queue(native); });
    EXPECT_EQ(opencl_queue(sycl_queue(native)).get(), native);
  }
}

TEST(OpenclInterop, AnotherBackendIsRefused) {
  using detail::check_is_opencl;
  EXPECT_NO_THROW(check_is_opencl(sycl::backend::opencl, "queue"));
  EXPECT_REFUSAL(check_is_opencl(sycl::backend::ext_oneapi_level_zero, "queue"),
                 errc::backend_not_accepted, "queue", "one of the backend opencl",
                 "one of the backend level_zero");
}

// --- To SYCL --------------------------------------------------------------------------------

TEST(OpenclInterop, TheHandleOfADeviceIsThatDeviceOrAPartOfIt) {
  EXPECT_EQ(sycl_device(native_root()), root_devices().at(0));
  EXPECT_EQ(references_of(native_root()), 1U);

  const cl_device_id part = native_sub_device();
  const sycl::device device = sycl_device(part);
  EXPECT_LE(references_of(part), 2U) << "ours, and at most one of the runtime";
  EXPECT_EQ(opencl_device(device).get(), part);
  EXPECT_EQ(device_id(device), 0);
  EXPECT_EQ(sycl_device(part), device);
  expect_added(0, part, [&] { return sycl_device(part); });

  const auto nested = opencl_device(nested_sub_device());
  EXPECT_EQ(opencl_device(sycl_device(nested.get())).get(), nested.get());
}

TEST(OpenclInterop, TheHandleOfADefaultContextIsThatContextAndOfAnotherANewOne) {
  const cl_context native = native_default_context();
  expect_added(0, native, [&] { return sycl_context(native); });
  EXPECT_EQ(sycl_context(native), default_context(0));
  EXPECT_NE(sycl::make_context<sycl::backend::opencl>(native), sycl_context(native))
      << "then the search in the table is not needed any more";

  const auto root_alone = native_context({native_root()});
  const auto parts = native_context({native_sub_device(), native_sub_device()});
  for (const cl_context other : {root_alone.get(), parts.get()}) {
    expect_added(0, other, [&] { return sycl_context(other); });
    const sycl::context context = sycl_context(other);
    EXPECT_NE(context, default_context(0));
    EXPECT_EQ(opencl_context(context).get(), other);
    EXPECT_EQ(context.get_devices().size(), other == parts.get() ? 2U : 1U);
    EXPECT_EQ(device_id(context.get_devices().back()), 0);
  }
}

TEST(OpenclInterop, TheHandleOfAQueueIsAQueueOfItsContext) {
  static auto& other = *new auto(native_context({native_root()}));
  static auto& kept = *new std::deque<opencl_handle<cl_command_queue>>;
  static auto& queues = *new std::deque<sycl::queue>;
  for (const cl_context context : {native_default_context(), other.get()}) {
    for (const cl_command_queue_properties order : {in_order, out_of_order}) {
      const cl_command_queue native =
          kept.emplace_back(native_queue(context, native_root(), order)).get();
      const cl_uint contexts = references_of(context);
      expect_added(0, native, [&] { return sycl_queue(native); });
      sycl::queue& queue = queues.emplace_back(sycl_queue(native));
      EXPECT_EQ(opencl_context(queue).get(), context);
      EXPECT_EQ(queue.get_context() == default_context(0),
                context == native_default_context());
      EXPECT_EQ(queue.get_device(), root_devices().at(0));
      EXPECT_EQ(opencl_queue(queue).get(), native);
      EXPECT_FALSE(queue.is_in_order()) << "then the documentation of sycl_queue is to say so";

      const usm_memory memory(alloc::shared, 4 * sizeof(int), queue);
      const std::vector<int> sevens(4, 7);
      queue.copy(sevens.data(), memory.as<int>(), sevens.size()).wait();
      EXPECT_EQ(memory.as<int>()[3], 7);
      EXPECT_EQ(references_of(native), 1U);
      EXPECT_EQ(references_of(context), contexts);
    }
  }
}

TEST(TwoDevicesOpenclInterop, HandlesAreThoseOfTheirPlatform) {
  ASSERT_NE(native_root(0), native_root(1));
  for (const int id : {0, 1}) {
    const sycl::queue queue = queue_on(id);
    EXPECT_EQ(opencl_device(queue).get(), native_root(id));
    EXPECT_EQ(opencl_context(queue).get(), native_default_context(id));
    EXPECT_EQ(sycl_device(native_root(id)), queue_on(id).get_device());
    EXPECT_EQ(sycl_context(native_default_context(id)), default_context(id));
    EXPECT_EQ(sycl_queue(opencl_queue(queue).get()).get_device(), queue_on(id).get_device());
    const usm_tensor valid(alloc::device, queue, id);
    const usm_allocation memory = validate(valid.tensor);
    EXPECT_EQ(opencl_device(memory).get(), native_root(id));
    EXPECT_EQ(opencl_context(memory).get(), native_default_context(id));
  }
  EXPECT_EQ(device_id(sycl_device(native_sub_device(1))), 1);
}

TEST(TwoDevicesOpenclInterop, WhatSyclDoesNotListIsRefusedAndStaysAsItIs) {
  in_a_new_process(
      {{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}, {"USM_DLPACK_TEST_DEVICES", "1"}}, [] {
        EXPECT_EQ(device_id(root_devices().at(0)), 0);
        const cl_device_id hidden = hidden_native_root();
        EXPECT_REFUSAL(device_id(sycl::make_device<sycl::backend::opencl>(hidden)),
                       errc::device_without_id, "device");
        EXPECT_REFUSAL(sycl_device(hidden), errc::device_without_id, "device");
        const auto context = native_context({hidden});
        const auto queue = native_queue(context.get(), hidden, in_order);
        const cl_uint contexts = references_of(context.get());
        EXPECT_REFUSAL(sycl_context(context.get()), errc::device_without_id, "context");
        EXPECT_REFUSAL(sycl_queue(queue.get()), errc::device_without_id, "context");
        EXPECT_EQ(references_of(context.get()), contexts);
        EXPECT_EQ(references_of(queue.get()), 1U);

        const auto memory = native_floats(context.get(), hidden);
        const auto view = view_of(memory.get(), 24);
        EXPECT_REFUSAL(to_dlpack_tensor(view, native_default_context(), hidden),
                       errc::device_without_id, "device");
        EXPECT_REFUSAL(to_dlpack_tensor(view, context.get()), errc::context_not_default,
                       "context",
                       "the default context of a platform in sycl::platform::get_platforms()",
                       "another one, of 1 device(s)");
      });
}

TEST(OpenclExport, APartOfTheDeviceIsRefusedUnlessItIsHostMemoryAndNullAlways) {
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    const usm_floats mine(kind);
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
      SCOPED_TRACE(usm_dlpack::to_string(kind));
      const usm_floats mine(kind, queue_on(id));
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
  const usm_floats device;
  const usm_floats host(alloc::host);
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

}  // namespace test_opencl_interop
