// SPDX-License-Identifier: Apache-2.0
//
// sycl/to_dlpack.hpp: the export protocol, with a context, with a queue and with neither.
#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/sycl/to_dlpack.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <refusal.hpp>

#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace test_to_dlpack {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::check_queue;
using usm_dlpack::errc;
using usm_dlpack::to_dlpack_tensor;

/// Expects each of the three exports to refuse.
template <class View>
void expect_refused_three_times(const View& view, const sycl::queue& queue, errc code,
                                const char* field) {
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue.get_context()), code, field);
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue), code, field);
  EXPECT_REFUSAL(to_dlpack_tensor(view), code, field);
}

template <class View>
void expect_unknown(const View& view, const sycl::queue& queue) {
  expect_refused_three_times(view, queue, errc::pointer_unknown, "data");
}

/// Expects each of the three exports to give the same tensor of the device `id`.
template <class View>
void expect_exported_three_times(const View& view, const sycl::queue& queue, std::int32_t id) {
  const auto wanted = to_dlpack_tensor(view, DLDevice{kDLOneAPI, id});
  for (const auto& found : {to_dlpack_tensor(view, queue.get_context()),
                            to_dlpack_tensor(view, queue), to_dlpack_tensor(view)}) {
    const DLTensor tensor = found.get();
    EXPECT_EQ(tensor.data, wanted.get().data);
    EXPECT_EQ(tensor.device.device_type, kDLOneAPI);
    EXPECT_EQ(tensor.device.device_id, id);
    EXPECT_TRUE(usm_dlpack::same_data_type(tensor.dtype, wanted.get().dtype));
    EXPECT_EQ(tensor.byte_offset, 0U);
    EXPECT_EQ(found.shape(), wanted.shape());
    EXPECT_EQ(found.strides(), wanted.strides());
  }
}

std::string default_context_wanted(const sycl::context& context) {
  return "the default context of the platform \"" +
         context.get_platform().get_info<sycl::info::platform::name>() + "\"";
}

TEST(UsmExport, EveryKindIsExportedWithContextWithQueueAndWithNeither) {
  const sycl::queue own = queue_on();
  const sycl::queue of_context(usm_dlpack::default_context(0), root_devices().at(0));
  for (const sycl::queue& queue : {own, of_context}) {
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 96, queue);
      using extents = md::extents<int, 3, md::dynamic_extent>;
      const md::mdspan<double, extents> view(memory.as<double>(), 4);
      EXPECT_EQ(to_dlpack_tensor(view, queue).data(), memory.at());
      expect_exported_three_times(view, queue, 0);
    }
  }
}

TEST(UsmExport, DataIsTheFirstElementWhereverTheHandlePoints) {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 96, queue);
  using extents = md::dextents<std::int64_t, 1>;
  const usm_dlpack::layout_relaxed::mapping<extents> backwards(extents(8), {-3}, 23);
  const md::mdspan<const float, extents, usm_dlpack::layout_relaxed> view(memory.as<float>(),
                                                                          backwards);
  EXPECT_EQ(to_dlpack_tensor(view, queue).data(), memory.at(92));
  expect_exported_three_times(view, queue, 0);
}

// --- Contexts -------------------------------------------------------------------------------

TEST(UsmExport, MemoryOfAContextOfItsOwnIsRefusedOnOpencl) {
  const sycl::device root = root_devices().at(0);
  const std::vector<sycl::device> parts = sub_devices();
  const std::vector<sycl::queue> queues{
      sycl::queue(sycl::context(root), root), sycl::queue(parts.at(0)),
      sycl::queue(nested_sub_device()),
      sycl::queue(sycl::context({parts.at(0), parts.at(1)}), parts.at(1))};
  for (const sycl::queue& queue : queues) {
    const sycl::context context = queue.get_context();
    const std::string found =
        "another one, of " + std::to_string(context.get_devices().size()) + " device(s)";
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue);
      const auto view = view_of(memory.as<float>(), 16);
      EXPECT_REFUSAL(to_dlpack_tensor(view, context), errc::context_not_default, "context",
                     default_context_wanted(context), found);
      EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::context_not_default, "context",
                     default_context_wanted(context), found);
      EXPECT_REFUSAL(to_dlpack_tensor(view), errc::pointer_unknown, "data",
                     "USM of the default context of a platform",
                     "an allocation unknown to it");
    }
  }
}

