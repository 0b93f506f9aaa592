// SPDX-License-Identifier: Apache-2.0
//
// Each rule of a well-formed DLTensor, the order in which they are checked, and the bytes that
// a tensor spans.
#include <allocation_counter.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/structure.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using usm_dlpack::check_structure;
using usm_dlpack::errc;
using usm_dlpack::subbyte;
using usm_dlpack::tensor_structure;
using usm_dlpack_test::valid_managed_tensor;
using usm_dlpack_test::valid_tensor;
namespace type_code = usm_dlpack::type_code;

constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();
constexpr auto address_max = std::numeric_limits<std::uintptr_t>::max();

std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
void* pointer(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

constexpr DLDataType float4{type_code::float4_e2m1fn, 4, 1};

// --- What is taken
// --------------------------------------------------------------------------------------

TEST(Structure, DescribesAValidTensor) {
  const valid_tensor valid;
  const tensor_structure structure = check_structure(valid.tensor);
  EXPECT_EQ(structure.first, address(valid.elements.data()));
  EXPECT_EQ(structure.lowest, address(valid.elements.data()));
  EXPECT_EQ(structure.nbytes, 24U);
  EXPECT_FALSE(structure.empty);
  EXPECT_TRUE(structure.unique);
}

TEST(Structure, AddsTheByteOffset) {
  valid_tensor valid;
  valid.tensor.byte_offset = 4;
  EXPECT_EQ(check_structure(valid.tensor).first, address(&valid.elements[1]));
  EXPECT_EQ(check_structure(valid.tensor).lowest, address(&valid.elements[1]));
}

TEST(Structure, TakesNullStridesAsCompactRowMajor) {
  valid_tensor valid;
  valid.tensor.strides = nullptr;
  EXPECT_EQ(check_structure(valid.tensor).nbytes, 24U);
  EXPECT_TRUE(check_structure(valid.tensor).unique);
}

TEST(Structure, TakesNullShapeAndStridesOfRankZero) {
  valid_tensor valid;
  valid.tensor.ndim = 0;
  valid.tensor.shape = nullptr;
  valid.tensor.strides = nullptr;
  const tensor_structure structure = check_structure(valid.tensor);
  EXPECT_EQ(structure.nbytes, 4U);
  EXPECT_FALSE(structure.empty);
  EXPECT_TRUE(structure.unique);
}

TEST(Structure, TakesAnyStrideWhereTheExtentIsOne) {
  for (const std::int64_t stride : {std::int64_t{0}, std::int64_t{-1}, int64_max, int64_min}) {
    valid_tensor valid;
    valid.shape[0] = 1;
    valid.strides[0] = stride;
    EXPECT_EQ(check_structure(valid.tensor).nbytes, 12U) << stride;
    EXPECT_TRUE(check_structure(valid.tensor).unique) << stride;
  }
}

TEST(Structure, TakesNegativeStridesDownToTheLowestElement) {
  valid_tensor valid;
  valid.strides = {-3, -1};
  valid.tensor.byte_offset = 5 * sizeof(float);
  const tensor_structure structure = check_structure(valid.tensor);
  EXPECT_EQ(structure.first, address(&valid.elements[5]));
  EXPECT_EQ(structure.lowest, address(valid.elements.data()));
  EXPECT_EQ(structure.nbytes, 24U);
  EXPECT_TRUE(structure.unique);
}

TEST(Structure, TakesABroadcastAndSaysThatElementsMayOverlap) {
  valid_tensor valid;
  valid.shape = {std::int64_t{1} << 32, std::int64_t{1} << 32};
  valid.strides = {0, 0};
  EXPECT_EQ(check_structure(valid.tensor).nbytes, 4U);
  EXPECT_FALSE(check_structure(valid.tensor).unique);
}

TEST(Structure, TakesAnEmptyTensorWithAndWithoutData) {
  for (const bool with_data : {false, true}) {
    valid_tensor valid;
    valid.shape[1] = 0;
    valid.tensor.data = with_data ? valid.elements.data() : nullptr;
    const tensor_structure structure = check_structure(valid.tensor);
    EXPECT_EQ(structure.first, address(valid.tensor.data));
    EXPECT_EQ(structure.nbytes, 0U);
    EXPECT_TRUE(structure.empty);
    EXPECT_TRUE(structure.unique);
  }
}

TEST(Structure, DoesNotLookAtStridesOrAlignmentOfAnEmptyTensor) {
  valid_tensor valid;
  valid.shape = {0, int64_max};
  valid.strides = {int64_max, int64_min};
  valid.tensor.byte_offset = 1;
  EXPECT_TRUE(check_structure(valid.tensor).empty);
}

TEST(Structure, DoesNotLookAtTheDevice) {
  valid_tensor valid;
  valid.tensor.device = {kDLCUDA, -7};
  EXPECT_EQ(check_structure(valid.tensor).nbytes, 24U);
}

TEST(Structure, CountsLanes) {
  valid_tensor valid;
  valid.tensor.dtype.lanes = 3;
  valid.shape = {2, 1};
  valid.strides = {1, 1};
  EXPECT_EQ(check_structure(valid.tensor).nbytes, 24U);
}

TEST(Structure, RoundsPackedElementsOutwardsToBytes) {
  std::array<unsigned char, 16> bytes{};
  std::int64_t extent = 5;
  std::int64_t stride = 1;
  const DLTensor tensor{
      bytes.data() + 8, usm_dlpack_test::some_device, 1, float4, &extent, &stride, 0};
  EXPECT_EQ(check_structure(tensor).nbytes, 3U);
  EXPECT_EQ(check_structure(tensor, subbyte::padded).nbytes, 5U);

  stride = -1;
  EXPECT_EQ(check_structure(tensor).lowest, address(bytes.data() + 6));
  EXPECT_EQ(check_structure(tensor).nbytes, 3U);
  EXPECT_EQ(check_structure(tensor, subbyte::padded).lowest, address(bytes.data() + 4));
  EXPECT_EQ(check_structure(tensor, subbyte::padded).nbytes, 5U);
}

TEST(Structure, TakesDtypesNewerThanDlpack10) {
  for (const auto code :
       {type_code::float8_e3m4, type_code::float8_e4m3fn, type_code::float8_e8m0fnu}) {
    valid_tensor valid;
    valid.tensor.dtype = {code, 8, 1};
    EXPECT_EQ(check_structure(valid.tensor).nbytes, 6U);
  }
}

TEST(Structure, TakesATensorThatEndsWithTheAddressSpace) {
  valid_tensor valid;
  valid.tensor.dtype = {kDLUInt, 8, 1};
  valid.tensor.data = pointer(address_max - 6);
  EXPECT_EQ(check_structure(valid.tensor).nbytes, 6U)
      << "one past the end is the last address";
}

// --- Each rule
// ------------------------------------------------------------------------------------------

TEST(Structure, RefusesNegativeNdim) {
  valid_tensor valid;
  valid.tensor.ndim = -1;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::ndim_out_of_range, "ndim",
                 "0 or more dimensions", "-1");
  valid.tensor.ndim = std::numeric_limits<std::int32_t>::min();
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::ndim_out_of_range, "ndim",
                 "0 or more dimensions", "-2147483648");
}

