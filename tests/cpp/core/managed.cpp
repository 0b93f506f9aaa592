// SPDX-License-Identifier: Apache-2.0
//
// Managed tensors: one allocation, an owner that is destroyed once and never lost, flags that
// tell the truth, and the RAII of received ones.
#include <allocation_counter.hpp>
#include <odd_views.hpp>
#include <padded_float4.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/managed.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

using usm_dlpack::errc;
using usm_dlpack::legacy_managed_tensor;
using usm_dlpack::managed_tensor;
using usm_dlpack::to_legacy_managed_tensor;
using usm_dlpack::to_managed_tensor;
using usm_dlpack_test::allocation_count;
using usm_dlpack_test::padded_float4;
using usm_dlpack_test::some_device;
using usm_dlpack_test::valid_managed_tensor;
using usm_dlpack_test::valid_tensor;
namespace flag = usm_dlpack::flag;

/// Counts how often the resource it stands for is freed; a moved-from one stands for nothing.
class counting_owner {
 public:
  explicit counting_owner(int& freed) noexcept : freed_(&freed) {}
  counting_owner(counting_owner&& other) noexcept
      : freed_(std::exchange(other.freed_, nullptr)) {}
  ~counting_owner() {
    if (freed_ != nullptr) ++*freed_;
  }
  bool owns() const noexcept { return freed_ != nullptr; }

 private:
  int* freed_;
};

using extents_2d = md::dextents<int, 2>;
template <class Element>
using view_2d = md::mdspan<Element, extents_2d>;

// --- From a view
// ----------------------------------------------------------------------------------------

TEST(Managed, DescribesTheViewAndItsOwner) {
  std::array<float, 6> elements{};
  const view_2d<float> view(elements.data(), 2, 3);
  int freed = 0;
  const managed_tensor managed = to_managed_tensor(view, some_device, counting_owner(freed));
  EXPECT_EQ(managed->version.major, 1U);
  EXPECT_EQ(managed->version.minor, static_cast<std::uint32_t>(DLPACK_MINOR_VERSION));
  EXPECT_EQ(managed->flags, 0U);
  EXPECT_NE(managed->deleter, nullptr);
  EXPECT_EQ(managed->dl_tensor.device.device_id, some_device.device_id);
  usm_dlpack_test::expect_same_elements(managed->dl_tensor, usm_dlpack_test::facts_of(view));
  EXPECT_EQ(freed, 0);
}

TEST(Managed, MakesOneAllocationAndFreesIt) {
  std::array<float, 6> elements{};
  int freed = 0;
  const allocation_count heap;
  {
    const auto managed = to_managed_tensor(view_2d<float>(elements.data(), 2, 3), some_device,
                                           counting_owner(freed));
    EXPECT_EQ(heap.made(), 1U);
    EXPECT_EQ(heap.freed(), 0U);
  }
  {
    const auto legacy = to_legacy_managed_tensor(view_2d<float>(elements.data(), 2, 3),
                                                 some_device, counting_owner(freed));
    EXPECT_EQ(heap.made(), 2U);
  }
  EXPECT_EQ(heap.made(), 2U);
  EXPECT_EQ(heap.freed(), 2U);
  EXPECT_EQ(freed, 2);
}

TEST(Managed, AllocatesWhatTheTensorItsOwnerAndItsArraysTakeAndNoMore) {
  std::array<float, 6> elements{};
  const allocation_count heap;
  const auto flat = to_managed_tensor(view_2d<float>(elements.data(), 2, 3), some_device, 0);
  const std::size_t structs = heap.bytes() - 4 * sizeof(std::int64_t);
  EXPECT_GE(structs, sizeof(DLManagedTensorVersioned) + sizeof(int));
  EXPECT_LE(structs, sizeof(DLManagedTensorVersioned) + 2 * sizeof(std::int64_t));
  const allocation_count later;
  const auto scalar =
      to_managed_tensor(md::mdspan<float, md::extents<int>>(elements.data()), some_device, 0);
  EXPECT_EQ(later.bytes(), structs);
}