TEST(UsmExport, MemoryOfAnotherContextThanTheGivenOneIsRefusedOnOpencl) {
  const sycl::queue queue = queue_on();
  const sycl::device device = queue.get_device();
  const sycl::context context(device);
  const sycl::queue other(context, device);
  for (const alloc kind : usm_kinds) {
    const usm_memory elsewhere(kind, 64, device, context);
    expect_unknown(view_of(elsewhere.as<float>(), 16), queue);
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    for (const sycl::queue& given : {other, sycl::queue(sub_devices().at(0))}) {
      EXPECT_REFUSAL(to_dlpack_tensor(view, given), errc::pointer_unknown, "data",
                     "USM of the given context", "an allocation unknown to it");
      EXPECT_REFUSAL(to_dlpack_tensor(view, given.get_context()), errc::pointer_unknown,
                     "data", "USM of the given context", "an allocation unknown to it");
    }
    try {
      static_cast<void>(to_dlpack_tensor(view, context));
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_NE(error.remedy().find("the context that it is of"), std::string::npos);
    }
  }
}

// --- What is no USM -------------------------------------------------------------------------

TEST(UsmExport, NullIsRefusedAsAnAllocationThatFailed) {
  const sycl::queue queue = queue_on();
  const auto view = view_of(static_cast<float*>(nullptr), 16);
  expect_refused_three_times(view, queue, errc::data_null, "data");
  EXPECT_REFUSAL(to_dlpack_tensor(view, sycl::context(queue.get_device())), errc::data_null,
                 "data");
}

TEST(UsmExport, WhatIsNoUsmIsRefusedUnpooled) {
  const sycl::queue queue = queue_on();
  std::array<float, 16> on_stack{};
  const auto on_heap = std::make_unique<std::array<float, 16>>();
  expect_unknown(view_of(on_stack.data(), 16), queue);
  expect_unknown(view_of(on_heap->data(), 16), queue);
  for (const alloc kind : usm_kinds) {
    usm_memory memory(kind, 64, queue);
    expect_unknown(view_of(memory.as<float>(64), 1), queue);
    memory.free();
    expect_unknown(view_of(memory.as<float>(), 16), queue);
  }
}

// --- Backends that do not answer ------------------------------------------------------------

TEST(UsmExport, WhereTheBackendCannotBeAskedSyclIs) {
  const sycl::queue queue = queue_on();
  std::array<float, 4> on_stack{};
  const changed_table backends_are_silent(silence_backends);
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    expect_exported_three_times(view_of(memory.as<float>(), 16), queue, 0);
  }
  expect_unknown(view_of(on_stack.data(), 4), queue);
}

TEST(UsmExport, AQueryThatFailsTellsNothingOnOpencl) {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 64, queue);
  const changed_table without_context(
      [](device_table& table) { table.platforms.at(0).opencl.context = nullptr; });
  expect_unknown(view_of(memory.as<float>(), 16), queue);
}

// --- Work on the memory ---------------------------------------------------------------------

TEST(UsmExport, NeitherExportNorImportWaitsForWorkOnTheQueue) {
  sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 64, queue);
  const auto view = view_of(memory.as<float>(), 16);
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  sycl::event work = queue.submit([&](sycl::handler& handler) {
    handler.host_task([opened] { opened.wait_for(std::chrono::seconds(30)); });
  });
  static_cast<void>(to_dlpack_tensor(view));
  static_cast<void>(to_dlpack_tensor(view, queue.get_context()));
  const auto exported = to_dlpack_tensor(view, queue);
  static_cast<void>(usm_dlpack::validate(exported.get()));
  check_queue(queue, view);
  EXPECT_NE(work.get_info<sycl::info::event::command_execution_status>(),
            sycl::info::event_command_status::complete);
  gate.set_value();
  work.wait();
}

// --- Empty views ----------------------------------------------------------------------------

using empty_view = md::mdspan<float, md::dextents<std::int64_t, 2>>;

void expect_empty(const usm_dlpack::dlpack_tensor<2>& exported, std::int32_t id) {
  const DLTensor tensor = exported.get();
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(tensor.device.device_type, kDLOneAPI);
  EXPECT_EQ(tensor.device.device_id, id);
  EXPECT_EQ(exported.shape(), (std::array<std::int64_t, 2>{3, 0}));
  EXPECT_EQ(exported.strides(), (std::array<std::int64_t, 2>{0, 1}));
}

