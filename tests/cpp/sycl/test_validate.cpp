// SPDX-License-Identifier: Apache-2.0
//
// sycl/validate.hpp: the import protocol, each rule by name, their order, and what is taken.
#include <usm_dlpack/sycl/validate.hpp>

#include <refusal.hpp>

#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace test_validate {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::bounds_proof;
using usm_dlpack::device_proof;
using usm_dlpack::errc;
using usm_dlpack::requirements;
using usm_dlpack::usm_allocation;
using usm_dlpack::validate;

const char* const unknown_on_0 = "USM of the default context of device 0";
const char* const unknown = "an allocation unknown to it";
const char* const within_96 = "a view within the 96 bytes of its allocation";

std::string bytes_to(std::int64_t first, std::int64_t last) {
  return "one of bytes " + std::to_string(first) + " to " + std::to_string(last);
}

std::string reaches_out(std::uint64_t nbytes) {
  return "one of " + std::to_string(nbytes) + " bytes that reaches out of it";
}

requirements only_kinds(usm_dlpack::accepted<alloc> kinds) {
  requirements wanted;
  wanted.usm_types = kinds;
  return wanted;
}

TEST(UsmImport, AValidTensorOfEachKindIsTaken) {
  for (const alloc kind : usm_kinds) {
    const usm_tensor valid(kind);
    EXPECT_EQ(validate(valid.tensor).usm_type(), kind);
  }
}

// --- The device type, the structure, the overlap --------------------------------------------

TEST(UsmImport, AnyOtherDeviceTypeIsRefusedByName) {
  const std::pair<int, const char*> others[] = {
      {1, "kDLCPU (1)"},    {2, "kDLCUDA (2)"},   {3, "kDLCUDAHost (3)"}, {4, "kDLOpenCL (4)"},
      {7, "kDLVulkan (7)"}, {10, "kDLROCM (10)"}, {12, "kDLExtDev (12)"}, {18, "kDLTrn (18)"},
      {0, "unknown (0)"},   {99, "unknown (99)"}, {-1, "unknown (-1)"},
  };
  usm_tensor valid;
  for (const auto& [type, name] : others) {
    valid.tensor.device.device_type = static_cast<DLDeviceType>(type);
    EXPECT_REFUSAL(validate(valid.tensor), errc::device_type_unsupported, "device.device_type",
                   "kDLOneAPI (14)", name);
  }
}

TEST(UsmImport, WhatIsNotWellFormedIsRefused) {
  usm_tensor valid;
  valid.shape[1] = -6;
  EXPECT_REFUSAL(validate(valid.tensor), errc::shape_negative, "shape[1]",
                 "an extent of 0 or more elements", "-6");
}