TEST(Managed, FreesAnOwnerOfTheAlignmentThatOrdinaryMemoryHasByTheOrdinaryForm) {
  struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) ordinary {
    int value = 0;
  };
  float element = 0;
  const allocation_count heap;
  to_managed_tensor(md::mdspan<float, md::extents<int>>(&element), some_device, ordinary{})
      .reset();
  EXPECT_EQ(heap.freed(), 1U);
}

TEST(Managed, DestroysTheOwnerExactlyOnceWhenTheDeleterRuns) {
  std::array<float, 6> elements{};
  int freed = 0;
  counting_owner owner(freed);
  DLManagedTensorVersioned* raw =
      to_managed_tensor(view_2d<float>(elements.data(), 2, 3), some_device, std::move(owner))
          .release();
  EXPECT_EQ(freed, 0) << "released";
  EXPECT_FALSE(owner.owns());
  raw->deleter(raw);
  EXPECT_EQ(freed, 1);
}

TEST(Managed, DestroysTheOwnerOnTheThreadThatCallsTheDeleter) {
  std::array<float, 6> elements{};
  auto destroyed_on = std::make_shared<std::thread::id>();
  struct owner_type {
    std::shared_ptr<std::thread::id> id;
    explicit owner_type(std::shared_ptr<std::thread::id> where) : id(std::move(where)) {}
    owner_type(owner_type&&) noexcept = default;
    ~owner_type() {
      if (id) *id = std::this_thread::get_id();
    }
  };
  auto managed = to_managed_tensor(view_2d<float>(elements.data(), 2, 3), some_device,
                                   owner_type(destroyed_on));
  std::thread consumer([taken = std::move(managed)]() mutable { taken.reset(); });
  const std::thread::id expected = consumer.get_id();
  consumer.join();
  EXPECT_EQ(*destroyed_on, expected);
}

TEST(Managed, CopiesAnOwnerThatIsGivenAsAnLvalue) {
  std::array<float, 6> elements{};
  const auto owner = std::make_shared<int>(1);
  const auto managed =
      to_managed_tensor(view_2d<float>(elements.data(), 2, 3), some_device, owner);
  EXPECT_EQ(owner.use_count(), 2);
}

TEST(Managed, OutlivesTheView) {
  std::array<float, 6> elements{};
  auto view = std::make_unique<view_2d<float>>(elements.data(), 2, 3);
  const auto managed = to_managed_tensor(*view, some_device, nullptr);
  view.reset();
  EXPECT_EQ(managed->dl_tensor.shape[1], 3);
  EXPECT_EQ(managed->dl_tensor.strides[0], 3);
}

TEST(Managed, IsReadOnlyFromAHandleToConst) {
  std::array<float, 4> elements{};
  using view_type =
      md::mdspan<float, md::dextents<int, 1>, md::layout_right, odd::reading_accessor<float>>;
  const view_type view(elements.data(), 4);
  EXPECT_EQ(to_managed_tensor(view, some_device, 0)->flags, flag::read_only);
}

TEST(Managed, IsReadOnlyFromConst) {
  std::array<float, 6> elements{};
  using view_type = md::mdspan<const volatile float, extents_2d>;
  EXPECT_EQ(
      to_managed_tensor(view_2d<const float>(elements.data(), 2, 3), some_device, 0)->flags,
      flag::read_only);
  EXPECT_EQ(to_managed_tensor(view_type(elements.data(), 2, 3), some_device, 0)->flags,
            flag::read_only);
  EXPECT_EQ(
      to_managed_tensor(view_2d<volatile float>(elements.data(), 2, 3), some_device, 0)->flags,
      0U);
}

