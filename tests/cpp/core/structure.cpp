// SPDX-License-Identifier: Apache-2.0
//
// What `check_structure` says where the oracle of tests/fuzz/ does not look: tensors of any
// rank, the ends of the address space, names of device types.
#include <allocation_counter.hpp>
#include <valid_tensor.hpp>

namespace test_structure {

using namespace usm_dlpack_test;

// A stride may lie between what the smaller ones reach and the extent of the next smaller one.
TEST(Structure, ProvesThatNoElementsOverlapThoughStridesAreNotNested) {
  EXPECT_TRUE(check_structure(strided_tensor({2, 2, 2}, {5, 1, -3}).tensor).unique);
  EXPECT_FALSE(check_structure(strided_tensor({2, 2, 2}, {3, 1, -3}).tensor).unique);
}

TEST(Structure, TakesAnyRankWithoutTheHeap) {
  for (const std::size_t rank : {0U, 1U, 8U, 64U, 65U, 4096U}) {
    std::vector<std::int64_t> shape(rank, 1);
    std::vector<std::int64_t> strides(rank, -7);
    std::int64_t step = 1;  // up to 61 dimensions of extent 2 in front, each twice as far
    for (std::size_t r = 0; r < rank && r < 61; ++r, step *= 2) {
      shape[r] = 2;
      strides[r] = step;
    }
    strided_tensor sample(shape, strides);
    sample.tensor.dtype = {kDLUInt, 8, 1};
    const allocation_count heap;
    const tensor_structure structure = check_structure(sample.tensor);
    EXPECT_EQ(heap.made(), 0U) << rank;
    EXPECT_TRUE(structure.unique) << rank;
    EXPECT_EQ(structure.nbytes, static_cast<std::uint64_t>(step)) << rank;
  }
}

TEST(Structure, TakesWhatLiesBetweenAddressZeroAndTheLastOne) {
  valid_tensor valid;
  valid.strides = {-3, -1};
  valid.tensor.data = reinterpret_cast<void*>(std::uintptr_t{24});
  EXPECT_EQ(check_structure(valid.tensor).lowest, 4U);
  valid.tensor.data = reinterpret_cast<void*>(std::uintptr_t{20});  // the lowest is at 0
  EXPECT_REFUSAL(check_structure(valid.tensor), errc::out_of_range, "strides");
  for (const std::int64_t sign : {1, -1}) {  // the first element is the lowest, or in between
    valid.tensor.dtype = {kDLUInt, 8, 1};
    valid.strides = {3 * sign, 1};
    const std::uintptr_t last = ~std::uintptr_t{0} - (sign < 0 ? 3 : 6);
    valid.tensor.data = reinterpret_cast<void*>(last);
    EXPECT_EQ(check_structure(valid.tensor).nbytes, 6U);
    valid.tensor.data = reinterpret_cast<void*>(last + 1);
    EXPECT_REFUSAL(check_structure(valid.tensor), errc::out_of_range, "strides");
  }
}

TEST(Structure, NamesDeviceTypesFromTheFirstToTheLastOfDlpack) {
  using detail::device_type_name;
  EXPECT_EQ(device_type_name(std::numeric_limits<std::int32_t>::min()),
            "unknown (-2147483648)");
  EXPECT_EQ(device_type_name(0), "unknown (0)");
  EXPECT_EQ(device_type_name(1), "kDLCPU (1)");
  EXPECT_EQ(device_type_name(13), "kDLCUDAManaged (13)");
  EXPECT_EQ(device_type_name(14), "kDLOneAPI (14)");
  EXPECT_EQ(device_type_name(18), "kDLTrn (18)");
  EXPECT_EQ(device_type_name(19), "unknown (19)");
}

}  // namespace test_structure
