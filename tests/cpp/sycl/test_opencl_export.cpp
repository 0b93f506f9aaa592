// SPDX-License-Identifier: Apache-2.0
//
// opencl/interop.hpp: USM that OpenCL code allocated goes through the export protocol by the
// handles that OpenCL code has, each step refuses, the earlier of two first.
#include <usm_dlpack/opencl.hpp>

#include <refusal.hpp>
#include <rules_in_order.hpp>

#include <gtest/gtest.h>

#include "new_process.hpp"
#include "opencl_objects.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace test_opencl_export {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::errc;
using usm_dlpack::to_dlpack_tensor;

using floats = row_view<float>;

/// USM of the default context that OpenCL code allocated, and a view that fills it.
struct exported_memory {
  native_memory memory;
  floats view;

  explicit exported_memory(alloc kind = alloc::device, std::size_t device_id = 0)
      : memory(kind, 16 * sizeof(float), native_default_context(device_id),
               native_root(device_id)),
        view(memory.as<float>(), 16) {}
};

std::string default_context_words() {
  return "the default context of the platform \"" +
         root_devices().at(0).get_platform().get_info<sycl::info::platform::name>() + "\"";
}

// --- What is exported -----------------------------------------------------------------------

TEST(OpenclExport, MemoryOfOpenClAloneIsValidatedAndRead) {
  std::array<float, 16> written{};
  std::iota(written.begin(), written.end(), 1.0F);
  static auto& queue =
      *new native_queue(native_default_context(), native_root(), out_of_order);
  for (const alloc kind : usm_kinds) {
    const exported_memory mine(kind);
    mine.memory.write(queue.get(), written.data(), sizeof written);

    const auto wrapper = to_dlpack_tensor(mine.view, native_default_context(), native_root());
    const auto by_context = to_dlpack_tensor(mine.view, usm_dlpack::default_context(0));
    EXPECT_EQ(wrapper.shape(), by_context.shape());
    EXPECT_EQ(wrapper.strides(), by_context.strides());
    const DLTensor tensor = wrapper.get();
    const usm_dlpack::usm_allocation memory = usm_dlpack::validate(tensor);
    EXPECT_EQ(memory.usm_type(), kind);
    EXPECT_EQ(memory.size(), sizeof written);
    const floats view = usm_dlpack::to_mdspan<floats>(tensor);
    EXPECT_EQ(view.data_handle(), mine.view.data_handle());

    std::array<float, 16> read{};
    queue_on().memcpy(read.data(), view.data_handle(), sizeof read).wait();
    EXPECT_EQ(read, written);
  }
}

TEST(OpenclExport, AnEmptyViewNeedsNoMemory) {
  std::array<float, 1> on_stack{};
  for (float* data : {static_cast<float*>(nullptr), on_stack.data()}) {
    const floats empty(data, 0);
    EXPECT_EQ(id_of(to_dlpack_tensor(empty, native_default_context())), 0);
    const auto wrapper = to_dlpack_tensor(empty, native_default_context(), native_root());
    EXPECT_EQ(id_of(wrapper), 0);
    EXPECT_EQ(wrapper.get().data, nullptr);
  }
}

TEST(OpenclExport, HostMemoryGoesWithEachDeviceOfItsPlatform) {
  const exported_memory mine(alloc::host);
  const cl_context context = native_default_context();
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context)), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, native_root())), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, native_sub_device())), 0);
}

// --- What is refused ------------------------------------------------------------------------

TEST(OpenclExport, HandlesThatAreNullOrOfAnotherTypeAreRefused) {
  const exported_memory mine;
  const cl_context context = native_default_context();
  void* const another_type = native_root();
  for (const auto wrong : {cl_context{}, static_cast<cl_context>(another_type)}) {
    EXPECT_REFUSAL(to_dlpack_tensor(mine.view, wrong), errc::runtime_error, "context");
  }
  for (const auto wrong :
       {cl_device_id{},
        static_cast<cl_device_id>(static_cast<void*>(native_default_context()))}) {
    EXPECT_REFUSAL(to_dlpack_tensor(mine.view, context, wrong), errc::runtime_error, "device");
  }
}

TEST(OpenclExport, MemoryThatTheContextDoesNotKnowIsRefused) {
  std::array<float, 16> on_stack{};
  const native_context other({native_root()});
  const native_memory of_other(alloc::device, 64, other.get(), native_root());
  for (const cl_context context : {native_default_context(), other.get()}) {
    EXPECT_REFUSAL(to_dlpack_tensor(floats(nullptr, 16), context), errc::data_null, "data");
    EXPECT_REFUSAL(to_dlpack_tensor(floats(on_stack.data(), 16), context),
                   errc::pointer_unknown, "data");
  }
  EXPECT_REFUSAL(to_dlpack_tensor(floats(of_other.as<float>(), 16), native_default_context(),
                                  native_root()),
                 errc::pointer_unknown, "data");
}