TEST(Managed, DeclaresPaddedElements) {
  std::array<padded_float4, 6> elements{};
  const auto managed =
      to_managed_tensor(view_2d<padded_float4>(elements.data(), 2, 3), some_device, 0);
  EXPECT_EQ(managed->flags, flag::is_subbyte_type_padded);
  EXPECT_EQ(managed->dl_tensor.dtype.bits, 4);
  const auto constant =
      to_managed_tensor(view_2d<const padded_float4>(elements.data(), 2, 3), some_device, 0);
  EXPECT_EQ(constant->flags, flag::is_subbyte_type_padded | flag::read_only);
}

TEST(Managed, KeepsALivePointerForSizeZero) {
  std::array<float, 6> elements{};
  const auto managed =
      to_managed_tensor(view_2d<float>(elements.data(), 0, 3), some_device, 0);
  EXPECT_EQ(managed->dl_tensor.data, elements.data());
  EXPECT_EQ(managed->dl_tensor.shape[0], 0);
  EXPECT_EQ(managed->dl_tensor.shape[1], 3);
  const auto row = to_managed_tensor(
      md::mdspan<float, md::dextents<int, 1>>(elements.data(), 0), some_device, 0);
  EXPECT_EQ(row->dl_tensor.data, elements.data());
  EXPECT_EQ(row->dl_tensor.shape[0], 0);
}

TEST(Managed, StartsAtTheLowestAddressOfAReversedView) {
  std::array<float, 6> elements{};
  using relaxed = usm_dlpack::layout_relaxed;
  const md::mdspan<float, extents_2d, relaxed> view(
      elements.data(), relaxed::mapping<extents_2d>(extents_2d(2, 3), {-3, -1}));
  const auto managed = to_managed_tensor(view, some_device, 0);
  EXPECT_EQ(managed->dl_tensor.data, elements.data());
  EXPECT_EQ(managed->dl_tensor.byte_offset, 5 * sizeof(float));
  EXPECT_EQ(managed->dl_tensor.strides[0], -3);
  EXPECT_EQ(usm_dlpack_test::addresses_of(managed->dl_tensor),
            usm_dlpack_test::facts_of(view).addresses());
}

TEST(Managed, StartsAtTheLowestAddressOfAReversedTensor) {
  valid_tensor valid;
  valid.strides = {3, -1};
  valid.tensor.data = &valid.elements[1];
  valid.tensor.byte_offset = sizeof(float);
  const auto managed = to_managed_tensor(valid.tensor, 0);
  EXPECT_EQ(managed->dl_tensor.data, valid.elements.data());
  EXPECT_EQ(managed->dl_tensor.byte_offset, 2 * sizeof(float));
}

TEST(Managed, KeepsDataThatIsNotAboveTheLowestAddress) {
  valid_tensor valid;
  valid.strides = {-3, -1};
  valid.tensor.byte_offset = 5 * sizeof(float);
  const auto managed = to_managed_tensor(valid.tensor, 0);
  EXPECT_EQ(managed->dl_tensor.data, valid.elements.data());
  EXPECT_EQ(managed->dl_tensor.byte_offset, 5 * sizeof(float));
  const auto legacy = to_legacy_managed_tensor(valid.tensor, 0);
  EXPECT_EQ(legacy->dl_tensor.data, valid.elements.data());
}

TEST(Managed, StartsAtTheByteThatHoldsTheLowestPackedElement) {
  std::array<unsigned char, 8> bytes{};
  std::int64_t extent = 6;
  std::int64_t stride = -1;
  const DLTensor tensor{
      bytes.data() + 4, some_device, 1, {usm_dlpack::type_code::float4_e2m1fn, 4, 1},
      &extent,          &stride,     0};
  const auto packed = to_managed_tensor(tensor, 0);
  EXPECT_EQ(packed->dl_tensor.data, bytes.data() + 1);  // 20 bits below
  EXPECT_EQ(packed->dl_tensor.byte_offset, 3U);
  extent = 4;
  const auto padded = to_managed_tensor(tensor, 0, flag::is_subbyte_type_padded);
  EXPECT_EQ(padded->dl_tensor.data, bytes.data() + 1);
  EXPECT_EQ(padded->dl_tensor.byte_offset, 3U);
}

