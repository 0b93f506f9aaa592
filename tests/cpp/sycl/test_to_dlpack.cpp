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
using usm_dlpack::errc;
using usm_dlpack::to_dlpack_tensor;

const char* const unknown_here = "USM of the given context";
const char* const unknown_everywhere = "USM of the default context of a platform";
const char* const unknown = "an allocation unknown to it";

std::string default_context_wanted(const sycl::context& context) {
  return "the default context of the platform \"" +
         context.get_platform().get_info<sycl::info::platform::name>() + "\"";
}

template <class View>
void expect_unknown_to_all(const View& view, const sycl::queue& queue) {
  const sycl::context context = queue.get_context();
  EXPECT_REFUSAL(to_dlpack_tensor(view, context), errc::pointer_unknown, "data", unknown_here,
                 unknown);
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::pointer_unknown, "data", unknown_here,
                 unknown);
  EXPECT_REFUSAL(to_dlpack_tensor(view), errc::pointer_unknown, "data", unknown_everywhere,
                 unknown);
}

template <std::size_t Rank>
void expect_same(const usm_dlpack::dlpack_tensor<Rank>& found,
                 const usm_dlpack::dlpack_tensor<Rank>& wanted) {
  const DLTensor a = found.get();
  const DLTensor b = wanted.get();
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.device.device_type, b.device.device_type);
  EXPECT_EQ(a.device.device_id, b.device.device_id);
  EXPECT_TRUE(usm_dlpack::same_data_type(a.dtype, b.dtype));
  EXPECT_EQ(a.byte_offset, b.byte_offset);
  EXPECT_EQ(found.shape(), wanted.shape());
  EXPECT_EQ(found.strides(), wanted.strides());
}

TEST(UsmExport, EveryKindIsExportedWithContextWithQueueAndWithNeither) {
  const sycl::queue queue = queue_on();
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 96, queue);
    const md::mdspan<double, md::extents<int, 3, md::dynamic_extent>> view(memory.as<double>(),
                                                                           4);
    const auto wanted = to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
    EXPECT_EQ(wanted.get().data, memory.at());
    expect_same(to_dlpack_tensor(view, queue.get_context()), wanted);
    expect_same(to_dlpack_tensor(view, queue), wanted);
    expect_same(to_dlpack_tensor(view), wanted);
  }
}

TEST(UsmExport, DataIsTheFirstElementWhereverTheHandlePoints) {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 96, queue);
  using extents = md::dextents<std::int64_t, 1>;
  const usm_dlpack::layout_relaxed::mapping<extents> backwards(extents(8), {-3}, 22);
  const md::mdspan<const float, extents, usm_dlpack::layout_relaxed> view(memory.as<float>(),
                                                                          backwards);
  EXPECT_EQ(data_of(to_dlpack_tensor(view, queue)), memory.at(88));
  EXPECT_EQ(data_of(to_dlpack_tensor(view, queue.get_context())), memory.at(88));
  EXPECT_EQ(data_of(to_dlpack_tensor(view)), memory.at(88));
}

TEST(UsmExport, AViewOfTheLastElementIsKnown) {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 96, queue);
  const auto view = view_of(memory.as<float>(92), 1);
  EXPECT_EQ(id_of(to_dlpack_tensor(view, queue)), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(view, queue.get_context())), 0);
  EXPECT_EQ(id_of(to_dlpack_tensor(view)), 0);
}

TEST(UsmExport, AQueueMadeOfTheDefaultContextAndTheDeviceIsAsGoodAsOneMadeOfTheDevice) {
  const sycl::device device = root_devices().at(0);
  const sycl::queue queue(usm_dlpack::default_context(0), device);
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    EXPECT_EQ(id_of(to_dlpack_tensor(view_of(memory.as<float>(), 16), queue)), 0);
  }
}

TEST(UsmExport, MemoryOfAContextOfItsOwnIsRefusedOnOpencl) {
  const sycl::device device = root_devices().at(0);
  const sycl::context context(device);
  const sycl::queue queue(context, device);
  const std::string wanted = default_context_wanted(context);
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    EXPECT_REFUSAL(to_dlpack_tensor(view, context), errc::context_not_default, "context",
                   wanted, "another one, of 1 device(s)");
    EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::context_not_default, "context", wanted,
                   "another one, of 1 device(s)");
    EXPECT_REFUSAL(to_dlpack_tensor(view), errc::pointer_unknown, "data", unknown_everywhere,
                   unknown);
  }
}