TEST(UsmImport, MisalignedElementsAreRefused) {
  usm_tensor valid;
  valid.shape = {2, 3};
  valid.tensor.byte_offset = 2;
  EXPECT_REFUSAL(validate(valid.tensor), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 4 bytes", "2 bytes past such an address");
}

TEST(UsmImport, OverlappingElementsAreRefusedIfAsked) {
  usm_tensor valid;
  valid.strides = {0, 1};
  EXPECT_FALSE(validate(valid.tensor).structure().unique);
  requirements wanted;
  wanted.unique = true;
  EXPECT_REFUSAL(validate(valid.tensor, wanted), errc::overlapping, "strides",
                 "elements that do not overlap", "strides that do not prove it");
  valid.strides = {1, 4};
  EXPECT_TRUE(validate(valid.tensor, wanted).structure().unique);
}

TEST(UsmImport, DtypeNdimAndDeviceAreRefusedIfOthersAreAskedFor) {
  const usm_tensor valid;
  requirements wanted;
  wanted.dtype = DLDataType{kDLFloat, 32, 1};
  wanted.ndim = 2;
  wanted.device_id = 0;
  EXPECT_EQ(validate(valid.tensor, wanted).device_id(), 0);
  wanted.dtype = DLDataType{kDLFloat, 32, 2};
  EXPECT_REFUSAL(validate(valid.tensor, wanted), errc::dtype_mismatch, "dtype",
                 "float32x2 (code 2, bits 32, lanes 2), as asked for",
                 "float32 (code 2, bits 32, lanes 1)");
  wanted.dtype.reset();
  wanted.ndim = 3;
  EXPECT_REFUSAL(validate(valid.tensor, wanted), errc::rank_mismatch, "ndim",
                 "3 dimensions, as asked for", "2");
  wanted.ndim.reset();
  wanted.device_id = 1;
  EXPECT_REFUSAL(validate(valid.tensor, wanted), errc::device_not_accepted, "device.device_id",
                 "1, as asked for", "0");
}

TEST(UsmImport, EachOfDtypeNdimAndNoOverlapIsAskedForAlone) {
  usm_tensor valid;
  valid.strides = {0, 1};
  requirements dtype;
  dtype.dtype = DLDataType{kDLFloat, 32, 1};
  EXPECT_FALSE(validate(valid.tensor, dtype).structure().unique);
  dtype.dtype = DLDataType{kDLInt, 32, 1};
  EXPECT_REFUSAL(validate(valid.tensor, dtype), errc::dtype_mismatch, "dtype",
                 "int32 (code 0, bits 32, lanes 1), as asked for",
                 "float32 (code 2, bits 32, lanes 1)");
  requirements ndim;
  ndim.ndim = 2;
  EXPECT_FALSE(validate(valid.tensor, ndim).structure().unique);
  ndim.ndim = 1;
  EXPECT_REFUSAL(validate(valid.tensor, ndim), errc::rank_mismatch, "ndim",
                 "1 dimensions, as asked for", "2");
  requirements unique;
  unique.unique = true;
  EXPECT_REFUSAL(validate(valid.tensor, unique), errc::overlapping, "strides",
                 "elements that do not overlap", "strides that do not prove it");
}

// --- The device -----------------------------------------------------------------------------

TEST(UsmImport, AnIdThatNamesNoRootDeviceIsRefused) {
  usm_tensor valid;
  for (const std::int32_t id : {1, 2, std::numeric_limits<std::int32_t>::max(), -1,
                                std::numeric_limits<std::int32_t>::min()}) {
    valid.tensor.device.device_id = id;
    EXPECT_REFUSAL(validate(valid.tensor), errc::device_id_out_of_range, "device.device_id",
                   "from 0 to 0 (root devices in this process)", std::to_string(id));
  }
}

TEST(UsmImport, ABackendThatIsNotAcceptedIsRefused) {
  const usm_tensor valid;
  requirements wanted;
  const sycl::backend own = root_devices().at(0).get_backend();
  wanted.backends = {sycl::backend::ext_oneapi_hip, sycl::backend::ext_oneapi_cuda};
  EXPECT_REFUSAL(validate(valid.tensor, wanted), errc::backend_not_accepted,
                 "device.device_id", "a device of the backend cuda or hip",
                 std::string("device 0 of the backend ") + usm_dlpack::to_string(own));
  wanted.backends = {own};
  EXPECT_EQ(validate(valid.tensor, wanted).device_id(), 0);
}

// --- The pointer ----------------------------------------------------------------------------

void expect_unknown(DLTensor tensor, void* data) {
  tensor.data = data;
  EXPECT_REFUSAL(validate(tensor), errc::pointer_unknown, "data", unknown_on_0, unknown);
}

TEST(UsmImport, WhatIsNoUsmIsRefusedUnpooled) {
  usm_tensor valid;
  alignas(4) std::array<std::byte, 96> on_stack{};
  const auto on_heap = std::make_unique<std::array<float, 24>>();
  expect_unknown(valid.tensor, on_stack.data());
  expect_unknown(valid.tensor, on_heap->data());
  expect_unknown(valid.tensor, reinterpret_cast<void*>(std::uintptr_t{4096}));
  expect_unknown(valid.tensor, valid.memory.at(96));
  valid.memory.free();
  expect_unknown(valid.tensor, valid.memory.at());
}

TEST(UsmImport, UsmOfAContextThatIsNotTheDefaultIsRefusedOnOpencl) {
  const usm_tensor valid;
  const sycl::device device = root_devices().at(0);
  const sycl::device part = sub_devices().at(0);
  for (const alloc kind : usm_kinds) {
    const usm_memory elsewhere(kind, 96, device, sycl::context(device));
    expect_unknown(valid.tensor, elsewhere.at());
    const usm_memory of_a_part(kind, 96, sycl::queue(part));
    expect_unknown(valid.tensor, of_a_part.at());
  }
}

TEST(UsmImport, ByteOffsetIsAddedBeforeThePointerIsAskedUnpooled) {
  usm_tensor valid;
  valid.tensor.byte_offset = 96;
  EXPECT_REFUSAL(validate(valid.tensor), errc::pointer_unknown, "data", unknown_on_0, unknown);
  valid.tensor.data = valid.memory.at(-4096);
  valid.tensor.byte_offset = 4096;
  EXPECT_EQ(validate(valid.tensor).data(), valid.memory.at());
}

TEST(UsmImport, AUsmKindThatIsNotAcceptedIsRefused) {
  for (const alloc kind : usm_kinds) {
    const usm_tensor valid(kind);
    EXPECT_EQ(validate(valid.tensor, only_kinds({kind})).usm_type(), kind);
    const alloc other = kind == alloc::host ? alloc::device : alloc::host;
    EXPECT_REFUSAL(validate(valid.tensor, only_kinds({other})), errc::usm_type_not_accepted,
                   "data", std::string(usm_dlpack::to_string(other)) + " USM",
                   std::string(usm_dlpack::to_string(kind)) + " USM");
  }
}

TEST(UsmImport, ARefusalNamesAllThatIsAccepted) {
  const usm_tensor valid;
  const auto refuse_all_but = [&](usm_dlpack::accepted<alloc> kinds, const char* expected) {
    EXPECT_REFUSAL(validate(valid.tensor, only_kinds(kinds)), errc::usm_type_not_accepted,
                   "data", expected, "device USM");
  };
  refuse_all_but({alloc::shared, alloc::host}, "host or shared USM");
  refuse_all_but(std::initializer_list<alloc>{}, "no USM");
}

TEST(TwoDevicesUsmImport, TheIdOfAnotherRootDeviceThanTheMemorysIsRefused) {
  for (const std::int32_t true_id : {0, 1}) {
    for (const alloc kind : usm_kinds) {
      usm_tensor valid(kind, queue_on(static_cast<std::size_t>(true_id)), true_id);
      EXPECT_EQ(validate(valid.tensor).device_id(), true_id);
      valid.tensor.device.device_id = 1 - true_id;
      EXPECT_REFUSAL(validate(valid.tensor), errc::device_mismatch, "device.device_id",
                     std::to_string(true_id) + " (the root device of the memory)",
                     std::to_string(1 - true_id));
    }
  }
}

TEST(TwoDevicesUsmImport, TheMemoryOfAnotherRootDeviceOfThePlatformIsRefused) {
  const changed_natives moved(move_to_id_1);
  for (const alloc kind : {alloc::device, alloc::shared}) {
    const usm_tensor valid(kind);
    EXPECT_REFUSAL(validate(valid.tensor), errc::device_mismatch, "device.device_id",
                   "1 (the root device of the memory)", "0");
    EXPECT_REFUSAL(validate(valid.tensor, only_kinds({alloc::host})),
                   errc::usm_type_not_accepted, "data", "host USM",
                   std::string(usm_dlpack::to_string(kind)) + " USM");
  }
  const usm_tensor on_host(alloc::host);
  EXPECT_EQ(validate(on_host.tensor).device_id(), 0);
}

TEST(TwoDevicesUsmImport, WhatIsNoUsmIsRefused) {
  usm_tensor valid;
  valid.memory.free();
  for (const std::int32_t id : {0, 1}) {
    valid.tensor.device.device_id = id;
    EXPECT_REFUSAL(validate(valid.tensor), errc::pointer_unknown, "data",
                   "USM of the default context of device " + std::to_string(id), unknown);
  }
}

TEST(TwoDevicesUsmImport, AnIdThatNamesNoRootDeviceIsRefused) {
  usm_tensor valid;
  valid.tensor.device.device_id = 2;
  EXPECT_REFUSAL(validate(valid.tensor), errc::device_id_out_of_range, "device.device_id",
                 "from 0 to 1 (root devices in this process)", "2");
}

// --- The bounds -----------------------------------------------------------------------------

TEST(UsmImport, AViewOfEveryByteOfTheAllocationIsTakenUnpooled) {
  usm_tensor valid;
  EXPECT_EQ(validate(valid.tensor).bounds_proved(), bounds_proof::allocation);
  valid.strides = {1, 4};
  EXPECT_EQ(validate(valid.tensor).structure().nbytes, 96U);
  valid.strides = {-6, 1};
  valid.tensor.byte_offset = 18 * 4;
  EXPECT_EQ(validate(valid.tensor).structure().nbytes, 96U);
  valid.tensor.strides = nullptr;
  valid.tensor.byte_offset = 0;
  EXPECT_EQ(validate(valid.tensor).structure().nbytes, 96U);
}

TEST(UsmImport, AViewWithinTheAllocationIsTaken) {
  usm_tensor valid;
  valid.shape = {1, 1};
  for (const std::uint64_t offset : {0U, 4U, 48U, 92U}) {
    valid.tensor.byte_offset = offset;
    EXPECT_EQ(validate(valid.tensor).structure().nbytes, 4U);
  }
}

TEST(UsmImport, AShapeThatReachesOutOfTheAllocationIsRefusedUnpooled) {
  usm_tensor valid;
  valid.shape = {5, 6};
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(0, 119));
  valid.tensor.strides = nullptr;
  valid.shape = {25, 1};
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(0, 99));
}