TEST(Structure, RefusesNullShape) {
  valid_tensor valid;
  valid.tensor.shape = nullptr;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::shape_null, "shape",
                 "an array of ndim extents", "null with ndim 2");
}

TEST(Structure, RefusesADtypeThatDlpackDoesNotDefine) {
  const auto refusal_of = [](DLDataType dtype, const std::string& found) {
    valid_tensor valid;
    valid.tensor.dtype = dtype;
    EXPECT_REFUSAL(check_structure(valid.tensor), errc::dtype_unsupported, "dtype",
                   "a dtype of DLPack 1.3", found);
  };
  refusal_of({18, 8, 1}, "unknown (code 18, bits 8, lanes 1)");
  refusal_of({kDLInt, 0, 1}, "int (code 0, bits 0, lanes 1)");
  refusal_of({kDLFloat, 32, 0}, "float32x0 (code 2, bits 32, lanes 0)");
  refusal_of({kDLBool, 1, 1}, "bool1 (code 6, bits 1, lanes 1)");
  refusal_of({kDLComplex, 40, 1}, "complex40 (code 5, bits 40, lanes 1)");
  refusal_of({type_code::float6_e2m3fn, 8, 1}, "float6_e2m3fn8 (code 15, bits 8, lanes 1)");
}

TEST(Structure, RefusesANegativeExtent) {
  valid_tensor valid;
  valid.shape[1] = -3;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::shape_negative, "shape[1]",
                 "an extent of 0 or more elements", "-3");
  valid.shape[0] = int64_min;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::shape_negative, "shape[0]",
                 "an extent of 0 or more elements", "-9223372036854775808");
}

TEST(Structure, RefusesANegativeExtentBesideAnEmptyOne) {
  valid_tensor valid;
  valid.shape = {0, -1};
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::shape_negative, "shape[1]",
                 "an extent of 0 or more elements", "-1");
}