TEST(UsmExport, EmptyViewsOfAnyPointerAreExportedWithNullData) {
  const sycl::queue queue = queue_on();
  std::array<float, 1> on_stack{};
  const usm_memory memory(alloc::device, 64, queue);
  for (float* const pointer : {static_cast<float*>(nullptr), memory.as<float>(),
                               memory.as<float>(64), on_stack.data()}) {
    const empty_view view(pointer, 3, 0);
    expect_empty(to_dlpack_tensor(view, queue.get_context()), 0);
    expect_empty(to_dlpack_tensor(view, queue), 0);
    expect_empty(to_dlpack_tensor(view), 0);

    const sycl::context own(queue.get_device());
    EXPECT_REFUSAL(to_dlpack_tensor(view, own), errc::context_not_default, "context");
  }
  // Whichever extent is 0, and whatever the strides are.
  using extents = md::dextents<std::int64_t, 3>;
  const md_array<std::int64_t, 3> ones{1, 1, 1};
  for (const extents& shape : {extents(0, 2, 2), extents(2, 0, 2), extents(2, 2, 0)}) {
    const md::layout_stride::mapping<extents> mapping(shape, ones);
    const md::mdspan<float, extents, md::layout_stride> view(on_stack.data(), mapping);
    EXPECT_EQ(to_dlpack_tensor(view).data(), nullptr);
    EXPECT_EQ(to_dlpack_tensor(view, queue).data(), nullptr);
  }
}

// --- Several root devices -------------------------------------------------------------------

TEST(TwoDevicesUsmExport, EachDeviceIsFoundWithContextWithQueueAndWithNeither) {
  for (const std::int32_t id : {0, 1}) {
    const sycl::queue queue = queue_on(static_cast<std::size_t>(id));
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue);
      expect_exported_three_times(view_of(memory.as<float>(), 16), queue, id);
      expect_empty(to_dlpack_tensor(empty_view(memory.as<float>(), 3, 0)), id);
    }
  }
}

TEST(TwoDevicesUsmExport, AQueueOnAnotherRootDeviceThanTheMemoryIsRefused) {
  const std::vector<sycl::device> devices = root_devices();
  for (const std::size_t there : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t here = 1 - there;
    const std::string expected =
        "a queue on device " + std::to_string(there) + ", where the memory is";
    const std::string found = "one on device " + std::to_string(here);
    const sycl::queue queue = queue_on(here);
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue_on(there));
      const auto view = view_of(memory.as<float>(), 16);
      EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::queue_device_mismatch, "queue",
                     expected, found);
      EXPECT_REFUSAL(check_queue(queue, view), errc::queue_device_mismatch, "queue", expected,
                     found);
      const sycl::queue own_context(sycl::context(devices[here]), devices[here]);
      EXPECT_REFUSAL(to_dlpack_tensor(view, own_context), errc::queue_device_mismatch, "queue",
                     expected, found);
      EXPECT_REFUSAL(to_dlpack_tensor(view, queue.get_context()), errc::pointer_unknown,
                     "data");
    }
  }
}

TEST(TwoDevicesUsmExport, EmptyViewsWithoutMemoryNeedAContextOrAQueue) {
  std::array<float, 1> on_stack{};
  for (float* const pointer : {static_cast<float*>(nullptr), on_stack.data()}) {
    const empty_view view(pointer, 3, 0);
    for (const std::int32_t id : {0, 1}) {
      const sycl::queue queue = queue_on(static_cast<std::size_t>(id));
      expect_empty(to_dlpack_tensor(view, queue), id);
      expect_empty(to_dlpack_tensor(view, queue.get_context()), id);
    }
    EXPECT_REFUSAL(to_dlpack_tensor(view), errc::pointer_unknown, "data",
                   "the address of USM, or a context, for a view without elements",
                   "an address unknown to all contexts");
  }
}

/// As if the second platform's driver gave the first one's addresses to memory of its own.
void alias(device_table& table) {
  const auto& first = table.platforms.at(0);
  auto& second = table.platforms.at(1);
  second.opencl = first.opencl;
  second.context = first.context;
  second.opencl.devices = {nullptr, first.opencl.devices.at(0)};
}

TEST(TwoDevicesUsmExport, AnAddressThatTwoPlatformsKnowNeedsAContextOrAQueue) {
  const sycl::queue queue = queue_on(0);
  const usm_memory memory(alloc::device, 64, queue);
  const auto view = view_of(memory.as<float>(), 16);
  const changed_table aliased(alias);
  EXPECT_REFUSAL(to_dlpack_tensor(view), errc::context_ambiguous, "data",
                 "an address that one platform knows",
                 "memory of device 0 (opencl) and device 1 (opencl) at it");
  EXPECT_EQ(id_of(to_dlpack_tensor(view, queue)), 0);
  EXPECT_REFUSAL(to_dlpack_tensor(empty_view(memory.as<float>(), 3, 0)), errc::pointer_unknown,
                 "data", "the address of USM, or a context, for a view without elements",
                 "an address that several contexts know");
}