TEST(Managed, StartsAtTheFirstElementOfAReversedViewOnTheHost) {
  std::array<float, 6> elements{};
  using relaxed = usm_dlpack::layout_relaxed;
  const md::mdspan<float, extents_2d, relaxed> view(
      elements.data(), relaxed::mapping<extents_2d>(extents_2d(2, 3), {-3, -1}));
  const auto managed = to_managed_tensor(view, {kDLCPU, 0}, 0);
  const auto legacy = to_legacy_managed_tensor(view, {kDLCPU, 0}, 0);
  for (const DLTensor& tensor : {managed->dl_tensor, legacy->dl_tensor}) {
    EXPECT_EQ(tensor.data, &elements[5]);
    EXPECT_EQ(tensor.byte_offset, 0U);
    EXPECT_EQ(usm_dlpack_test::addresses_of(tensor),
              usm_dlpack_test::facts_of(view).addresses());
  }
}

TEST(Managed, AddsTheByteOffsetOfAHostTensorToData) {
  valid_tensor valid;
  valid.tensor.device = {kDLCPU, 0};
  for (const std::int64_t stride : {1, -1}) {
    valid.strides = {3 * stride, stride};
    valid.tensor.data = stride > 0 ? valid.elements.data() : &valid.elements[3];
    valid.tensor.byte_offset = stride > 0 ? 0 : 2 * sizeof(float);
    const auto managed = to_managed_tensor(valid.tensor, 0);
    EXPECT_EQ(managed->dl_tensor.data, stride > 0 ? &valid.elements[0] : &valid.elements[5]);
    EXPECT_EQ(managed->dl_tensor.byte_offset, 0U);
    EXPECT_EQ(managed->dl_tensor.strides[1], stride);
  }
}

TEST(Managed, StartsAtTheByteOfTheFirstPackedElementOnTheHost) {
  std::array<unsigned char, 8> bytes{};
  std::int64_t extent = 6;
  std::int64_t stride = -1;
  const DLTensor tensor{
      bytes.data(), {kDLCPU, 0}, 1, {usm_dlpack::type_code::float4_e2m1fn, 4, 1},
      &extent,      &stride,     4};
  const auto packed = to_managed_tensor(tensor, 0);
  EXPECT_EQ(packed->dl_tensor.data, bytes.data() + 4);
  EXPECT_EQ(packed->dl_tensor.byte_offset, 0U);
}

TEST(Managed, LeavesNullDataOfAnEmptyHostTensorNull) {
  valid_tensor valid;
  valid.tensor.device = {kDLCPU, 0};
  valid.shape = {0, 3};
  valid.tensor.byte_offset = 8;
  const auto live = to_managed_tensor(valid.tensor, 0);
  EXPECT_EQ(live->dl_tensor.data, &valid.elements[2]);
  EXPECT_EQ(live->dl_tensor.byte_offset, 0U);
  valid.tensor.data = nullptr;
  const auto null = to_managed_tensor(valid.tensor, 0);
  EXPECT_EQ(null->dl_tensor.data, nullptr);
  EXPECT_EQ(null->dl_tensor.byte_offset, 0U);
}

// `data` may be a handle there, as a cl_mem is for kDLOpenCL.
TEST(Managed, LeavesDataOfAnotherDeviceTypeAsItIs) {
  valid_tensor valid;
  valid.tensor.device = {kDLOpenCL, 0};
  valid.strides = {-3, -1};
  valid.tensor.data = &valid.elements[3];
  valid.tensor.byte_offset = 2 * sizeof(float);
  const auto managed = to_managed_tensor(valid.tensor, 0);
  EXPECT_EQ(managed->dl_tensor.data, &valid.elements[3]);
  EXPECT_EQ(managed->dl_tensor.byte_offset, 2 * sizeof(float));
}