TEST(UsmExport, MemoryOfAContextOfSeveralDevicesIsRefusedOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context({parts.at(0), parts.at(1)});
  const usm_memory memory(alloc::device, 64, parts[1], context);
  EXPECT_REFUSAL(to_dlpack_tensor(view_of(memory.as<float>(), 16), context),
                 errc::context_not_default, "context", default_context_wanted(context),
                 "another one, of 2 device(s)");
}

TEST(UsmExport, MemoryOfAnotherContextThanTheGivenOneIsRefusedOnOpencl) {
  const sycl::queue queue = queue_on();
  const sycl::context context(queue.get_device());
  for (const alloc kind : usm_kinds) {
    const usm_memory elsewhere(kind, 64, queue.get_device(), context);
    expect_unknown_to_all(view_of(elsewhere.as<float>(), 16), queue);
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    EXPECT_REFUSAL(to_dlpack_tensor(view, context), errc::pointer_unknown, "data",
                   unknown_here, unknown);
    const sycl::queue other(context, queue.get_device());
    EXPECT_REFUSAL(to_dlpack_tensor(view, other), errc::pointer_unknown, "data", unknown_here,
                   unknown);
  }
}

TEST(UsmExport, AQueueOnASubDeviceIsRefusedBecauseItsContextIsItsOwnOnOpencl) {
  const sycl::queue root_queue = queue_on();
  for (const sycl::device& part : {sub_devices().at(0), nested_sub_device()}) {
    const sycl::queue queue(part);
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue);
      const auto view = view_of(memory.as<float>(), 16);
      EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::context_not_default, "context",
                     default_context_wanted(queue.get_context()),
                     "another one, of 1 device(s)");
      EXPECT_REFUSAL(to_dlpack_tensor(view), errc::pointer_unknown, "data", unknown_everywhere,
                     unknown);
      const usm_memory of_root(kind, 64, root_queue);
      EXPECT_REFUSAL(to_dlpack_tensor(view_of(of_root.as<float>(), 16), queue),
                     errc::pointer_unknown, "data", unknown_here, unknown);
    }
  }
}

TEST(UsmExport, NullIsRefusedAsAnAllocationThatFailed) {
  const sycl::queue queue = queue_on();
  const auto view = view_of(static_cast<float*>(nullptr), 16);
  const sycl::context other(queue.get_device());
  EXPECT_REFUSAL(to_dlpack_tensor(view), errc::data_null, "data", "the address of USM",
                 "null");
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::data_null, "data", "the address of USM",
                 "null");
  for (const sycl::context& context : {queue.get_context(), other}) {
    EXPECT_REFUSAL(to_dlpack_tensor(view, context), errc::data_null, "data",
                   "the address of USM", "null");
  }
}

TEST(UsmExport, WhatIsNoUsmIsRefusedUnpooled) {
  const sycl::queue queue = queue_on();
  std::array<float, 16> on_stack{};
  const auto on_heap = std::make_unique<std::array<float, 16>>();
  expect_unknown_to_all(view_of(on_stack.data(), 16), queue);
  expect_unknown_to_all(view_of(on_heap->data(), 16), queue);
  for (const alloc kind : usm_kinds) {
    usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    expect_unknown_to_all(view_of(memory.as<float>(64), 1), queue);
    memory.free();
    expect_unknown_to_all(view, queue);
  }
}

TEST(UsmExport, TheViewIsCheckedBeforeTheMemory) {
  const sycl::queue queue = queue_on();
  std::array<float, 16> on_stack{};
  const row_view<float> view(on_stack.data(), -2);
  const char* const expected = "an extent from 0 to 9223372036854775807 elements";
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::extent_out_of_range, "shape[0]",
                 expected, "-2");
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue.get_context()), errc::extent_out_of_range,
                 "shape[0]", expected, "-2");
  EXPECT_REFUSAL(to_dlpack_tensor(view), errc::extent_out_of_range, "shape[0]", expected,
                 "-2");
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
  usm_dlpack::check_queue(queue, view);
  EXPECT_NE(work.get_info<sycl::info::event::command_execution_status>(),
            sycl::info::event_command_status::complete);
  gate.set_value();
  work.wait();
}

// --- Backends that do not answer ------------------------------------------------------------

TEST(UsmExport, WhereTheBackendCannotBeAskedSyclIs) {
  const sycl::queue queue = queue_on();
  std::array<float, 4> on_stack{};
  const changed_natives backends_are_silent(silence_backends);
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    EXPECT_EQ(id_of(to_dlpack_tensor(view)), 0);
    EXPECT_EQ(id_of(to_dlpack_tensor(view, queue)), 0);
    EXPECT_EQ(id_of(to_dlpack_tensor(view, queue.get_context())), 0);
  }
  expect_unknown_to_all(view_of(on_stack.data(), 4), queue);
}

