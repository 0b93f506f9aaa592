// SPDX-License-Identifier: Apache-2.0
//
// sycl/to_dlpack.hpp: the export protocol, with a context, with a queue, with the handles of
// OpenCL and with nothing. What no context knows is refused on the way back too.
#include "held_queues.hpp"

namespace test_to_dlpack {

using namespace usm_dlpack_test;

/// Expects each export to refuse memory that is unknown, and the import of a tensor of it.
template <class View>
void expect_unknown(const View& view, const sycl::queue& queue) {
  const auto expect_refused = [](const auto& act, const std::string& context) {
    EXPECT_REFUSAL(act(), errc::pointer_unknown, "data", "USM of " + context,
                   "an allocation unknown to it", "check that it is USM and not freed, and");
  };
  with_each_place(queue, [&](const auto&... place) {
    expect_refused(
        [&] { return to_dlpack_tensor(view, place...); },
        sizeof...(place) == 0 ? "the default context of a platform" : "the given context");
  });
  const auto named = to_dlpack_tensor(view, DLDevice{kDLOneAPI, 0});
  expect_refused([&] { return validate(named.get()); }, "the default context of device 0");
}

/// Expects each export to give the same tensor of the device `id`.
template <class View>
void expect_exported(const View& view, const sycl::queue& queue, std::int32_t id) {
  const auto wanted = to_dlpack_tensor(view, DLDevice{kDLOneAPI, id});
  with_each_place(queue, [&](const auto&... place) {
    const auto found = to_dlpack_tensor(view, place...);
    EXPECT_EQ(found.data(), wanted.data());
    EXPECT_EQ(found.device().device_type, kDLOneAPI);
    EXPECT_EQ(id_of(found), id);
    EXPECT_TRUE(same_data_type(found.dtype(), wanted.dtype()));
    EXPECT_EQ(found.shape(), wanted.shape());
    EXPECT_EQ(found.strides(), wanted.strides());
  });
}

TEST(UsmExport, DataIsTheFirstElementWhereverTheHandlePoints) {
  const sycl::queue queue = queue_on();
  const usm_memory memory(alloc::device, 96, queue);
  using extents = md::dextents<std::int64_t, 1>;
  const layout_relaxed::mapping<extents> backwards(extents(8), {-3}, 1024 + 23);
  const md::mdspan<const int, extents, layout_relaxed> view(memory.as<int>(-4096), backwards);
  EXPECT_EQ(to_dlpack_tensor(view, queue).data(), memory.at(92));
  expect_exported(view, queue, 0);
}

// --- What is refused ------------------------------------------------------------------------

TEST(UsmExport, MemoryOfAnotherContextThanTheDefaultOrTheGivenOneIsRefusedOnOpencl) {
  const sycl::device root = root_devices().at(0);
  const std::vector<sycl::device> parts = sub_devices();
  const std::pair<sycl::queue, std::string> queues[] = {
      {sycl::queue(sycl::context(root), root), "1 device(s)"},
      {sycl::queue(nested_sub_device()), "1 sub-device(s)"},
      {sycl::queue(sycl::context({parts.at(0), parts.at(1)}), parts.at(1)),
       "2 sub-device(s)"}};
  for (const auto& [queue, devices] : queues) {
    for (const alloc kind : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(kind));
      const usm_floats elsewhere(kind, queue);
      const usm_floats memory(kind);
      with_each_given(queue, [&, found = "another one, of " + devices](const auto&... given) {
        EXPECT_REFUSAL(to_dlpack_tensor(elsewhere.view, given...), errc::context_not_default,
                       "context",
                       "the default context of the platform \"" +
                           root.get_platform().get_info<sycl::info::platform::name>() + "\"",
                       found);
        EXPECT_REFUSAL(to_dlpack_tensor(memory.view, given...), errc::pointer_unknown, "data",
                       "USM of the given context", "an allocation unknown to it",
                       "the context that it is of");
        EXPECT_REFUSAL(to_dlpack_tensor(view_of<float>(nullptr, 0), given...),
                       errc::context_not_default, "context");
        EXPECT_REFUSAL(to_dlpack_tensor(view_of<float>(nullptr, 16), given...),
                       errc::invalid_tensor, "data");
      });
      expect_unknown(elsewhere.view, queue_on());
    }
  }
}

TEST(UsmExport, NullAndWhatIsNoUsmAreRefusedUnpooled) {
  const sycl::queue queue = queue_on();
  std::array<float, 16> on_stack{};
  const auto on_heap = std::make_unique<std::array<float, 16>>();
  expect_unknown(view_of(on_stack.data(), 16), queue);
  expect_unknown(view_of(on_heap->data(), 16), queue);
  with_each_place(queue, [](const auto&... place) {
    EXPECT_REFUSAL(to_dlpack_tensor(view_of<float>(nullptr, 16), place...),
                   errc::invalid_tensor, "data");
  });
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    for (int round = 0; round < 20; ++round) {  // what was known of an address is forgotten
      usm_floats memory(kind, queue);
      const auto exported = to_dlpack_tensor(memory.view, queue);
      EXPECT_EQ(validate(exported.get()).usm_type(), kind);
      expect_unknown(view_of(memory.as<float>(64), 1), queue);
      memory.free();
      expect_unknown(memory.view, queue);
    }
  }
}