TEST(Managed, HasNoArraysForRankZero) {
  float element = 0;
  const auto managed =
      to_managed_tensor(md::mdspan<float, md::extents<int>>(&element), some_device, 0);
  EXPECT_EQ(managed->dl_tensor.ndim, 0);
  EXPECT_EQ(managed->dl_tensor.shape, nullptr);
  EXPECT_EQ(managed->dl_tensor.strides, nullptr);
  EXPECT_EQ(managed->dl_tensor.data, &element);
}

TEST(Managed, AlignsAnOverAlignedOwnerAndTheArraysBehindASmallOne) {
  struct alignas(256) over_aligned {
    std::array<unsigned char, 256> bytes;
  };
  std::array<float, 6> elements{};
  const view_2d<float> view(elements.data(), 2, 3);
  const auto large = to_managed_tensor(view, some_device, over_aligned{});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.get()) % 256, 0U);
  EXPECT_EQ(large->dl_tensor.shape[1], 3);
  const auto small = to_managed_tensor(view, some_device, 'c');
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small->dl_tensor.shape) % alignof(std::int64_t),
            0U);
  EXPECT_EQ(small->dl_tensor.strides[0], 3);
}

TEST(Managed, FreesWhatItAllocatedWhereTheOwnersMoveThrows) {
  struct throwing_owner {
    throwing_owner() = default;
    throwing_owner(throwing_owner&&) { throw std::runtime_error("cannot be moved"); }
  };
  std::array<float, 6> elements{};
  const view_2d<float> view(elements.data(), 2, 3);
  const usm_dlpack_test::allocation_count heap;
  EXPECT_THROW(static_cast<void>(to_managed_tensor(view, some_device, throwing_owner())),
               std::runtime_error);
  EXPECT_EQ(heap.made(), heap.freed());
}

TEST(Managed, LeavesTheOwnerWithTheCallerWhereMemoryRunsOut) {
  std::array<float, 6> elements{};
  int freed = 0;
  counting_owner owner(freed);
  usm_dlpack_test::fail_allocation(1);
  EXPECT_THROW(static_cast<void>(to_managed_tensor(view_2d<float>(elements.data(), 2, 3),
                                                   some_device, std::move(owner))),
               std::bad_alloc);
  EXPECT_TRUE(owner.owns());
  EXPECT_EQ(freed, 0);
}

TEST(Managed, LeavesTheOwnerWithTheCallerWhereTheViewIsRefused) {
  float element = 0;
  int freed = 0;
  counting_owner owner(freed);
  const odd::hand_written_view<float, int, 1> negative{&element, {-1}, {}};
  EXPECT_REFUSAL(to_managed_tensor(negative, some_device, std::move(owner)),
                 errc::extent_out_of_range, "shape[0]",
                 "an extent from 0 to 9223372036854775807 elements", "-1");
  EXPECT_TRUE(owner.owns());
  EXPECT_REFUSAL(to_legacy_managed_tensor(negative, some_device, std::move(owner)),
                 errc::extent_out_of_range, "shape[0]",
                 "an extent from 0 to 9223372036854775807 elements", "-1");
  EXPECT_TRUE(owner.owns());
}

TEST(Managed, RefusesANullHandleOfAViewWithElements) {
  int freed = 0;
  counting_owner owner(freed);
  using relaxed = usm_dlpack::layout_relaxed;
  const view_2d<float> nowhere(nullptr, 2, 3);
  const md::mdspan<float, extents_2d, relaxed> reversed(
      nullptr, relaxed::mapping<extents_2d>(extents_2d(2, 3), {-3, -1}));
  EXPECT_REFUSAL(to_managed_tensor(nowhere, some_device, std::move(owner)), errc::data_null,
                 "data", "the address of the elements", "null");
  EXPECT_REFUSAL(to_managed_tensor(reversed, some_device, std::move(owner)), errc::data_null,
                 "data", "the address of the elements", "null");
  EXPECT_REFUSAL(to_legacy_managed_tensor(nowhere, some_device, std::move(owner)),
                 errc::data_null, "data", "the address of the elements", "null");
  EXPECT_TRUE(owner.owns());
  const view_2d<float> empty(nullptr, 0, 3);
  EXPECT_EQ(to_managed_tensor(empty, some_device, 0)->dl_tensor.data, nullptr);
}

