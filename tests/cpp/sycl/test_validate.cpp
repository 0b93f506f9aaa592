// SPDX-License-Identifier: Apache-2.0
//
// sycl/validate.hpp: what is told of proved memory, and the rules about device, pointer, kind
// and bounds. test_order_of_checks.cpp breaks each rule alone, and any two.
#include "usm_memory.hpp"

namespace test_validate {

using namespace usm_dlpack_test;

constexpr accepted<alloc> all_kinds;
static_assert(all_kinds.contains(alloc::host) && all_kinds.contains(alloc::device) &&
              all_kinds.contains(alloc::shared));
constexpr accepted<alloc> two_kinds{alloc::device, alloc::shared};
static_assert(!two_kinds.contains(alloc::host));
static_assert(two_kinds.contains(alloc::device) && two_kinds.contains(alloc::shared));

requirements only_kinds(accepted<alloc> kinds) {
  requirements wanted;
  wanted.usm_types = kinds;
  return wanted;
}

TEST(UsmAllocation, EveryFieldIsTrueOfTheMemoryUnpooled) {
  const sycl::queue queue = queue_on();
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    usm_tensor valid(kind, queue);
    valid.shape = {2, 3};
    valid.tensor.byte_offset = 4;
    const usm_allocation proved = validate(valid.tensor);
    EXPECT_EQ(proved.data(), valid.memory.at(4));
    EXPECT_EQ(proved.usm_type(), kind);
    EXPECT_EQ(proved.device_id(), 0);
    EXPECT_EQ(proved.root_device(), queue.get_device());
    EXPECT_EQ(proved.device(), queue.get_device());
    EXPECT_EQ(proved.context(), queue.get_context());
    EXPECT_EQ(proved.device_proved(),
              kind == alloc::host ? device_proof::none : device_proof::backend);
    expect_bounds(proved, whole_bounds(), valid.memory.at(), usm_tensor::size);
    EXPECT_EQ(proved.structure().first, as_number(valid.memory.at(4)));
    EXPECT_EQ(proved.structure().nbytes, (6U + 3U) * 4U);
    EXPECT_FALSE(proved.structure().empty);
    EXPECT_TRUE(proved.structure().unique);
  }
}

TEST(UsmAllocation, TheDeviceOfASubDevicesMemoryIsTheSubDeviceOnOpencl) {
  const std::vector<sycl::device> parts = sub_devices();
  const sycl::context context({parts.at(0), parts.at(1)});
  const auto native_context = opencl_context(context);
  const changed_table of_parts([&](device_table& table) {
    change_queries<detail::opencl_queries>(
        table.platforms.at(0), [&](auto& queries) { queries.native = native_context.get(); });
  });
  for (const alloc kind : {alloc::device, alloc::shared}) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    for (const std::size_t place : {0U, 1U}) {
      const usm_memory memory(kind, 64, parts[place], context);
      const auto view = view_of(memory.as<float>(), 16);
      const auto exported = to_dlpack_tensor(view);
      const usm_allocation proved = validate(exported.get());
      EXPECT_EQ(proved.usm_type(), kind);
      EXPECT_EQ(proved.device_id(), 0);
      EXPECT_EQ(proved.device_proved(), device_proof::backend);
      EXPECT_EQ(proved.root_device(), root_devices().at(0));
      // The runtime makes another object of the same device: only the natives are equal.
      EXPECT_EQ(opencl_device(proved.device()).get(), opencl_device(parts[place]).get());
      EXPECT_EQ(id_of(to_dlpack_tensor(view, native_context.get())), 0);
    }
  }
}

// --- The pointer ----------------------------------------------------------------------------

TEST(TwoDevicesUsmImport, TheIdMustBeThatOfTheMemorysRootDevice) {
  for (const bool silent : {false, true}) {
    const changed_table changed([&](device_table& table) {
      if (silent) silence_backends(table);
    });
    for (const int id : {0, 1}) {
      for (const alloc kind : usm_kinds) {
        SCOPED_TRACE(usm_dlpack::to_string(kind));
        usm_tensor valid(kind, queue_on(id), id);
        const usm_allocation proved = validate(valid.tensor);
        EXPECT_EQ(proved.device_id(), id);
        EXPECT_EQ(proved.device(), queue_on(id).get_device());
        EXPECT_EQ(proved.context(), queue_on(id).get_context());

        valid.tensor.device.device_id = 1 - id;
        EXPECT_REFUSAL(validate(valid.tensor), errc::device_mismatch, "device.device_id",
                       std::to_string(id) + " (the root device of the memory)",
                       std::to_string(1 - id));
        valid.shape = {0, 6};
        EXPECT_EQ(validate(valid.tensor).usm_type(), alloc::unknown);
      }
    }
  }
}