TEST(Structure, RefusesNullDataOfATensorWithElements) {
  valid_tensor valid;
  valid.tensor.data = nullptr;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::data_null, "data",
                 "the address of the elements", "null");
  valid.tensor.byte_offset = 4096;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::data_null, "data",
                 "the address of the elements", "null");
}

void expect_span_refused(const DLTensor& tensor) {
  EXPECT_REFUSAL(check_structure(tensor), errc::span_overflow, "strides",
                 "a view that the address space can hold", "offsets beyond it");
}

TEST(Structure, RefusesOffsetsBeyondInt64Elements) {
  valid_tensor valid;
  valid.shape[0] = 3;
  valid.strides[0] = int64_max;
  expect_span_refused(valid.tensor);
  valid.strides[0] = int64_min;
  expect_span_refused(valid.tensor);
}

TEST(Structure, RefusesOffsetsBeyondInt64Bytes) {
  valid_tensor valid;
  valid.strides[0] = int64_max / 4 + 1;
  expect_span_refused(valid.tensor);
  valid.strides[0] = int64_min / 4 - 1;
  expect_span_refused(valid.tensor);
}

TEST(Structure, RefusesACompactShapeWhoseProductOverflows) {
  valid_tensor valid;
  valid.tensor.strides = nullptr;
  valid.shape = {std::int64_t{1} << 32, std::int64_t{1} << 32};
  expect_span_refused(valid.tensor);
}

TEST(Structure, RefusesAViewThatEndsBeyondTheAddressSpace) {
  valid_tensor valid;
  valid.tensor.data = pointer(address_max - 15);
  expect_span_refused(valid.tensor);
}

TEST(Structure, RefusesAViewThatBeginsBeforeTheAddressSpace) {
  valid_tensor valid;
  valid.tensor.data = pointer(8);
  valid.strides = {-3, -1};
  expect_span_refused(valid.tensor);
}

TEST(Structure, RefusesAnElementAtAddressZeroAsNoObjectStandsThere) {
  valid_tensor valid;
  valid.strides = {-3, -1};
  valid.tensor.data = pointer(20);  // the lowest element is null
  expect_span_refused(valid.tensor);
  valid.tensor.data = pointer(24);
  EXPECT_EQ(check_structure(valid.tensor).lowest, 4U);
  valid.shape = {0, 3};
  valid.tensor.data = pointer(20);
  EXPECT_TRUE(check_structure(valid.tensor).empty);
}

TEST(Structure, TakesAnyRankWithoutTheHeap) {
  for (const std::size_t rank : {0U, 1U, 8U, 64U, 65U, 4096U}) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, std::to_string(rank));
    std::vector<std::int64_t> shape(rank, 1);
    std::vector<std::int64_t> strides(rank, -7);
    valid_tensor valid;
    valid.tensor.ndim = static_cast<std::int32_t>(rank);
    valid.tensor.shape = shape.data();
    valid.tensor.strides = strides.data();
    std::int64_t step = 1;  // up to 61 dimensions of extent 2 in front, each twice as far
    for (std::size_t r = 0; r < rank && r < 61; ++r, step *= 2) {
      shape[r] = 2;
      strides[r] = step;
    }
    valid.tensor.dtype = {kDLUInt, 8, 1};
    const usm_dlpack_test::allocation_count heap;
    const tensor_structure structure = check_structure(valid.tensor);
    EXPECT_EQ(heap.made(), 0U);
    EXPECT_TRUE(structure.unique);
    EXPECT_EQ(structure.nbytes, static_cast<std::uint64_t>(step));
  }
}

TEST(Structure, RefusesAByteOffsetThatWrapsTheAddress) {
  valid_tensor valid;
  valid.tensor.byte_offset = std::numeric_limits<std::uint64_t>::max() - 3;
  expect_span_refused(valid.tensor);
  valid.shape[0] = 0;
  expect_span_refused(valid.tensor);
}

TEST(Structure, RefusesAFirstElementThatIsNotAligned) {
  valid_tensor valid;
  valid.tensor.byte_offset = 2;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 4 bytes", "2 bytes past such an address");
  valid.tensor.dtype = {kDLComplex, 128, 1};
  valid.tensor.byte_offset = 12;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 8 bytes", "4 bytes past such an address");
  valid.tensor.dtype = {kDLInt, 128, 1};
  valid.tensor.byte_offset = 8;
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::data_misaligned, "byte_offset",
                 "data + byte_offset aligned to 16 bytes", "8 bytes past such an address");
}