TEST(Managed, RefusesAViewThatNoConsumerCouldTake) {
  std::array<float, 6> elements{};
  auto* misaligned =
      reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(elements.data()) + 1);
  const odd::hand_written_view<float, int, 1> view{misaligned, {1}, {}};
  EXPECT_REFUSAL(to_managed_tensor(view, some_device, 0), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 4 bytes", "1 bytes past such an address");
}

// --- Legacy
// ---------------------------------------------------------------------------------------------

TEST(Managed, LegacyDescribesTheSame) {
  std::array<float, 6> elements{};
  const view_2d<float> view(elements.data(), 2, 3);
  int freed = 0;
  DLManagedTensor* raw =
      to_legacy_managed_tensor(view, some_device, counting_owner(freed)).release();
  ASSERT_NE(raw->deleter, nullptr);
  usm_dlpack_test::expect_same_elements(raw->dl_tensor, usm_dlpack_test::facts_of(view));
  raw->deleter(raw);
  EXPECT_EQ(freed, 1);
}

TEST(Managed, LegacyRefusesWhatItCannotDeclare) {
  std::array<float, 6> elements{};
  std::array<padded_float4, 6> padded{};
  int freed = 0;
  counting_owner owner(freed);
  EXPECT_REFUSAL(to_legacy_managed_tensor(view_2d<const float>(elements.data(), 2, 3),
                                          some_device, std::move(owner)),
                 errc::read_only, "flags",
                 "writable memory, as a legacy managed tensor implies", "read-only memory");
  EXPECT_REFUSAL(to_legacy_managed_tensor(view_2d<padded_float4>(padded.data(), 2, 3),
                                          some_device, std::move(owner)),
                 errc::dtype_unsupported, "flags",
                 "packed elements, as a legacy managed tensor implies",
                 "padded elements of fewer than 8 bits");
  EXPECT_TRUE(owner.owns());
}

// --- From a DLTensor
// ------------------------------------------------------------------------------------

TEST(Managed, CopiesShapeAndStridesOfATensor) {
  valid_tensor valid;
  const auto managed = to_managed_tensor(valid.tensor, 0, flag::read_only | flag::is_copied);
  valid.shape = {-1, -1};
  valid.strides = {-1, -1};
  EXPECT_EQ(managed->flags, flag::read_only | flag::is_copied);
  EXPECT_EQ(managed->dl_tensor.shape[0], 2);
  EXPECT_EQ(managed->dl_tensor.strides[0], 3);
  EXPECT_EQ(managed->dl_tensor.data, valid.elements.data());
}

TEST(Managed, FillsNullStrides) {
  valid_tensor valid;
  valid.tensor.strides = nullptr;
  const auto managed = to_managed_tensor(valid.tensor, 0);
  ASSERT_NE(managed->dl_tensor.strides, nullptr);
  EXPECT_EQ(managed->dl_tensor.strides[0], 3);
  EXPECT_EQ(managed->dl_tensor.strides[1], 1);
}

TEST(Managed, KeepsTheByteOffsetOfATensor) {
  valid_tensor valid;
  valid.tensor.byte_offset = 4;
  valid.shape[0] = 1;
  EXPECT_EQ(to_managed_tensor(valid.tensor, 0)->dl_tensor.byte_offset, 4U);
}

