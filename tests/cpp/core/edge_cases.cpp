// SPDX-License-Identifier: Apache-2.0
//
// What DLPack allows and other libraries get wrong, where no test of a header says it by name.
#include <mdspan_under_test.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace {

/// 12 bytes, aligned to 4.
struct float_x3 {
  std::array<float, 3> lanes;
};

}  // namespace

template <>
struct usm_dlpack::data_type_of<float_x3> {
  static constexpr DLDataType value{kDLFloat, 32, 3};
};

namespace {

using usm_dlpack::errc;
using usm_dlpack::to_mdspan;
using usm_dlpack_test::some_device;
using usm_dlpack_test::valid_managed_tensor;
using usm_dlpack_test::valid_tensor;
using plain_view = md::mdspan<float, md::dextents<int, 2>>;
using scalar_view = md::mdspan<float, md::extents<int>>;

// dpctl and dpnp read the wrong address, PyTorch refuses.
TEST(EdgeCases, AByteOffsetThatIsNoMultipleOfTheItemIsAdded) {
  alignas(64) std::array<float, 8> elements{};
  std::array<std::int64_t, 1> extent{2};
  std::array<std::int64_t, 1> stride{1};
  const DLTensor tensor{elements.data(), some_device,   1, {kDLFloat, 32, 3},
                        extent.data(),   stride.data(), 4};
  using view_type = md::mdspan<float_x3, md::dextents<int, 1>>;
  EXPECT_EQ(static_cast<void*>(to_mdspan<view_type>(tensor).data_handle()), &elements[1]);
  EXPECT_EQ(usm_dlpack::check_structure(tensor).nbytes, 24U);
}

TEST(EdgeCases, AByteOffsetWithinAnElementIsRefusedAsMisaligned) {
  valid_tensor valid;
  for (const std::uint64_t offset : {1U, 2U, 3U, 5U}) {
    valid.tensor.byte_offset = offset;
    EXPECT_REFUSAL(to_mdspan<plain_view>(valid.tensor), errc::data_misaligned, "byte_offset",
                   "data + byte_offset aligned to 4 bytes",
                   std::to_string(offset % 4) + " bytes past such an address");
  }
}

// DLPack asks for 256 bytes; about half of all USM allocations do not have them.
TEST(EdgeCases, DataIsAlignedToItsElementsAndNoFurther) {
  valid_tensor valid;
  valid.shape = {1, 1};
  for (float& element : valid.elements) {
    valid.tensor.data = &element;
    EXPECT_EQ(to_mdspan<plain_view>(valid.tensor).data_handle(), &element);
  }
}

// Required since 1.2, and still sent, in versioned capsules too (NumPy 2.2).
TEST(EdgeCases, NullStridesAreCompactOnesWhateverTheMinorVersionSays) {
  valid_managed_tensor received;
  received.managed.dl_tensor.strides = nullptr;
  for (const std::uint32_t minor : {0U, 1U, 2U, 3U, 99U}) {
    received.managed.version.minor = minor;
    EXPECT_EQ(to_mdspan<plain_view>(received.managed).mapping().stride(0), 3);
  }
}

// dpnp makes arrays without dimensions read-only.
TEST(EdgeCases, AWritableScalarStaysWritable) {
  float element = 1;
  const auto managed = usm_dlpack::to_managed_tensor(scalar_view(&element), some_device, 0);
  EXPECT_EQ(managed->flags, 0U);
  EXPECT_EQ(to_mdspan<scalar_view>(*managed).data_handle(), &element);
}

TEST(EdgeCases, AReadOnlyScalarIsRefusedForMutableElements) {
  const float element = 1;
  using const_scalar = md::mdspan<const float, md::extents<int>>;
  const auto managed = usm_dlpack::to_managed_tensor(const_scalar(&element), some_device, 0);
  EXPECT_REFUSAL(to_mdspan<scalar_view>(*managed), errc::read_only, "flags",
                 "writable memory for a view of mutable elements", "read-only memory");
}

TEST(EdgeCases, IsCopiedChangesNothingForAView) {
  valid_managed_tensor received;
  received.managed.flags = usm_dlpack::flag::is_copied;
  EXPECT_EQ(to_mdspan<plain_view>(received.managed).data_handle(),
            received.valid.elements.data());
}

// What every consumer takes: data at the first element, no offset, strides filled, a deleter.
TEST(EdgeCases, AManagedTensorHasTheProfileThatEveryConsumerTakes) {
  std::array<float, 6> elements{};
  const md::mdspan<const float, md::dextents<int, 2>> view(elements.data(), 2, 3);
  const auto managed = usm_dlpack::to_managed_tensor(view, some_device, 0);
  EXPECT_EQ(managed->dl_tensor.data, elements.data());
  EXPECT_EQ(managed->dl_tensor.byte_offset, 0U);
  ASSERT_NE(managed->dl_tensor.strides, nullptr);
  EXPECT_EQ(managed->dl_tensor.strides[1], 1);
  EXPECT_NE(managed->deleter, nullptr);
}

}  // namespace