TEST(OpenclExport, AContextThatIsNotADefaultOneIsRefused) {
  const cl_device_id part = native_sub_device();
  for (const cl_device_id device : {native_root(), part}) {
    const native_context other({device});
    const native_memory memory(alloc::device, 64, other.get(), device);
    const floats view(memory.as<float>(), 16);
    EXPECT_REFUSAL(to_dlpack_tensor(view, other.get(), device), errc::context_not_default,
                   "context", default_context_words(), "another one, of 1 device(s)");
    const floats empty(nullptr, 0);
    EXPECT_REFUSAL(to_dlpack_tensor(empty, other.get()), errc::context_not_default, "context",
                   default_context_words(), "another one, of 1 device(s)");
  }
}

TEST(OpenclExport, APartOfTheDeviceThatTheMemoryIsOnIsRefused) {
  for (const alloc kind : {alloc::device, alloc::shared}) {
    const exported_memory mine(kind);
    EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context(), native_sub_device()),
                   errc::device_mismatch, "device", "device 0, where the memory is",
                   "a sub-device of device 0");
  }
}

/// The device that all memory is on for `on_part`.
cl_device_id part_with_all_memory = nullptr;
clGetMemAllocInfoINTEL_fn true_query = nullptr;

/// Answers as a driver that has memory of sub-devices in a default context.
cl_int CL_API_CALL on_part(cl_context context, const void* pointer, cl_mem_info_intel what,
                           std::size_t size, void* value, std::size_t* needed) {
  if (what != CL_MEM_ALLOC_DEVICE_INTEL) {
    return true_query(context, pointer, what, size, value, needed);
  }
  *static_cast<cl_device_id*>(value) = part_with_all_memory;
  return CL_SUCCESS;
}

TEST(OpenclExport, MemoryOfASubDeviceGoesWithThatAndWithItsRootAlone) {
  const std::array<cl_device_id, 2> parts{native_sub_device(), native_sub_device()};
  ASSERT_NE(parts[0], parts[1]);
  const exported_memory mine;
  const changed_table changed([](device_table& table) {
    true_query = table.platforms.at(0).opencl.query;
    table.platforms.at(0).opencl.query = &on_part;
  });
  const cl_context context = native_default_context();
  part_with_all_memory = parts[0];
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, parts[0])), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context, native_root())), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context)), 0);
  EXPECT_REFUSAL(to_dlpack_tensor(mine.view, context, parts[1]), errc::device_mismatch,
                 "device", "a sub-device of device 0, where the memory is",
                 "another sub-device of device 0");
}

TEST(OpenclExport, APlatformWithoutUsmKnowsNoMemory) {
  const exported_memory mine;
  const native_context other({native_root()});
  const native_memory foreign(alloc::device, 64, other.get(), native_root());
  const changed_table no_usm([](device_table& table) {
    table.platforms.at(0).has_usm = false;
    table.platforms.at(0).opencl.query = nullptr;
  });
  const floats empty(nullptr, 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(empty, native_default_context(), native_root())), 0);
  EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context()), errc::pointer_unknown,
                 "data");
  EXPECT_REFUSAL(to_dlpack_tensor(floats(foreign.as<float>(), 16), other.get()),
                 errc::pointer_unknown, "data");
}

// --- Two platforms --------------------------------------------------------------------------

TEST(TwoDevicesOpenclExport, TheDeviceIsThatOfTheMemoryAndAnotherIsRefused) {
  for (const std::size_t id : {std::size_t{0}, std::size_t{1}}) {
    const auto expected_id = static_cast<std::int32_t>(id);
    const cl_context context = native_default_context(id);
    const cl_device_id other = native_root(1 - id);
    const std::string found = "device " + std::to_string(1 - id);
    for (const alloc kind : usm_kinds) {
      const exported_memory mine(kind, id);
      EXPECT_EQ(id_of(to_dlpack_tensor(mine.view, context)), expected_id);
      const auto wrapper = to_dlpack_tensor(mine.view, context, native_root(id));
      EXPECT_EQ(id_of(wrapper), expected_id);
      EXPECT_EQ(usm_dlpack::validate(wrapper.get()).device_id(), expected_id);
      EXPECT_REFUSAL(
          to_dlpack_tensor(mine.view, context, other), errc::device_mismatch, "device",
          kind == alloc::host ? std::string("a device of the given context")
                              : "device " + std::to_string(id) + ", where the memory is",
          found);
      EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context(1 - id), other),
                     errc::pointer_unknown, "data");
    }
    const floats empty(nullptr, 0);
    EXPECT_REFUSAL(to_dlpack_tensor(empty, context, other), errc::device_mismatch, "device",
                   "a device of the given context", found);
  }
}