TEST(UsmExport, AQueryThatFailsTellsNothingOnOpencl) {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 64, queue);
  const changed_natives without_context(
      [](native_platforms& platforms) { platforms.at(0).opencl.context = nullptr; });
  expect_unknown_to_all(view_of(memory.as<float>(), 16), queue);
}

// --- Empty views ----------------------------------------------------------------------------

template <std::size_t Rank>
void expect_empty(const usm_dlpack::dlpack_tensor<Rank>& exported, std::int32_t id) {
  const DLTensor tensor = exported.get();
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(tensor.device.device_type, kDLOneAPI);
  EXPECT_EQ(tensor.device.device_id, id);
  EXPECT_EQ(exported.shape(), (std::array<std::int64_t, 2>{3, 0}));
  EXPECT_EQ(exported.strides(), (std::array<std::int64_t, 2>{0, 1}));
}

using empty_view = md::mdspan<float, md::dextents<std::int64_t, 2>>;

TEST(UsmExport, EmptyViewsOfAnyPointerAreExportedWithNullData) {
  const sycl::queue queue = queue_on();
  std::array<float, 1> on_stack{};
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    for (float* const pointer : {static_cast<float*>(nullptr), memory.as<float>(),
                                 memory.as<float>(64), on_stack.data()}) {
      const empty_view view(pointer, 3, 0);
      expect_empty(to_dlpack_tensor(view, queue.get_context()), 0);
      expect_empty(to_dlpack_tensor(view, queue), 0);
      expect_empty(to_dlpack_tensor(view), 0);
    }
  }
}

TEST(UsmExport, EmptyViewsOfAContextOfItsOwnAreRefusedLikeOthers) {
  const sycl::device device = root_devices().at(0);
  const sycl::context context(device);
  const usm_memory memory(alloc::device, 64, device, context);
  for (float* const pointer : {static_cast<float*>(nullptr), memory.as<float>()}) {
    const empty_view view(pointer, 3, 0);
    EXPECT_REFUSAL(to_dlpack_tensor(view, context), errc::context_not_default, "context",
                   default_context_wanted(context), "another one, of 1 device(s)");
  }
}

template <class View>
void expect_empty_in_three_ways(const View& view, const sycl::queue& queue) {
  for (const auto& exported : {to_dlpack_tensor(view), to_dlpack_tensor(view, queue),
                               to_dlpack_tensor(view, queue.get_context())}) {
    EXPECT_EQ(id_of(exported), 0);
    EXPECT_EQ(exported.data(), nullptr);
  }
}

/// Views whose extents are 2, but one, which is 0.
template <std::size_t Rank>
void expect_empty_at_rank(const sycl::queue& queue) {
  using extents = md::dextents<std::int64_t, Rank>;
  std::array<float, 1> on_stack{};
  for (std::size_t empty = 0; empty < Rank; ++empty) {
    std::array<std::int64_t, Rank> shape{};
    shape.fill(2);
    shape[empty] = 0;
    std::array<std::int64_t, Rank> strides{};
    strides.fill(1);
    for (float* const pointer : {static_cast<float*>(nullptr), on_stack.data()}) {
      const md::mdspan<float, extents> right(pointer, extents(shape));
      expect_empty_in_three_ways(right, queue);
      using mapping = md::layout_stride::mapping<extents>;
      const md::mdspan<float, extents, md::layout_stride> strided(
          pointer, mapping(extents(shape), strides));
      expect_empty_in_three_ways(strided, queue);
    }
  }
}

TEST(UsmExport, AnyExtentOf0MakesAViewEmpty) {
  const sycl::queue queue = queue_on();
  expect_empty_at_rank<1>(queue);
  expect_empty_at_rank<2>(queue);
  expect_empty_at_rank<3>(queue);
  expect_empty_at_rank<4>(queue);
  expect_empty_at_rank<5>(queue);
}

// --- Several root devices -------------------------------------------------------------------

void expect_each_device_is_found() {
  const std::size_t count = root_devices().size();
  for (std::size_t place = 0; place < count; ++place) {
    const auto id = static_cast<std::int32_t>(place);
    const sycl::queue queue = queue_on(place);
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue);
      const auto view = view_of(memory.as<float>(), 16);
      EXPECT_EQ(id_of(to_dlpack_tensor(view)), id);
      EXPECT_EQ(id_of(to_dlpack_tensor(view, queue)), id);
      EXPECT_EQ(id_of(to_dlpack_tensor(view, queue.get_context())), id);
      expect_empty(to_dlpack_tensor(empty_view(memory.as<float>(), 3, 0)), id);
    }
  }
}

