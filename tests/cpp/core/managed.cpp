// SPDX-License-Identifier: Apache-2.0
//
// Managed tensors: one allocation, an owner that is destroyed once and never lost, true flags,
// data where consumers expect it, and received tensors.
#include <allocation_counter.hpp>
#include <float4_types.hpp>
#include <odd_views.hpp>
#include <view_elements.hpp>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>

namespace test_managed {

using namespace usm_dlpack_test;

using extents_2d = md::dextents<int, 2>;
template <class Element, class Layout = md::layout_right>
using view_2d = md::mdspan<Element, extents_2d, Layout>;
using relaxed = layout_relaxed;

struct six_floats {
  alignas(64) std::array<float, 6> elements{};
  view_2d<float> view{elements.data(), 2, 3};
  view_2d<const float> constant{elements.data(), 2, 3};
  view_2d<float, relaxed> reversed{elements.data(),
                                   relaxed::mapping<extents_2d>(extents_2d(2, 3), {-3, -1})};
};

// --- The owner and the allocation -----------------------------------------------------------

TEST(Managed, OwnersAreNotNumbersPointersAndFunctionsThatNothingCalls) {
  const auto owns = [](const auto& owner) {
    return !detail::owns_nothing<std::decay_t<decltype(owner)>>;
  };
  int* const pointer = nullptr;
  const auto shared = std::make_shared<int>(1);
  EXPECT_TRUE(owns(no_owner{}) && owns(shared));
  EXPECT_FALSE(owns(0) || owns(nullptr) || owns(pointer) || owns(&std::free) || owns([] {}) ||
               owns([shared] {}));
  EXPECT_FALSE(owns(std::function<void()>()) || owns([shared](int*) mutable {}));
}

TEST(Managed, DescribesTheViewInOneAllocationAndDestroysTheOwnerOnce) {
  six_floats six;
  const auto kept = std::make_shared<int>(1);
  auto owner = kept;
  const auto facts = facts_of(six.view);
  const allocation_count heap;
  DLManagedTensorVersioned* const raw =
      to_managed_tensor(six.view, some_device, std::move(owner)).release();
  EXPECT_EQ(heap.made(), 1U);
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(raw->version.major, 1U);
  EXPECT_EQ(raw->version.minor, static_cast<std::uint32_t>(DLPACK_MINOR_VERSION));
  EXPECT_EQ(raw->flags, 0U);
  EXPECT_EQ(raw->dl_tensor.device.device_type, some_device.device_type);
  EXPECT_EQ(raw->dl_tensor.device.device_id, some_device.device_id);
  EXPECT_EQ(raw->dl_tensor.byte_offset, 0U);
  expect_same_elements(raw->dl_tensor, facts);
  EXPECT_EQ(kept.use_count(), 2);
  raw->deleter(raw);
  EXPECT_EQ(kept.use_count(), 1);
  DLManagedTensor* const legacy =
      to_legacy_managed_tensor(six.view, some_device, kept).release();  // copied
  expect_same_elements(legacy->dl_tensor, facts);
  EXPECT_EQ(kept.use_count(), 2);
  legacy->deleter(legacy);
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(heap.made(), heap.freed());
}

// The allocation counter expects the matching form of `operator delete`.
TEST(Managed, AlignsAnOverAlignedOwnerAndTheArraysBehindASmallOne) {
  struct alignas(256) over_aligned {
    std::array<unsigned char, 256> bytes;
  };
  six_floats six;
  const auto large = to_managed_tensor(six.view, some_device, over_aligned{});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.get()) % 256, 0U);
  const auto small = to_managed_tensor(six.view, some_device, no_owner{});
  for (const auto* managed : {large.get(), small.get()}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(managed->dl_tensor.shape) % 8, 0U);
    EXPECT_EQ(managed->dl_tensor.shape[1], 3);
    EXPECT_EQ(managed->dl_tensor.strides[1], 1);
  }
}

TEST(Managed, FreesWhatItAllocatedWhereTheOwnersMoveThrows) {
  struct throwing_owner {
    throwing_owner() = default;
    throwing_owner(throwing_owner&&) { throw std::runtime_error("cannot be moved"); }
  };
  six_floats six;
  const allocation_count heap;
  EXPECT_THROW(static_cast<void>(to_managed_tensor(six.view, some_device, throwing_owner())),
               std::runtime_error);
  EXPECT_EQ(heap.made(), heap.freed());
}