TEST(TwoDevicesOpenclExport, OnAPlatformOfSeveralTheIdIsThatOfTheTrueOrElseTheGivenDevice) {
  const changed_table two_roots([](device_table& table) {
    move_to_id_1(table);
    table.devices[1].platform = 0;
    table.platforms[0].device_count = 2;
  });
  const cl_context context = native_default_context(0);
  const exported_memory device;
  EXPECT_EQ(id_of(to_dlpack_tensor(device.view, context)), 1);
  EXPECT_EQ(id_of(to_dlpack_tensor(device.view, context, native_root(0))), 1);
  const exported_memory host(alloc::host);
  EXPECT_EQ(id_of(to_dlpack_tensor(host.view, context)), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(host.view, context, native_root(0))), 1);
}

TEST(TwoDevicesOpenclExport, WhatSyclDoesNotListIsRefused) {
  in_a_new_process(
      {{"ONEAPI_DEVICE_SELECTOR", "opencl:1"}, {"USM_DLPACK_TEST_DEVICES", "1"}}, [] {
        const cl_device_id hidden = hidden_native_root();
        const exported_memory mine;
        EXPECT_REFUSAL(to_dlpack_tensor(mine.view, native_default_context(), hidden),
                       errc::device_without_id, "device");
        const native_context context({hidden});
        const native_memory memory(alloc::device, 64, context.get(), hidden);
        const floats view(memory.as<float>(), 16);
        EXPECT_REFUSAL(to_dlpack_tensor(view, context.get()), errc::context_not_default,
                       "context",
                       "the default context of a platform in sycl::platform::get_platforms()",
                       "another one, of 1 device(s)");
      });
}

// --- The order ------------------------------------------------------------------------------

/// No root has a handle: stands for a device that ONEAPI_DEVICE_SELECTOR hides.
void hide_devices(device_table& table) { table.platforms.at(0).opencl.devices.clear(); }

/// A view of device USM, as its type says, and the handles that it is exported with.
struct exported_by_handles {
  struct device_view : breakable_view {
    using accessor_type =
        usm_dlpack::usm_accessor<alloc::device, breakable_view::accessor_type>;
    static accessor_type accessor() { return {}; }
  };

  cl_context context = native_default_context();
  cl_device_id device = native_root();
  std::optional<native_context> other;
  std::optional<native_memory> memory;
  std::optional<changed_table> changed;
  std::array<float, 4> on_stack{};
  alloc kind = alloc::device;
  device_view view;

  exported_by_handles() { allocate(); }
  void allocate() {
    memory.reset();
    memory.emplace(kind, 64, other ? other->get() : native_default_context(), native_root());
    view.handle = memory->as<float>();
  }
};

constexpr breakable_rule<exported_by_handles> opencl_rules[] = {
    {errc::layout_not_strided, "layout",
     [](exported_by_handles& e) { e.view.map.strided = false; }},
    {errc::extent_out_of_range, "shape[0]",
     [](exported_by_handles& e) { e.view.all_extents = std::uint64_t{1} << 63; }},
    {errc::stride_out_of_range, "strides[0]",
     [](exported_by_handles& e) { e.view.map.all_strides = std::uint64_t{1} << 63; }},
    {errc::offset_out_of_range, "element_offset",
     [](exported_by_handles& e) { e.view.map.first = std::uint64_t{1} << 63; }},
    {errc::runtime_error, "context", [](exported_by_handles& e) { e.context = nullptr; }},
    {errc::device_without_id, "device",
     [](exported_by_handles& e) { e.changed.emplace(hide_devices); }},
    {errc::pointer_unknown, "data",
     [](exported_by_handles& e) { e.view.handle = e.on_stack.data(); }},
    {errc::context_not_default, "context",
     [](exported_by_handles& e) {
       e.other.emplace(std::vector<cl_device_id>{native_root()});
       e.context = e.other->get();
       e.allocate();
     }},
    {errc::usm_type_not_accepted, "data",
     [](exported_by_handles& e) {
       e.kind = alloc::shared;
       e.allocate();
     }},
    {errc::device_mismatch, "device",
     [](exported_by_handles& e) { e.device = native_sub_device(); }},
};

TEST(OpenclExport, OfTwoBrokenRulesTheEarlierIsRefused) {
  expect_order(opencl_rules, [](const exported_by_handles& e) {
    static_cast<void>(to_dlpack_tensor(e.view, e.context, e.device));
  });
}

}  // namespace test_opencl_export