TEST(TwoDevicesUsmExport, EachDeviceIsFoundWithContextWithQueueAndWithNeither) {
  expect_each_device_is_found();
}

TEST(ThreeDevicesUsmExport, EachDeviceIsFoundWithContextWithQueueAndWithNeither) {
  expect_each_device_is_found();
}

TEST(TwoDevicesUsmExport, AQueueOnAnotherRootDeviceThanTheMemoryIsRefused) {
  const std::vector<sycl::device> devices = root_devices();
  for (const std::size_t there : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t here = 1 - there;
    const std::string expected =
        "a queue on device " + std::to_string(there) + ", where the memory is";
    const std::string found = "one on device " + std::to_string(here);
    for (const alloc kind : usm_kinds) {
      const usm_memory memory(kind, 64, queue_on(there));
      const auto view = view_of(memory.as<float>(), 16);
      EXPECT_REFUSAL(to_dlpack_tensor(view, queue_on(here)), errc::queue_device_mismatch,
                     "queue", expected, found);
      const sycl::queue own_context(sycl::context(devices[here]), devices[here]);
      EXPECT_REFUSAL(to_dlpack_tensor(view, own_context), errc::queue_device_mismatch, "queue",
                     expected, found);
      EXPECT_REFUSAL(to_dlpack_tensor(view, queue_on(here).get_context()),
                     errc::pointer_unknown, "data", unknown_here, unknown);
    }
  }
}

TEST(TwoDevicesUsmExport, WhatIsNoUsmIsRefused) {
  std::array<float, 16> on_stack{};
  for (const std::size_t place : {std::size_t{0}, std::size_t{1}}) {
    expect_unknown_to_all(view_of(on_stack.data(), 16), queue_on(place));
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
    try {
      static_cast<void>(to_dlpack_tensor(view));
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_EQ(error.remedy(), "pass a queue, or the context, of the device that is meant");
    }
  }
}

/// As if the second platform's driver gave the first one's addresses to memory of its own.
void alias(native_platforms& platforms) {
  platforms.at(1).opencl = platforms.at(0).opencl;
  platforms.at(1).context = platforms.at(0).context;
  platforms.at(1).opencl.devices = {nullptr, platforms.at(0).opencl.devices.at(0)};
}

TEST(TwoDevicesUsmExport, AnAddressThatTwoPlatformsKnowNeedsAContextOrAQueue) {
  const sycl::queue queue = queue_on(0);
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    const changed_natives aliased(alias);
    EXPECT_REFUSAL(to_dlpack_tensor(view), errc::context_ambiguous, "data",
                   "an address that one platform knows",
                   "memory of device 0 (opencl) and device 1 (opencl) at it");
    EXPECT_EQ(id_of(to_dlpack_tensor(view, queue)), 0);
    EXPECT_REFUSAL(to_dlpack_tensor(empty_view(memory.as<float>(), 3, 0)),
                   errc::pointer_unknown, "data",
                   "the address of USM, or a context, for a view without elements",
                   "an address that several contexts know");
  }
}

TEST(TwoDevicesUsmExport, APlatformWhoseQueryFailsDisturbsNoOther) {
  using usm_dlpack::detail::device_table;
  const usm_memory memory(alloc::device, 64, queue_on(0));
  const auto view = view_of(memory.as<float>(), 16);
  const changed_natives first_fails([](native_platforms& platforms) {
    alias(platforms);
    platforms.at(0).opencl.query = nullptr;  // SYCL answers, and names a device without an id
  });
  auto& devices = const_cast<device_table&>(device_table::get()).devices;
  const auto kept = devices;
  const std::shared_ptr<void> restored(nullptr, [&](void*) { devices = kept; });
  devices[0].device = devices[1].device;
  EXPECT_REFUSAL(static_cast<void>(usm_dlpack::detail::find_allocation(
                     view.data_handle(), device_table::get().platforms[0])),
                 errc::device_without_id, "device",
                 "a device whose root is in sycl::device::get_devices()", "one that is not");
  EXPECT_EQ(id_of(to_dlpack_tensor(view)), 1);
}