TEST(TwoDevicesUsmImport, OnlyHostMemoryIsOfEachRootDeviceOfItsPlatform) {
  const changed_table moved(move_to_id_1);
  EXPECT_EQ(validate(usm_tensor(alloc::host).tensor).device_id(), 0);
  for (const alloc kind : {alloc::device, alloc::shared}) {
    usm_tensor valid(kind);
    EXPECT_REFUSAL(validate(valid.tensor), errc::device_mismatch, "device.device_id",
                   "1 (the root device of the memory)", "0");
    valid.shape = {0, 6};
    EXPECT_EQ(validate(valid.tensor).usm_type(), alloc::unknown);
  }
}

// --- The bounds -----------------------------------------------------------------------------

/// A view whose first element is the first of one allocation and whose last is that of
/// another.
void stretch(usm_tensor& valid, const usm_memory& other) {
  const std::intptr_t distance = reinterpret_cast<std::intptr_t>(other.at()) -
                                 reinterpret_cast<std::intptr_t>(valid.memory.at());
  ASSERT_EQ(distance % 4, 0);
  valid.shape = {1, 2};
  valid.strides = {1, distance / 4};
}

TEST(UsmImport, BothEndsAreAskedWhereTheBackendTellsNoRangeOnOpencl) {
  const changed_table backends_are_silent(silence_backends);
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    usm_tensor valid(kind);
    const usm_allocation proved = validate(valid.tensor);
    EXPECT_EQ(proved.usm_type(), kind);
    EXPECT_EQ(proved.bounds_proved(), bounds_proof::both_ends);
    EXPECT_EQ(proved.device_proved(),
              kind == alloc::host ? device_proof::none : device_proof::only_device);
    EXPECT_EQ(proved.size(), 0U);
    valid.shape = {5, 6};
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape",
                   "a view within one allocation", "one of 120 bytes that reaches out of it");
    valid.shape = {4, 6};
    valid.strides = {-6, 1};
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape");
    const usm_memory other(kind == alloc::host ? alloc::device : alloc::host, 96, queue_on());
    stretch(valid, other);
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape");
  }
}

// Where an empty tensor points, one past the end of its array, another one may begin.
TEST(UsmImport, AnEmptyTensorIsTakenWithAnyPointerOnOpencl) {
  alignas(4) std::array<std::byte, 4> on_stack{};
  for (const alloc kind : usm_kinds) {
    SCOPED_TRACE(usm_dlpack::to_string(kind));
    usm_tensor valid(kind);
    valid.shape = {4, 0};
    const usm_allocation live = validate(valid.tensor, only_kinds({kind}));
    EXPECT_EQ(live.usm_type(), kind);
    EXPECT_EQ(live.data(), valid.memory.at());
    EXPECT_EQ(live.bounds_proved(), bounds_proof::none);

    for (std::byte* const pointer : {valid.memory.at(), on_stack.data(), valid.memory.at(96),
                                     static_cast<std::byte*>(nullptr)}) {
      valid.tensor.data = pointer;
      valid.tensor.byte_offset = pointer == nullptr ? 64 : 0;  // of no memory: ignored
      const alloc other = kind == alloc::host ? alloc::device : alloc::host;
      const usm_allocation proved = validate(valid.tensor, only_kinds({other}));
      EXPECT_EQ(proved.data(), pointer);
      EXPECT_EQ(proved.usm_type(), alloc::unknown);
      EXPECT_EQ(proved.device_proved(), device_proof::none);
      EXPECT_EQ(proved.device(), root_devices().at(0));
      expect_bounds(proved, bounds_proof::none, nullptr, 0);
      EXPECT_TRUE(proved.structure().empty);
    }
  }
}

TEST(UsmImport, ALegacyManagedTensorIsProvedAndItsDeleterLeftAlone) {
  const foreign_tensor<DLManagedTensor, usm_tensor> legacy;
  EXPECT_EQ(validate(legacy.managed).data(), legacy.valid.memory.at());
  EXPECT_REFUSAL(validate(legacy.managed, only_kinds({alloc::shared})),
                 errc::usm_type_not_accepted, "data");
  EXPECT_EQ(legacy.deleted, 0);
}

}  // namespace test_validate