TEST(Managed, RefusesATensorThatIsNotWellFormed) {
  valid_tensor valid;
  valid.tensor.ndim = -1;
  int freed = 0;
  counting_owner owner(freed);
  EXPECT_REFUSAL(to_managed_tensor(valid.tensor, std::move(owner)), errc::ndim_out_of_range,
                 "ndim", "0 or more dimensions", "-1");
  EXPECT_REFUSAL(to_legacy_managed_tensor(valid.tensor, std::move(owner)),
                 errc::ndim_out_of_range, "ndim", "0 or more dimensions", "-1");
  EXPECT_TRUE(owner.owns());
}

TEST(Managed, RefusesFlagsThatDlpackDoesNotDefine) {
  valid_tensor valid;
  EXPECT_REFUSAL(to_managed_tensor(valid.tensor, 0, flag::read_only | 8U), errc::flags_unknown,
                 "flags", "bits of DLPACK_FLAG_BITMASK_* only", "8");
}

TEST(Managed, MeasuresATensorAsItsFlagsSay) {
  // 2^62 elements of 4 bits: 2^61 bytes packed, 2^62 padded; the latter do not fit behind this
  // address.
  valid_tensor valid;
  valid.shape = {1, std::int64_t{1} << 60};
  valid.tensor.dtype = {usm_dlpack::type_code::float4_e2m1fn, 4, 8};
  valid.tensor.data = reinterpret_cast<void*>(std::numeric_limits<std::uintptr_t>::max() -
                                              (std::uintptr_t{1} << 62) - 64);
  EXPECT_NO_THROW(static_cast<void>(to_managed_tensor(valid.tensor, 0)));
  EXPECT_REFUSAL(to_managed_tensor(valid.tensor, 0, flag::is_subbyte_type_padded),
                 errc::span_overflow, "strides", "a view that the address space can hold",
                 "offsets beyond it");
}

TEST(Managed, LegacyRefusesFlagsItCannotCarry) {
  valid_tensor valid;
  EXPECT_REFUSAL(to_legacy_managed_tensor(valid.tensor, 0, flag::read_only | 8U),
                 errc::flags_unknown, "flags", "bits of DLPACK_FLAG_BITMASK_* only", "8");
  EXPECT_REFUSAL(to_legacy_managed_tensor(valid.tensor, 0, flag::read_only), errc::read_only,
                 "flags", "writable memory, as a legacy managed tensor implies",
                 "read-only memory");
  EXPECT_REFUSAL(to_legacy_managed_tensor(valid.tensor, 0, flag::is_subbyte_type_padded),
                 errc::dtype_unsupported, "flags",
                 "packed elements, as a legacy managed tensor implies",
                 "padded elements of fewer than 8 bits");
}

// --- Received -------------------------------------------------------------------------------

TEST(Managed, CallsTheDeleterOfAReceivedTensorOnce) {
  valid_managed_tensor received;
  managed_tensor owned(&received.managed);
  managed_tensor moved = std::move(owned);
  owned.reset();
  EXPECT_EQ(received.deleted, 0);
  moved.reset();
  moved.reset();
  EXPECT_EQ(received.deleted, 1);
}

TEST(Managed, TakesAReceivedTensorWithoutADeleter) {
  valid_managed_tensor received;
  received.managed.deleter = nullptr;
  {
    const managed_tensor owned(&received.managed);
  }
  usm_dlpack_test::foreign_tensor<DLManagedTensor> legacy;
  legacy.managed.deleter = nullptr;
  {
    const legacy_managed_tensor owned(&legacy.managed);
  }
  EXPECT_EQ(received.deleted + legacy.deleted, 0);
}

TEST(Managed, LeavesAReleasedTensorAlone) {
  valid_managed_tensor received;
  {
    managed_tensor owned(&received.managed);
    EXPECT_EQ(owned.release(), &received.managed);
  }
  EXPECT_EQ(received.deleted, 0);
}

}  // namespace