TEST(Managed, LeavesTheOwnerWithTheCallerWhereItFails) {
  six_floats six;
  auto owner = std::make_shared<int>(1);
  fail_allocation(1);
  EXPECT_THROW(static_cast<void>(to_managed_tensor(six.view, some_device, std::move(owner))),
               std::bad_alloc);
  EXPECT_REFUSAL(to_legacy_managed_tensor(six.constant, some_device, std::move(owner)),
                 errc::read_only, "flags", {}, {}, "call to_managed_tensor in C++");
  const view_2d<float> nowhere(nullptr, 2, 3);
  EXPECT_REFUSAL(to_managed_tensor(nowhere, some_device, std::move(owner)),
                 errc::invalid_tensor, "data", "the address of the elements", "null",
                 "set data where the tensor is made");
  EXPECT_REFUSAL(to_legacy_managed_tensor(nowhere, some_device, std::move(owner)),
                 errc::invalid_tensor, "data");
  valid_tensor valid;
  EXPECT_REFUSAL(to_managed_tensor(valid.tensor, std::move(owner), 8U),
                 errc::version_unsupported, "flags");
  valid.tensor.ndim = -1;
  EXPECT_REFUSAL(to_managed_tensor(valid.tensor, std::move(owner)), errc::invalid_tensor,
                 "ndim");
  EXPECT_REFUSAL(to_legacy_managed_tensor(valid.tensor, std::move(owner)),
                 errc::invalid_tensor, "ndim");
  EXPECT_EQ(owner.use_count(), 1);
}

// --- Flags ---------------------------------------------------------------------------------

TEST(Managed, IsReadOnlyFromConst) {
  six_floats six;
  using reading =
      md::mdspan<float, extents_2d, md::layout_right, odd::reading_accessor<float>>;
  EXPECT_EQ(to_managed_tensor(six.constant, some_device, no_owner{})->flags, flag::read_only);
  EXPECT_EQ(
      to_managed_tensor(reading(six.elements.data(), 2, 3), some_device, no_owner{})->flags,
      flag::read_only);
  EXPECT_EQ(
      to_managed_tensor(view_2d<volatile float>(six.view), some_device, no_owner{})->flags,
      0U);
}

TEST(Managed, DeclaresPaddedElementsOrRefusesThem) {
  std::array<padded_float4, 6> elements{};
  const view_2d<const padded_float4> view(elements.data(), 2, 3);
  EXPECT_EQ(to_managed_tensor(view, some_device, no_owner{})->flags,
            flag::is_subbyte_type_padded | flag::read_only);
  EXPECT_REFUSAL(to_legacy_managed_tensor(view_2d<padded_float4>(elements.data(), 2, 3),
                                          some_device, no_owner{}),
                 errc::dtype_unsupported, "flags");
}

TEST(Managed, MeasuresATensorAsItsFlagsSay) {
  // 2^62 elements of 4 bits: 2^61 bytes packed, 2^62 padded; the latter do not fit behind this
  // address.
  valid_tensor valid;
  valid.shape = {1, std::int64_t{1} << 60};
  valid.tensor.dtype = {type_code::float4_e2m1fn, 4, 8};
  valid.tensor.data = reinterpret_cast<void*>(std::numeric_limits<std::uintptr_t>::max() -
                                              (std::uintptr_t{1} << 62) - 64);
  EXPECT_NO_THROW(static_cast<void>(to_managed_tensor(valid.tensor, no_owner{})));
  EXPECT_REFUSAL(to_managed_tensor(valid.tensor, no_owner{}, flag::is_subbyte_type_padded),
                 errc::out_of_range, "strides");
}

// --- Shape, strides and data ----------------------------------------------------------------

TEST(Managed, CopiesShapeAndStridesOfATensorAndFillsNullStrides) {
  valid_tensor valid;
  const auto managed =
      to_managed_tensor(valid.tensor, no_owner{}, flag::read_only | flag::is_copied);
  valid.tensor.strides = nullptr;
  const auto filled = to_managed_tensor(valid.tensor, no_owner{});
  EXPECT_EQ(filled->flags, 0U);
  valid.shape = {-1, -1};
  valid.strides = {-1, -1};
  EXPECT_EQ(managed->flags, flag::read_only | flag::is_copied);
  for (const DLTensor& tensor : {managed->dl_tensor, filled->dl_tensor}) {
    expect_same_elements(tensor, facts_of(view_2d<float>(valid.elements.data(), 2, 3)));
  }
}

TEST(Managed, HasNoArraysForRankZero) {
  float element = 0;
  const auto managed = to_managed_tensor(md::mdspan<float, md::extents<int>>(&element),
                                         some_device, no_owner{});
  EXPECT_EQ(managed->dl_tensor.ndim, 0);
  EXPECT_EQ(managed->dl_tensor.shape, nullptr);
  EXPECT_EQ(managed->dl_tensor.strides, nullptr);
  EXPECT_EQ(managed->dl_tensor.data, &element);
}

// dpctl, dpnp and PyTorch refuse null.
TEST(Managed, KeepsTheDataOfAnEmptyView) {
  six_floats six;
  const view_2d<float> empty(six.elements.data(), 0, 3);
  EXPECT_EQ(to_managed_tensor(empty, some_device, no_owner{})->dl_tensor.data,
            six.elements.data());
  const md::mdspan<float, md::dextents<int, 1>> no_row(six.elements.data(), 0);
  EXPECT_EQ(to_managed_tensor(no_row, some_device, no_owner{})->dl_tensor.data,
            six.elements.data());
  const view_2d<float> nowhere(nullptr, 0, 3);
  EXPECT_EQ(to_managed_tensor(nowhere, some_device, no_owner{})->dl_tensor.data, nullptr);
}