TEST(TwoDevicesUsmExport, APlatformWhoseQueryFailsDisturbsNoOther) {
  const usm_memory memory(alloc::device, 64, queue_on(0));
  const auto view = view_of(memory.as<float>(), 16);
  const changed_table first_fails([](device_table& table) {
    alias(table);
    table.platforms.at(0).opencl.query = nullptr;  // SYCL names a device that has no id now
    table.devices[0].device = table.devices[1].device;
  });
  EXPECT_REFUSAL(usm_dlpack::detail::find_allocation(view.data_handle(),
                                                     device_table::get().platforms[0]),
                 errc::device_without_id, "device");
  EXPECT_EQ(id_of(to_dlpack_tensor(view)), 1);
}

TEST(ThreeDevicesUsmExport, MemoryOfOneOfTwoOtherDevicesIsRefusedByTheIdsOfBoth) {
  const usm_memory memory(alloc::device, 64, queue_on(0));
  const changed_table aliased(alias);
  const auto view = view_of(memory.as<float>(), 16);
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue_on(2)), errc::queue_device_mismatch, "queue",
                 "a queue on device 0 or 1, where the memory is", "one on device 2");
  const auto named = to_dlpack_tensor(view, DLDevice{kDLOneAPI, 2});
  EXPECT_REFUSAL(usm_dlpack::validate(named.get()), errc::device_mismatch, "device.device_id",
                 "0 or 1 (the root device of the memory)", "2");
}

// --- Several root devices on one platform ---------------------------------------------------

TEST(TwoDevicesUsmExport, TheIdIsThatOfTheTrueDeviceAndTheQueueMustBeOnIt) {
  const changed_table moved(move_to_id_1);
  const sycl::queue queue = queue_on(0);
  for (const alloc kind : {alloc::device, alloc::shared}) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    EXPECT_EQ(id_of(to_dlpack_tensor(view)), 1);
    EXPECT_EQ(id_of(to_dlpack_tensor(view, queue.get_context())), 1);
    EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::queue_device_mismatch, "queue",
                   "a queue on device 1, where the memory is", "one on device 0");
    const empty_view empty(memory.as<float>(), 3, 0);  // of the queue's device
    expect_empty(to_dlpack_tensor(empty, queue), 0);
    check_queue(queue, empty);
  }
}

TEST(UsmExport, HostMemoryHasTheIdOfTheQueueOrElseOfTheFirstDeviceOfItsPlatform) {
  using usm_dlpack::detail::export_device;
  const usm_dlpack::detail::platform_entry entry{
      root_devices().at(0).get_platform(),
      std::make_shared<sycl::context>(usm_dlpack::default_context(0)), 4, 3};
  usm_dlpack::detail::memory_place found{true, -1};
  EXPECT_EQ(export_device(found, entry, -1).device_id, 4);
  EXPECT_EQ(export_device(found, entry, 6).device_id, 6);
  found.device_id = 5;
  EXPECT_EQ(export_device(found, entry, -1).device_id, 5);
  EXPECT_EQ(export_device(found, entry, 6).device_id, 5);
}

// --- Queues that are to work on views -------------------------------------------------------

TEST(UsmExport, AQueueFitsViewsOfItsDeviceAndContextOnOpencl) {
  const sycl::queue queue = queue_on(0);
  const usm_memory device(alloc::device, 64, queue);
  const usm_memory host(alloc::host, 64, queue);
  const auto view = view_of(device.as<float>(), 16);
  check_queue(queue);
  check_queue(queue, view, view_of(host.as<double>(), 8));
  const sycl::queue foreign(sycl::context(queue.get_device()), queue.get_device());
  EXPECT_REFUSAL(check_queue(foreign), errc::context_not_default, "queue");
  EXPECT_REFUSAL(check_queue(foreign, view), errc::context_not_default, "queue");
  const usm_memory away(alloc::device, 64, foreign);
  EXPECT_REFUSAL(check_queue(queue, view, view_of(away.as<float>(), 16)),
                 errc::pointer_unknown, "data");
}

}  // namespace test_to_dlpack