TEST(ThreeDevicesUsmExport, MemoryOfOneOfTwoOtherDevicesIsRefusedByTheIdsOfBoth) {
  const usm_memory memory(alloc::device, 64, queue_on(0));
  const changed_natives aliased(alias);
  const auto view = view_of(memory.as<float>(), 16);
  EXPECT_REFUSAL(to_dlpack_tensor(view, queue_on(2)), errc::queue_device_mismatch, "queue",
                 "a queue on device 0 or 1, where the memory is", "one on device 2");
  const auto named = to_dlpack_tensor(view, DLDevice{kDLOneAPI, 2});
  EXPECT_REFUSAL(usm_dlpack::validate(named.get()), errc::device_mismatch, "device.device_id",
                 "0 or 1 (the root device of the memory)", "2");
}

TEST(UsmExport, TheRemedyForMemoryOfTheDefaultContextNamesItOnOpencl) {
  const usm_memory memory(alloc::device, 64, queue_on(0));
  const sycl::device device = queue_on(0).get_device();
  const sycl::context other(device);
  const auto view = view_of(memory.as<float>(), 16);
  const auto expect_remedy = [&](const auto& place) {
    try {
      static_cast<void>(to_dlpack_tensor(view, place));
      ADD_FAILURE() << "expected a refusal";
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_EQ(error.code(), errc::pointer_unknown);
      EXPECT_EQ(error.remedy(),
                "pass the context that it is of, the default one of its platform, or a queue "
                "made from a root device alone");
    }
  };
  expect_remedy(other);
  expect_remedy(sycl::queue(other, device));
}

// --- Several root devices on one platform
// -----------------------------------------------------

TEST(TwoDevicesUsmExport, TheIdIsThatOfTheTrueDeviceAndTheQueueMustBeOnIt) {
  const changed_natives moved(move_to_id_1);
  const sycl::queue queue = queue_on(0);
  for (const alloc kind : {alloc::device, alloc::shared}) {
    const usm_memory memory(kind, 64, queue);
    const auto view = view_of(memory.as<float>(), 16);
    EXPECT_EQ(id_of(to_dlpack_tensor(view)), 1);
    EXPECT_EQ(id_of(to_dlpack_tensor(view, queue.get_context())), 1);
    EXPECT_REFUSAL(to_dlpack_tensor(view, queue), errc::queue_device_mismatch, "queue",
                   "a queue on device 1, where the memory is", "one on device 0");
  }
}

TEST(TwoDevicesUsmExport, AnEmptyViewIsOfTheQueuesDeviceWhereverItPoints) {
  const changed_natives moved(move_to_id_1);
  const sycl::queue queue = queue_on(0);
  const usm_memory memory(alloc::device, 64, queue);
  const empty_view view(memory.as<float>(), 3, 0);
  expect_empty(to_dlpack_tensor(view, queue), 0);
  usm_dlpack::check_queue(queue, view);
}

TEST(UsmExport, AQueueFitsViewsOfItsDeviceAndContextOnOpencl) {
  const sycl::queue queue = queue_on(0);
  const usm_memory device(alloc::device, 64, queue);
  const usm_memory host(alloc::host, 64, queue);
  const auto view = view_of(device.as<float>(), 16);
  usm_dlpack::check_queue(queue);
  usm_dlpack::check_queue(queue, view, view_of(host.as<double>(), 8));
  const sycl::queue foreign(sycl::context(queue.get_device()), queue.get_device());
  EXPECT_REFUSAL(usm_dlpack::check_queue(foreign), errc::context_not_default, "queue",
                 "one of the default context of its platform, as the views' memory is",
                 "one of another context");
  EXPECT_REFUSAL(usm_dlpack::check_queue(foreign, view), errc::context_not_default, "queue",
                 "one of the default context of its platform, as the views' memory is",
                 "one of another context");
  const usm_memory away(alloc::device, 64, foreign);
  EXPECT_REFUSAL(usm_dlpack::check_queue(queue, view, view_of(away.as<float>(), 16)),
                 errc::pointer_unknown, "data", unknown_here, unknown);
}

TEST(TwoDevicesUsmExport, AQueueDoesNotFitViewsOfAnotherDevice) {
  const usm_memory memory(alloc::shared, 64, queue_on(1));
  const auto view = view_of(memory.as<float>(), 16);
  usm_dlpack::check_queue(queue_on(1), view);
  EXPECT_REFUSAL(usm_dlpack::check_queue(queue_on(0), view), errc::queue_device_mismatch,
                 "queue", "a queue on device 1, where the memory is", "one on device 0");
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

}  // namespace test_to_dlpack