void expect_place(const DLTensor& tensor, const void* data, std::uint64_t byte_offset) {
  EXPECT_EQ(tensor.data, data);
  EXPECT_EQ(tensor.byte_offset, byte_offset);
}

TEST(Managed, StartsAtTheLowestAddressForOneApi) {
  six_floats six;
  const auto from_view = to_managed_tensor(six.reversed, some_device, no_owner{});
  expect_place(from_view->dl_tensor, six.elements.data(), 20);
  expect_same_elements(from_view->dl_tensor, facts_of(six.reversed));
  valid_tensor valid;
  valid.tensor.data = &valid.elements[1];
  valid.tensor.byte_offset = 4;
  valid.strides = {3, -1};
  expect_place(to_managed_tensor(valid.tensor, no_owner{})->dl_tensor, valid.elements.data(),
               8);
  valid.strides = {1, 1};  // nothing is below `data`, which stays
  expect_place(to_legacy_managed_tensor(valid.tensor, no_owner{})->dl_tensor,
               &valid.elements[1], 4);
}

TEST(Managed, StartsAtTheFirstElementOnTheHostAndInCuda) {
  for (const DLDeviceType type : {kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged}) {
    six_floats six;
    expect_place(to_legacy_managed_tensor(six.reversed, {type, 0}, no_owner{})->dl_tensor,
                 &six.elements[5], 0);
    valid_tensor valid;
    valid.tensor.device = {type, 0};
    valid.tensor.byte_offset = 8;
    expect_place(to_managed_tensor(valid.tensor, no_owner{})->dl_tensor, &valid.elements[2],
                 0);
    valid.shape = {0, 3};
    valid.tensor.data = nullptr;
    expect_place(to_managed_tensor(valid.tensor, no_owner{})->dl_tensor, nullptr, 0);
  }
}

// `data` may be a handle there, as a cl_mem is for kDLOpenCL.
TEST(Managed, LeavesDataOfAnotherDeviceTypeAsItIs) {
  valid_tensor valid;
  valid.tensor.device = {kDLOpenCL, 0};
  valid.strides = {-3, -1};
  valid.tensor.data = &valid.elements[3];
  valid.tensor.byte_offset = 8;
  expect_place(to_managed_tensor(valid.tensor, no_owner{})->dl_tensor, &valid.elements[3], 8);
}

TEST(Managed, StartsAtTheByteOfTheLowestElementBelowAByte) {
  std::array<unsigned char, 8> bytes{};
  std::int64_t extent = 6;
  std::int64_t stride = -1;
  const DLTensor tensor{bytes.data() + 4, some_device, 1, {type_code::float4_e2m1fn, 4, 1},
                        &extent,          &stride,     0};
  expect_place(to_managed_tensor(tensor, no_owner{})->dl_tensor, &bytes[1],
               3);  // 20 bits below
  extent = 4;
  const auto padded = to_managed_tensor(tensor, no_owner{}, flag::is_subbyte_type_padded);
  expect_place(padded->dl_tensor, &bytes[1], 3);
}

TEST(Managed, CallsTheDeleterOfAReceivedTensorOnceIfThereIsOne) {
  valid_managed_tensor received;
  managed_tensor owned(&received.managed);
  managed_tensor moved = std::move(owned);
  owned.reset();
  EXPECT_EQ(received.deleted, 0);
  moved.reset();
  moved.reset();
  EXPECT_EQ(received.deleted, 1);
  received.managed.deleter = nullptr;
  managed_tensor(&received.managed).reset();
  EXPECT_EQ(received.deleted, 1);
  foreign_tensor<DLManagedTensor> legacy;
  legacy_managed_tensor(&legacy.managed).reset();
  EXPECT_EQ(legacy.deleted, 1);
}

// Other versions have other fields: AddressSanitizer reports a read behind the deleter.
TEST(Managed, ReadsNoMoreOfAnotherMajorVersionThanItsDeleter) {
  valid_managed_tensor other;
  other.managed.version.major = 2;
  std::vector<unsigned char> memory(offsetof(DLManagedTensorVersioned, flags));
  std::memcpy(memory.data(), &other.managed, memory.size());
  const auto receive = [&] {
    const managed_tensor received(reinterpret_cast<DLManagedTensorVersioned*>(memory.data()));
    return to_mdspan<view_2d<float>>(*received);
  };
  EXPECT_REFUSAL(receive(), errc::version_unsupported, "version.major", "1", "2",
                 "a tensor of DLPack 1.0 to 1.3 (in Python: max_version=(1, 3))");
  EXPECT_EQ(other.deleted, 1);
}

}  // namespace test_managed