TEST(UsmImport, AStrideThatReachesOutOfTheAllocationIsRefusedUnpooled) {
  usm_tensor valid;
  valid.strides = {7, 1};
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(0, 107));
}

TEST(UsmImport, ANegativeStrideThatReachesOutOfTheAllocationIsRefusedUnpooled) {
  usm_tensor valid;
  valid.strides = {-6, 1};
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(-72, 23));
  valid.tensor.byte_offset = 17 * 4;
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(-4, 91));
}

TEST(UsmImport, AByteOffsetThatReachesOutOfTheAllocationIsRefusedUnpooled) {
  usm_tensor valid;
  valid.tensor.byte_offset = 4;
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(4, 99));
}

TEST(UsmImport, LanesCountInTheBoundsUnpooled) {
  usm_tensor valid;
  valid.tensor.dtype.lanes = 4;
  valid.shape = {2, 3};
  valid.strides = {3, 1};
  EXPECT_EQ(validate(valid.tensor).structure().nbytes, 96U);
  valid.shape = {2, 4};
  EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                 bytes_to(0, 111));
}

/// A view whose first element is the first of one allocation and whose last is that of
/// another.
void stretch(usm_tensor& valid, const usm_memory& other) {
  const std::intptr_t distance = reinterpret_cast<std::intptr_t>(other.at()) -
                                 reinterpret_cast<std::intptr_t>(valid.memory.at());
  ASSERT_EQ(distance % 4, 0);
  valid.shape = {1, 2};
  valid.strides = {1, distance / 4};
}