// --- Backends that do not answer ------------------------------------------------------------

TEST(UsmExport, WhereTheBackendCannotBeAskedSyclIs) {
  const sycl::queue queue = queue_on();
  std::array<float, 4> on_stack{};
  const changed_table backends_are_silent(silence_backends);
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    expect_exported(usm_floats(kind, queue).view, queue, 0);
  }
  expect_unknown(view_of(on_stack.data(), 4), queue);
}

TEST(UsmExport, APlatformWithoutUsmOrWhoseQueryFailsKnowsNoPointerOnOpencl) {
  const sycl::queue queue = queue_on();
  const usm_floats memory(alloc::device, queue);
  {
    const changed_table failing([](device_table& table) {
      change_queries<detail::opencl_queries>(table.platforms.at(0), [](auto& queries) {
        queries.query = [](cl_context, const void*, cl_mem_info_intel, std::size_t, void*,
                           std::size_t*) { return CL_INVALID_VALUE; };
      });
    });
    expect_unknown(memory.view, queue);
  }
  const changed_table no_usm([](device_table& table) {
    change_queries<detail::opencl_queries>(table.platforms.at(0),
                                           [](auto& queries) { queries.query = nullptr; });
  });
  expect_unknown(memory.view, queue);
}

TEST(UsmExport, NeitherExportNorImportWaitsForWorkOnTheQueue) {
  const sycl::queue queue = queue_on();
  const usm_floats memory(alloc::device, queue);
  gate closed(queue);
  const std::future<void> call = std::async(std::launch::async, [&] {
    with_each_place(queue, [&](const auto&... place) {
      const auto exported = to_dlpack_tensor(memory.view, place...);
      static_cast<void>(validate(exported.get()));
    });
    check_queue(queue, memory.view);
  });
  expect_waiting(false, closed, call);
}

using empty_view = md::mdspan<float, md::dextents<std::int64_t, 2>>;

void expect_empty(const dlpack_tensor<2>& exported, std::int32_t id) {
  EXPECT_EQ(exported.data(), nullptr);
  EXPECT_EQ(exported.device().device_type, kDLOneAPI);
  EXPECT_EQ(id_of(exported), id);
  EXPECT_EQ(exported.shape(), (std::array<std::int64_t, 2>{3, 0}));
  EXPECT_EQ(exported.strides(), (std::array<std::int64_t, 2>{0, 1}));
}

TEST(UsmExport, EmptyViewsOfAnyPointerAreExportedWithNullData) {
  const sycl::queue queue = queue_on();
  std::array<float, 1> on_stack{};
  const usm_memory memory(alloc::device, 64, queue);
  for (float* const pointer :
       {static_cast<float*>(nullptr), memory.as<float>(), on_stack.data()}) {
    with_each_place(queue, [&](const auto&... place) {
      expect_empty(to_dlpack_tensor(empty_view(pointer, 3, 0), place...), 0);
    });
  }
}

// --- Several root devices -------------------------------------------------------------------

TEST(TwoDevicesUsmExport, EachDeviceIsFoundWithContextWithQueueAndWithNeither) {
  for (const int id : {0, 1}) {
    const sycl::queue queue = queue_on(id);
    for (const alloc kind : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(kind));
      const usm_floats memory(kind, queue);
      expect_exported(memory.view, queue, id);
      expect_empty(to_dlpack_tensor(empty_view(memory.as<float>(), 3, 0)), id);
    }
  }
}

TEST(TwoDevicesUsmExport, AQueueOnAnotherRootDeviceThanTheMemoryIsRefused) {
  for (const int there : {0, 1}) {
    const int here = 1 - there;
    const sycl::queue queue = queue_on(here);
    const sycl::queue own_context(sycl::context(queue.get_device()), queue.get_device());
    for (const alloc kind : usm_kinds) {
      SCOPED_TRACE(usm_dlpack::to_string(kind));
      const usm_floats memory(kind, queue_on(there));
      const auto expect_refused = [&](const auto& act) {
        EXPECT_REFUSAL(act(), errc::device_mismatch, "queue",
                       "a queue on device " + std::to_string(there) + ", where the memory is",
                       "one on device " + std::to_string(here));
      };
      expect_refused([&] { return to_dlpack_tensor(memory.view, queue); });
      expect_refused([&] { return to_dlpack_tensor(memory.view, own_context); });
      expect_refused([&] { check_queue(queue, memory.view); });
      EXPECT_REFUSAL(to_dlpack_tensor(memory.view, queue.get_context()), errc::pointer_unknown,
                     "data");
    }
  }
}

