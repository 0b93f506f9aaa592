// SPDX-License-Identifier: Apache-2.0
//
// opencl/interop.hpp: handles of SYCL objects own one reference, the handle of a default
// context gives that context, and no reference count changes otherwise. test_to_dlpack.cpp
// exports by handles too.
#include "new_process.hpp"
#include "opencl_objects.hpp"

#include <chrono>
#include <future>
#include <thread>

namespace test_opencl_interop {

using namespace usm_dlpack_test;

/// Runs an act, and expects that its result owns references, and releases them.
template <class Native, class Act>
void expect_added(cl_uint added, Native native, const Act& act) {
  const cl_uint before = references_of(native);
  {
    [[maybe_unused]] const auto made = act();
    EXPECT_EQ(references_of(native), before + added);
  }
  EXPECT_EQ(references_of(native), before);
}

/// Expects that an act makes a handle of `native` that owns one reference.
template <class Native, class Act>
void expect_owned(Native native, const Act& act) {
  EXPECT_EQ(act().get(), native);
  expect_added(1, native, act);
}

TEST(OpenclInterop, HandlesOfSyclObjectsOwnOneReference) {
  EXPECT_EQ(opencl_device(root_devices().at(0)).get(), native_root());
  EXPECT_EQ(opencl_device(queue_on()).get(), native_root());
  const sycl::device part = sub_devices().at(1);
  expect_owned(opencl_device(part).get(), [&] { return opencl_device(part); });
  const cl_context context = native_default_context();
  expect_owned(context, [] { return opencl_context(default_context(0)); });
  expect_owned(context, [] { return opencl_context(queue_on()); });
  const sycl::queue queue = queue_on();
  expect_owned(opencl_queue(queue).get(), [&] { return opencl_queue(queue); });
}

TEST(OpenclInterop, AnotherBackendIsRefused) {
  EXPECT_REFUSAL(detail::check_is_opencl(sycl::backend::ext_oneapi_level_zero, "queue"),
                 errc::device_not_accepted, "queue", "one of the backend opencl",
                 "one of the backend level_zero");
}

opencl_reference<cl_event> user_event() {
  cl_int status = CL_SUCCESS;
  opencl_reference<cl_event> event(
      opencl_function<decltype(clCreateUserEvent)>("clCreateUserEvent")(
          native_default_context(), &status),
      opencl_function<decltype(clReleaseEvent)>("clReleaseEvent"));
  expect_success(status);
  return event;
}

void end(const opencl_reference<cl_event>& event, cl_int status) {
  expect_success(opencl_function<decltype(clSetUserEventStatus)>("clSetUserEventStatus")(
      event.get(), status));
}

TEST(OpenclInterop, NativeCommandsOfAQueueThatSyclHasNotUsedAreItsWork) {
  const sycl::queue queue(root_devices().at(0), sycl::property::queue::in_order());
  const auto gate = user_event();
  cl_event gates[] = {gate.get()};
  expect_success(opencl_function<decltype(clEnqueueMarkerWithWaitList)>(
      "clEnqueueMarkerWithWaitList")(opencl_queue(queue).get(), 1, gates, nullptr));
  detail::pending_work work(queue);
  EXPECT_FALSE(work.is_done());
  end(gate, CL_COMPLETE);
  work.wait();
  EXPECT_TRUE(work.is_done());
}

TEST(OpenclInterop, APendingHostTaskIsWorkAfterAnEarlierOneHasEnded) {
  sycl::queue queue(root_devices().at(0));
  std::promise<void> gates[3];
  const auto submit = [&](std::promise<void>& gate) {  // one thread runs all host tasks
    return queue.submit([&](sycl::handler& handler) {
      handler.host_task([open = gate.get_future().share()] { open.wait(); });
    });
  };
  submit(gates[2]);
  detail::pending_work earlier(queue);
  gates[2].set_value();
  earlier.wait();
  detail::pending_work(queue).wait();  // the runtime must forget its barrier
  const sycl::event first = submit(gates[0]);
  submit(gates[1]);
  gates[0].set_value();
  detail::poll(first);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the runtime notices the end
  detail::pending_work work(queue);
  EXPECT_FALSE(work.is_done());
  gates[1].set_value();
  work.wait();
  EXPECT_TRUE(work.is_done());
}

TEST(OpenclInterop, TheOutOfOrderQueuesWhoseBarriersAreTheNewestAreKept) {
  const auto keep = [](const sycl::queue& queue) { detail::keep_queue_alive(queue); };
  std::vector<sycl::queue> queues;
  for (int i = 0; i < 64; ++i) {
    keep(queues.emplace_back(root_devices().at(0)));
  }
  keep(queues.at(0));  // the newest again
  const auto native = opencl_queue(queues.at(0));
  queues.clear();
  keep(sycl::queue(root_devices().at(0)));
  EXPECT_EQ(references_of(native.get()), 2u);
  for (int i = 0; i < 64; ++i) {
    keep(sycl::queue(root_devices().at(0)));
  }
  EXPECT_EQ(references_of(native.get()), 1u);
}

TEST(OpenclInterop, AWaitForACommandThatFailedThrows) {
  const auto failed = user_event();
  end(failed, CL_OUT_OF_RESOURCES);
  const auto command =
      sycl::make_event<sycl::backend::opencl>({failed.get()}, default_context(0));
  EXPECT_THROW(detail::wait_for_command(command), sycl::exception);
}

TEST(OpenclInterop, TheHandleOfADefaultContextIsThatContextAndOfAnotherANewOne) {
  const cl_context native = native_default_context();
  expect_added(0, native, [&] { return sycl_context(native); });
  EXPECT_EQ(sycl_context(native), default_context(0));
  EXPECT_NE(sycl::make_context<sycl::backend::opencl>(native), sycl_context(native))
      << "then the search in the table is not needed any more";

  const auto other = native_context({native_root()});
  expect_added(0, other.get(), [&] { return sycl_context(other.get()); });
  const sycl::context context = sycl_context(other.get());
  EXPECT_NE(context, default_context(0));
  EXPECT_EQ(opencl_context(context).get(), other.get());
  EXPECT_EQ(device_id(context.get_devices().at(0)), 0);
}

TEST(OpenclInterop, NullAndAnObjectOfAnotherTypeAreNoContexts) {
  for (void* const wrong : {static_cast<void*>(nullptr), static_cast<void*>(native_root())}) {
    const auto context = static_cast<cl_context>(wrong);
    EXPECT_REFUSAL(sycl_context(context), errc::runtime_error, "context");
    EXPECT_REFUSAL(to_dlpack_tensor(usm_floats().view, context), errc::runtime_error,
                   "context");
  }
}

TEST(OpenclInterop, AnExportByAHandleKeepsNoReference) {
  const auto other = native_context({native_root()});
  const auto theirs = native_floats(other.get(), native_root());
  const cl_uint before = references_of(other.get());
  EXPECT_REFUSAL(to_dlpack_tensor(view_of(theirs.get(), 24), other.get()),
                 errc::context_not_default, "context");
  EXPECT_EQ(references_of(other.get()), before);

  const cl_context native = native_default_context();
  const auto ours = native_floats(native, native_root());
  expect_added(0, native, [&] { return to_dlpack_tensor(view_of(ours.get(), 24), native); });
}

TEST(TwoDevicesOpenclInterop, HandlesAreThoseOfTheirPlatform) {
  ASSERT_NE(native_root(0), native_root(1));
  for (const int id : {0, 1}) {
    const sycl::queue queue = queue_on(id);
    EXPECT_EQ(opencl_device(queue).get(), native_root(id));
    EXPECT_EQ(opencl_context(queue).get(), native_default_context(id));
    EXPECT_EQ(sycl_context(native_default_context(id)), default_context(id));
    const usm_floats memory(alloc::device, queue);
    EXPECT_EQ(id_of(to_dlpack_tensor(memory.view, native_default_context(id))), id);
    EXPECT_REFUSAL(to_dlpack_tensor(memory.view, native_default_context(1 - id)),
                   errc::pointer_unknown, "data");
  }
}

/// In a process where ONEAPI_DEVICE_SELECTOR hides one of two devices: that one's handle.
cl_device_id hidden_native_root() {
  std::array<cl_platform_id, 2> platforms{};
  expect_success(opencl_function<decltype(clGetPlatformIDs)>("clGetPlatformIDs")(
      2, platforms.data(), nullptr));
  for (const cl_platform_id platform : platforms) {
    cl_device_id device = nullptr;
    expect_success(opencl_function<decltype(clGetDeviceIDs)>("clGetDeviceIDs")(
        platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    if (device != native_root()) {
      return device;
    }
  }
  throw std::runtime_error("no device is hidden");
}

TEST(TwoDevicesOpenclInterop, TheContextOfADeviceThatSyclDoesNotListIsNoDefaultContext) {
  in_a_new_process({{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}, {"USM_DLPACK_TEST_DEVICES", "1"}},
                   [] {
                     const cl_device_id hidden = hidden_native_root();
                     const auto context = native_context({hidden});
                     const auto memory = native_floats(context.get(), hidden);
                     EXPECT_REFUSAL(to_dlpack_tensor(view_of(memory.get(), 24), context.get()),
                                    errc::context_not_default, "context", {},
                                    "another one, of 1 device(s)");
                   });
}

}  // namespace test_opencl_interop