TEST(UsmImport, AViewFromOneAllocationIntoAnotherIsRefusedOnOpencl) {
  for (const alloc kind : usm_kinds) {
    usm_tensor valid;
    const usm_memory other(kind, 96, queue_on());
    stretch(valid, other);
    const std::int64_t distance = 4 * valid.strides[1];
    const std::int64_t first = distance < 0 ? distance : 0;
    const std::int64_t last = distance < 0 ? 3 : distance + 3;
    ASSERT_GE(last - first, 99);
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", within_96,
                   bytes_to(first, last));
  }
}

TEST(UsmImport, BothEndsAreAskedWhereTheBackendTellsNoRangeOnOpencl) {
  const changed_natives backends_are_silent(silence_backends);
  for (const alloc kind : usm_kinds) {
    usm_tensor valid(kind);
    const usm_allocation proved = validate(valid.tensor);
    EXPECT_EQ(proved.bounds_proved(), bounds_proof::both_ends);
    EXPECT_EQ(proved.device_proved(),
              kind == alloc::host ? device_proof::none : device_proof::only_device);
    EXPECT_EQ(proved.size(), 0U);
    const char* const expected = "a view within one allocation";
    valid.shape = {5, 6};
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", expected,
                   reaches_out(120));
    valid.shape = {4, 6};
    valid.strides = {-6, 1};
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", expected,
                   reaches_out(96));
    const usm_memory other(kind == alloc::host ? alloc::device : alloc::host, 96, queue_on());
    stretch(valid, other);
    EXPECT_REFUSAL(validate(valid.tensor), errc::out_of_bounds, "shape", expected,
                   reaches_out(usm_dlpack::check_structure(valid.tensor).nbytes));
  }
}