TEST(TwoDevicesUsmExport, EmptyViewsWithoutMemoryNeedAContextOrAQueue) {
  std::array<float, 1> on_stack{};
  for (float* const pointer : {static_cast<float*>(nullptr), on_stack.data()}) {
    const empty_view view(pointer, 3, 0);
    for (const int id : {0, 1}) {
      const sycl::queue queue = queue_on(id);
      with_each_given(queue, [&](const auto&... given) {
        expect_empty(to_dlpack_tensor(view, given...), id);
      });
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
  second.queries = first.queries;
  second.context = first.context;
  change_queries<detail::opencl_queries>(
      second, [](auto& queries) { queries.devices = {nullptr, queries.devices.at(0)}; });
}

TEST(TwoDevicesUsmExport, AnAddressThatTwoPlatformsKnowNeedsAContextOrAQueue) {
  const sycl::queue queue = queue_on(0);
  const usm_floats memory(alloc::device, queue);
  const changed_table aliased(alias);
  EXPECT_REFUSAL(to_dlpack_tensor(memory.view), errc::context_not_default, "data",
                 "an address that one platform knows",
                 "memory of device 0 (opencl) and device 1 (opencl) at it");
  EXPECT_EQ(id_of(to_dlpack_tensor(memory.view, queue)), 0);
  EXPECT_REFUSAL(to_dlpack_tensor(empty_view(memory.as<float>(), 3, 0)), errc::pointer_unknown,
                 "data", "the address of USM, or a context, for a view without elements",
                 "an address that several contexts know");
}

TEST(TwoDevicesUsmExport, APlatformWhoseQueryFailsDisturbsNoOther) {
  const usm_floats memory;
  const changed_table first_fails([](device_table& table) {
    alias(table);
    auto& first = table.platforms.at(0);  // SYCL names a device that has no id now
    first.queries = std::make_shared<detail::backend_queries>(*first.context);
    table.devices[0].device = table.devices[1].device;
  });
  EXPECT_REFUSAL(
      detail::find_allocation(memory.view.data_handle(), device_table::get().platforms[0]),
      errc::device_without_id, "device");
  EXPECT_EQ(id_of(to_dlpack_tensor(memory.view)), 1);
}

TEST(ThreeDevicesUsmExport, MemoryOfOneOfTwoOtherDevicesIsRefusedByTheIdsOfBoth) {
  const usm_floats memory;
  const changed_table aliased(alias);
  EXPECT_REFUSAL(to_dlpack_tensor(memory.view, queue_on(2)), errc::device_mismatch, "queue",
                 "a queue on device 0 or 1, where the memory is", "one on device 2");
  const auto named = to_dlpack_tensor(memory.view, DLDevice{kDLOneAPI, 2});
  EXPECT_REFUSAL(validate(named.get()), errc::device_mismatch, "device.device_id",
                 "0 or 1 (the root device of the memory)", "2");
}

// --- Several root devices on one platform ---------------------------------------------------

TEST(TwoDevicesUsmExport, TheIdIsThatOfTheTrueDeviceAndTheQueueMustBeOnIt) {
  const changed_table moved(move_to_id_1);
  const sycl::queue queue = queue_on(0);
  for (const alloc kind : {alloc::device, alloc::shared}) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    const usm_floats memory(kind, queue);
    EXPECT_EQ(id_of(to_dlpack_tensor(memory.view)), 1);
    EXPECT_EQ(id_of(to_dlpack_tensor(memory.view, queue.get_context())), 1);
    EXPECT_REFUSAL(to_dlpack_tensor(memory.view, queue), errc::device_mismatch, "queue",
                   "a queue on device 1, where the memory is", "one on device 0");
    const empty_view empty(memory.as<float>(), 3, 0);  // of the queue's device
    expect_empty(to_dlpack_tensor(empty, queue), 0);
    check_queue(queue, empty);
  }
}

TEST(UsmExport, AQueueFitsViewsOfItsDeviceAndContextOnOpencl) {
  const sycl::queue queue = queue_on(0);
  const usm_floats device(alloc::device, queue);
  const usm_memory host(alloc::host, 64, queue);
  check_queue(queue);
  check_queue(queue, device.view, view_of(host.as<double>(), 8));
  const sycl::queue foreign(sycl::context(queue.get_device()), queue.get_device());
  EXPECT_REFUSAL(check_queue(foreign), errc::context_not_default, "queue");
  EXPECT_REFUSAL(check_queue(foreign, device.view), errc::context_not_default, "queue");
  const usm_floats away(alloc::device, foreign);
  EXPECT_REFUSAL(check_queue(queue, device.view, away.view), errc::pointer_unknown, "data",
                 "USM of the given context", "an allocation unknown to it, for view 2");
}

}  // namespace test_to_dlpack
