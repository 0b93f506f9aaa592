// SPDX-License-Identifier: Apache-2.0
//
// opencl_handle.hpp: one reference is owned, moved and given back, of each type of handle; and
// what OpenCL refuses is refused in words.
#include <usm_dlpack/opencl/handle.hpp>

#include <refusal.hpp>

#include <gtest/gtest.h>

#include "new_process.hpp"
#include "opencl_objects.hpp"

#include <type_traits>
#include <utility>
#include <vector>

namespace test_opencl_handle {

using namespace usm_dlpack_test;
using usm_dlpack::errc;
using usm_dlpack::opencl_handle;

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

TEST(OpenclHandle, OwnsOneReferenceToAContext) {
  const native_context context({native_root()});
  expect_one_reference(context.get());
}

TEST(OpenclHandle, OwnsOneReferenceToAQueue) {
  const native_context context({native_root()});
  const native_queue queue(context.get(), native_root(), in_order);
  expect_one_reference(queue.get());
}

TEST(OpenclHandle, OwnsOneReferenceToASubDevice) { expect_one_reference(native_sub_device()); }

TEST(OpenclHandle, ReferencesToARootDeviceAreNotCounted) {
  const auto root = opencl_handle<cl_device_id>::retain(native_root());
  EXPECT_EQ(root.get(), native_root());
  EXPECT_EQ(references_of(native_root()), 1U) << "OpenCL does not count these";
}

TEST(OpenclHandle, AssignedToItselfItKeepsItsReference) {
  const native_context context({native_root()});
  auto handle = opencl_handle<cl_context>::retain(context.get());
  auto& same = handle;
  handle = std::move(same);
  EXPECT_EQ(handle.get(), context.get());
  EXPECT_EQ(references_of(context.get()), 2U);
}

TEST(OpenclHandle, OfNothingOwnsNothing) {
  opencl_handle<cl_command_queue> empty;
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.release(), nullptr);
  EXPECT_FALSE(opencl_handle<cl_command_queue>(nullptr));
}

TEST(OpenclHandle, RefusesToRetainNull) {
  EXPECT_REFUSAL(opencl_handle<cl_device_id>::retain(nullptr), errc::runtime_error, "device",
                 "a cl_device_id", "null");
  EXPECT_REFUSAL(opencl_handle<cl_context>::retain(nullptr), errc::runtime_error, "context",
                 "a cl_context", "null");
  EXPECT_REFUSAL(opencl_handle<cl_command_queue>::retain(nullptr), errc::runtime_error,
                 "queue", "a cl_command_queue", "null");
}

TEST(OpenclHandle, RefusesToRetainAnObjectOfAnotherType) {
  const native_context object({native_root()});
  void* const address = object.get();
  EXPECT_REFUSAL(opencl_handle<cl_device_id>::retain(static_cast<cl_device_id>(address)),
                 errc::runtime_error, "device", "a cl_device_id",
                 "one for which OpenCL says CL_INVALID_DEVICE (-33)");
  EXPECT_REFUSAL(
      opencl_handle<cl_command_queue>::retain(static_cast<cl_command_queue>(address)),
      errc::runtime_error, "queue", "a cl_command_queue",
      "one for which OpenCL says CL_INVALID_COMMAND_QUEUE (-36)");
  EXPECT_EQ(references_of(object.get()), 1U);
  void* const device = native_root();
  EXPECT_REFUSAL(opencl_handle<cl_context>::retain(static_cast<cl_context>(device)),
                 errc::runtime_error, "context", "a cl_context",
                 "one for which OpenCL says CL_INVALID_CONTEXT (-34)");
}

TEST(OpenclHandle, ErrorsOfOpenClHaveTheirNameOrNoneAndTheirNumber) {
  using usm_dlpack::detail::name_of_opencl_error;
  EXPECT_EQ(name_of_opencl_error(-5), "error (-5)");
  EXPECT_EQ(name_of_opencl_error(-33), "CL_INVALID_DEVICE (-33)");
  EXPECT_EQ(name_of_opencl_error(-34), "CL_INVALID_CONTEXT (-34)");
  EXPECT_EQ(name_of_opencl_error(-36), "CL_INVALID_COMMAND_QUEUE (-36)");
  EXPECT_EQ(name_of_opencl_error(-59), "error (-59)");
}

TEST(OpenclHandle, EveryStatusButSuccessIsAnError) {
  using usm_dlpack::detail::check_answer;
  EXPECT_NO_THROW(check_answer(native_root(), CL_SUCCESS));
  EXPECT_REFUSAL(check_answer(native_root(), 1), errc::runtime_error, "device",
                 "a cl_device_id", "one for which OpenCL says error (1)");
}

TEST(OpenclHandle, TheDevicesOfAContextAreAllOfThem) {
  for (const std::vector<cl_device_id>& devices :
       {std::vector<cl_device_id>{native_root()},
        std::vector<cl_device_id>{native_sub_device(), native_sub_device()}}) {
    const native_context context(devices);
    EXPECT_EQ(usm_dlpack::detail::devices_of(context.get()), devices);
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

}  // namespace test_opencl_handle