// --- Empty tensors --------------------------------------------------------------------------

TEST(UsmImport, AnEmptyTensorIsTakenWithAnyPointerOnOpencl) {
  alignas(4) std::array<std::byte, 4> on_stack{};
  for (const alloc kind : usm_kinds) {
    usm_tensor valid(kind);
    valid.shape = {4, 0};
    EXPECT_EQ(validate(valid.tensor).usm_type(), kind);
    const usm_allocation live = validate(valid.tensor);
    EXPECT_EQ(live.data(), valid.memory.at());
    EXPECT_EQ(live.bounds_proved(), bounds_proof::none);
    const sycl::device device = root_devices().at(0);
    const usm_memory elsewhere(kind, 96, device, sycl::context(device));
    for (void* const pointer :
         {static_cast<void*>(nullptr), static_cast<void*>(on_stack.data()),
          static_cast<void*>(valid.memory.at(96)), static_cast<void*>(elsewhere.at())}) {
      valid.tensor.data = pointer;
      const usm_allocation proved = validate(valid.tensor);
      EXPECT_EQ(proved.data(), pointer);
      EXPECT_EQ(proved.usm_type(), alloc::unknown);
      EXPECT_TRUE(proved.structure().empty);
    }
  }
}

TEST(UsmImport, AnEmptyTensorWithoutMemoryIgnoresByteOffset) {
  usm_tensor valid;
  valid.shape = {0, 6};
  valid.tensor.data = nullptr;
  valid.tensor.byte_offset = 64;
  EXPECT_EQ(validate(valid.tensor).data(), nullptr);
}

TEST(UsmImport, TheDeviceOfAnEmptyTensorIsChecked) {
  usm_tensor valid;
  valid.shape = {0, 6};
  valid.tensor.device.device_id = 1;
  EXPECT_REFUSAL(validate(valid.tensor), errc::device_id_out_of_range, "device.device_id",
                 "from 0 to 0 (root devices in this process)", "1");
}

// Where an empty tensor points, one past the end of its array, another one may begin.
TEST(UsmImport, TheKindOfAnEmptyTensorIsToldIfItIsOneThatIsAskedFor) {
  usm_tensor valid(alloc::shared);
  valid.shape = {0, 6};
  EXPECT_EQ(validate(valid.tensor).usm_type(), alloc::shared);
  const usm_allocation proved = validate(valid.tensor, only_kinds({alloc::device}));
  EXPECT_EQ(proved.usm_type(), alloc::unknown);
  EXPECT_EQ(proved.device_proved(), device_proof::none);
  EXPECT_EQ(proved.device_id(), 0);
  valid.tensor.data = nullptr;
  EXPECT_EQ(validate(valid.tensor, only_kinds({alloc::device})).usm_type(), alloc::unknown);
}