TEST(Structure, TakesAnOddAddressAndOffsetThatMakeAnAlignedOne) {
  valid_tensor valid;
  valid.tensor.data = pointer(address(valid.elements.data()) - 3);
  valid.tensor.byte_offset = 3;
  EXPECT_EQ(check_structure(valid.tensor).first, address(valid.elements.data()));
}

// --- The order
// ------------------------------------------------------------------------------------------

TEST(Structure, RefusesAtTheFirstBrokenRule) {
  valid_tensor valid;
  const auto refused_with = [&](errc code) {
    try {
      check_structure(valid.tensor);
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_STREQ(to_string(error.code()), to_string(code));
      return;
    }
    ADD_FAILURE() << "expected " << to_string(code) << ", found no refusal";
  };
  // All rules are broken, and then mended one after the other.
  valid.tensor.ndim = -1;
  valid.tensor.shape = nullptr;
  valid.tensor.dtype.code = 18;
  valid.shape = {2, -3};
  valid.tensor.data = nullptr;
  valid.strides[0] = int64_max;
  valid.tensor.byte_offset = 1;
  refused_with(errc::ndim_out_of_range);
  valid.tensor.ndim = 2;
  refused_with(errc::shape_null);
  valid.tensor.shape = valid.shape.data();
  refused_with(errc::dtype_unsupported);
  valid.tensor.dtype.code = kDLFloat;
  refused_with(errc::shape_negative);
  valid.shape[1] = 3;
  refused_with(errc::data_null);
  valid.tensor.data = valid.elements.data();
  refused_with(errc::span_overflow);
  valid.strides[0] = 3;
  refused_with(errc::data_misaligned);
  valid.tensor.byte_offset = 0;
  EXPECT_EQ(check_structure(valid.tensor).nbytes, 24U);
}

TEST(Structure, NumbersTheRulesInTheirOrder) {
  EXPECT_LT(errc::ndim_out_of_range, errc::shape_null);
  EXPECT_LT(errc::shape_null, errc::dtype_unsupported);
  EXPECT_LT(errc::dtype_unsupported, errc::shape_negative);
  EXPECT_LT(errc::shape_negative, errc::data_null);
  EXPECT_LT(errc::data_null, errc::span_overflow);
  EXPECT_LT(errc::span_overflow, errc::data_misaligned);
}

// --- The header of a managed tensor, and the device type
// ------------------------------------------------

TEST(Structure, TakesEveryMinorVersionAndKnownFlag) {
  valid_managed_tensor received;
  for (const std::uint32_t minor : {0U, 3U, 99U}) {
    received.managed.version.minor = minor;
    received.managed.flags = usm_dlpack::flag::all;
    EXPECT_NO_THROW(usm_dlpack::detail::check_header(received.managed));
  }
}

TEST(Structure, RefusesAnotherMajorVersionBeforeItReadsFlags) {
  valid_managed_tensor received;
  received.managed.flags = 8;
  for (const std::uint32_t major : {0U, 2U}) {
    received.managed.version.major = major;
    EXPECT_REFUSAL(usm_dlpack::detail::check_header(received.managed),
                   errc::version_unsupported, "version.major", "1", std::to_string(major));
  }
}

TEST(Structure, RefusesFlagsThatDlpackDoesNotDefine) {
  valid_managed_tensor received;
  received.managed.flags = 8 | 1;
  EXPECT_REFUSAL(usm_dlpack::detail::check_header(received.managed), errc::flags_unknown,
                 "flags", "bits of DLPACK_FLAG_BITMASK_* only", "8");
}

TEST(Structure, RefusesAnotherDeviceTypeByNameAndNumber) {
  const auto refusal_of = [](int type, const std::string& found) {
    valid_tensor valid;
    valid.tensor.device.device_type = static_cast<DLDeviceType>(type);
    EXPECT_REFUSAL(usm_dlpack::detail::check_device_type(valid.tensor),
                   errc::device_type_unsupported, "device.device_type", "kDLOneAPI (14)",
                   found);
  };
  refusal_of(kDLCPU, "kDLCPU (1)");
  refusal_of(kDLCUDA, "kDLCUDA (2)");
  refusal_of(kDLCUDAManaged, "kDLCUDAManaged (13)");
  refusal_of(kDLHexagon, "kDLHexagon (16)");
  refusal_of(0, "unknown (0)");
  refusal_of(5, "unknown (5)");
  refusal_of(18, "kDLTrn (18)");
  const valid_tensor valid;
  EXPECT_NO_THROW(usm_dlpack::detail::check_device_type(valid.tensor));
}

}  // namespace