TEST(TwoDevicesUsmImport, AnEmptyTensorIsTakenWithThePointerOfAnotherDeviceOfItsPlatform) {
  const changed_natives moved(move_to_id_1);
  usm_tensor valid;
  valid.shape = {0, 6};
  EXPECT_EQ(validate(valid.tensor).usm_type(), alloc::unknown);
  valid.shape = {1, 6};
  EXPECT_REFUSAL(validate(valid.tensor), errc::device_mismatch, "device.device_id",
                 "1 (the root device of the memory)", "0");
}

TEST(TwoDevicesUsmImport, AnEmptyTensorIsTakenWithThePointerOfAnotherDevice) {
  usm_tensor valid(alloc::device, queue_on(1), 0);
  valid.shape = {0, 6};
  const usm_allocation proved = validate(valid.tensor);
  EXPECT_EQ(proved.device_id(), 0);
  EXPECT_EQ(proved.usm_type(), alloc::unknown);
}

// --- Managed tensors ------------------------------------------------------------------------

TEST(UsmImport, AManagedTensorIsTakenOfAnyMinorVersionAndItsDeleterLeftAlone) {
  usm_managed_tensor valid;
  for (const std::uint32_t minor : {0U, 3U, 99U}) {
    valid.managed.version.minor = minor;
    EXPECT_EQ(validate(valid.managed).usm_type(), alloc::device);
  }
  valid.managed.deleter = nullptr;
  EXPECT_EQ(validate(valid.managed).usm_type(), alloc::device);
  EXPECT_EQ(valid.deleted, 0);
}

TEST(UsmImport, AnotherMajorVersionIsRefusedAndTheDeleterLeftAlone) {
  usm_managed_tensor valid;
  for (const std::uint32_t major : {0U, 2U}) {
    valid.managed.version.major = major;
    valid.managed.flags = ~std::uint64_t{0};
    EXPECT_REFUSAL(validate(valid.managed), errc::version_unsupported, "version.major", "1",
                   std::to_string(major));
  }
  EXPECT_EQ(valid.deleted, 0);
}

TEST(UsmImport, UnknownFlagsAreRefused) {
  usm_managed_tensor valid;
  valid.managed.flags = 1U | 8U | 64U;
  EXPECT_REFUSAL(validate(valid.managed), errc::flags_unknown, "flags",
                 "bits of DLPACK_FLAG_BITMASK_* only", "72");
}

TEST(UsmImport, ReadOnlyMemoryIsRefusedIfItIsToBeWritten) {
  usm_managed_tensor valid;
  requirements wanted;
  wanted.writable = true;
  EXPECT_EQ(validate(valid.managed, wanted).usm_type(), alloc::device);
  EXPECT_EQ(validate(valid.managed.dl_tensor, wanted).usm_type(), alloc::device);
  valid.managed.flags = usm_dlpack::flag::read_only | usm_dlpack::flag::is_copied;
  EXPECT_EQ(validate(valid.managed).usm_type(), alloc::device);
  EXPECT_REFUSAL(validate(valid.managed, wanted), errc::read_only, "flags", "writable memory",
                 "read-only memory");
}

TEST(UsmImport, PaddedElementsSpanAByteEachAndPackedOnesLessUnpooled) {
  usm_managed_tensor valid;
  valid.managed.dl_tensor.dtype = {usm_dlpack::type_code::float4_e2m1fn, 4, 1};
  valid.managed.dl_tensor.byte_offset = 84;
  EXPECT_EQ(validate(valid.managed).structure().nbytes, 12U);
  EXPECT_EQ(validate(valid.managed.dl_tensor).structure().nbytes, 12U);
  valid.managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  EXPECT_REFUSAL(validate(valid.managed), errc::out_of_bounds, "shape", within_96,
                 bytes_to(84, 107));
  valid.managed.dl_tensor.byte_offset = 72;
  EXPECT_EQ(validate(valid.managed).structure().nbytes, 24U);
}

TEST(UsmImport, ReadOnlyOverlapAndKindAreAskedOfManagedTensorsToo) {
  usm_managed_tensor valid;
  requirements wanted = only_kinds({alloc::shared});
  EXPECT_REFUSAL(validate(valid.managed, wanted), errc::usm_type_not_accepted, "data",
                 "shared USM", "device USM");
  wanted.unique = true;
  valid.valid.strides = {1, 1};
  EXPECT_REFUSAL(validate(valid.managed, wanted), errc::overlapping, "strides",
                 "elements that do not overlap", "strides that do not prove it");
}

// --- The order ------------------------------------------------------------------------------

/// Breaks every rule at once, then mends one after the other in the documented order.
TEST(UsmImport, TheFirstBrokenRuleInTheDocumentedOrderIsNamedUnpooled) {
  usm_managed_tensor valid;
  std::array<std::int64_t, 2>& shape = valid.valid.shape;
  std::array<std::int64_t, 2>& strides = valid.valid.strides;
  alignas(4) std::array<std::byte, 96> on_stack{};
  DLTensor& tensor = valid.managed.dl_tensor;
  requirements wanted = only_kinds({alloc::host});
  wanted.backends = {sycl::backend::ext_oneapi_cuda};
  wanted.writable = true;
  wanted.unique = true;
  valid.managed.version.major = 2;
  valid.managed.flags = usm_dlpack::flag::read_only | 8U;
  tensor.device = {kDLCUDA, 7};
  tensor.ndim = -1;
  tensor.shape = nullptr;
  tensor.dtype.code = 99;
  tensor.data = nullptr;
  tensor.byte_offset = 1;
  shape = {-4, 7};
  strides = {std::numeric_limits<std::int64_t>::max(), 1};

  const std::pair<errc, std::function<void()>> rules[] = {
      {errc::version_unsupported, [&] { valid.managed.version.major = 1; }},
      {errc::flags_unknown, [&] { valid.managed.flags = usm_dlpack::flag::read_only; }},
      {errc::read_only, [&] { valid.managed.flags = 0; }},
      {errc::device_type_unsupported, [&] { tensor.device.device_type = kDLOneAPI; }},
      {errc::ndim_out_of_range, [&] { tensor.ndim = 2; }},
      {errc::shape_null, [&] { tensor.shape = shape.data(); }},
      {errc::dtype_unsupported, [&] { tensor.dtype.code = kDLFloat; }},
      {errc::shape_negative, [&] { shape[0] = 4; }},
      {errc::data_null, [&] { tensor.data = on_stack.data(); }},
      {errc::span_overflow, [&] { strides[0] = 1; }},
      {errc::data_misaligned, [&] { tensor.byte_offset = 0; }},
      {errc::overlapping, [&] { strides[0] = 7; }},
      {errc::device_id_out_of_range, [&] { tensor.device.device_id = 0; }},
      {errc::backend_not_accepted,
       [&] { wanted.backends = {root_devices().at(0).get_backend()}; }},
      {errc::pointer_unknown, [&] { tensor.data = valid.valid.memory.at(); }},
      {errc::usm_type_not_accepted, [&] { wanted.usm_types = {alloc::device}; }},
      {errc::out_of_bounds, [&] { shape[1] = 6, strides[0] = 6; }},
  };
  for (const auto& [code, mend] : rules) {
    try {
      validate(valid.managed, wanted);
      ADD_FAILURE() << "nothing was refused before " << usm_dlpack::to_string(code);
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_STREQ(usm_dlpack::to_string(error.code()), usm_dlpack::to_string(code));
    }
    mend();
  }
  EXPECT_EQ(validate(valid.managed, wanted).bounds_proved(), bounds_proof::allocation);
  EXPECT_EQ(valid.deleted, 0);
}

}  // namespace test_validate
