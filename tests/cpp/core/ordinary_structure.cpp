// SPDX-License-Identifier: Apache-2.0
//
// The pass over ordinary tensors answers as the whole check does: thousands of tensors of the
// numbers at which sums and products overflow, from a fixed seed.
#include <valid_tensor.hpp>

#include <usm_dlpack/structure.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace {

using usm_dlpack::conversion_error;
using usm_dlpack::errc;
using usm_dlpack::subbyte;
using usm_dlpack::tensor_structure;
using usm_dlpack::detail::check_structure_in_full;
using usm_dlpack::detail::commonness;
using usm_dlpack::detail::is_ordinary_structure;

constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t two_to(unsigned power) { return std::uint64_t{1} << power; }

struct outcome {
  tensor_structure structure;
  std::string refusal;
};

template <class Check>
outcome outcome_of(Check check) {
  outcome found;
  try {
    check(found.structure);
  } catch (const conversion_error& refused) {
    found = {{}, refused.what()};
  }
  return found;
}

/// @returns what check_structure says, after a comparison with the whole check
outcome expect_the_whole_answer(const DLTensor& tensor, subbyte storage = subbyte::packed) {
  const outcome found = outcome_of([&](tensor_structure& structure) {
    structure = usm_dlpack::check_structure(tensor, storage);
  });
  const outcome whole = outcome_of([&](tensor_structure& structure) {
    check_structure_in_full(tensor, storage, structure);
  });
  EXPECT_EQ(found.refusal, whole.refusal);
  EXPECT_EQ(found.structure.first, whole.structure.first);
  EXPECT_EQ(found.structure.lowest, whole.structure.lowest);
  EXPECT_EQ(found.structure.nbytes, whole.structure.nbytes);
  EXPECT_EQ(found.structure.empty, whole.structure.empty);
  EXPECT_EQ(found.structure.unique, whole.structure.unique);
  return found;
}

bool is_ordinary(const DLTensor& tensor) {
  std::uintptr_t first = 0;
  std::uint64_t nbytes = 0;
  return is_ordinary_structure<commonness::common>(tensor, first, nbytes) ||
         is_ordinary_structure<commonness::rare>(tensor, first, nbytes);
}

/// One of some numbers; mt19937 gives the same everywhere, the standard distributions do not.
template <class Number, std::size_t Count>
Number one_of(const std::array<Number, Count>& numbers, std::mt19937& random) {
  return numbers[random() % Count];
}

TEST(OrdinaryStructure, AnswersAsTheWholeCheckDoesOfNumbersThatOverflow) {
  constexpr std::array<std::int64_t, 16> extents{
      least, -1, 0, 1,          1,          2,          2,          2,
      3,     3,  7, two_to(20), two_to(39), two_to(40), two_to(62), most};
  constexpr std::array<std::int64_t, 20> strides{
      least, -2, -1, 0,  0,          1,          1,          1,          2,          2,
      3,     4,  6,  21, two_to(20), two_to(39), two_to(40), two_to(61), two_to(62), most};
  constexpr std::array<std::uint64_t, 14> addresses{0,
                                                    1,
                                                    2,
                                                    8,
                                                    16,
                                                    two_to(20),
                                                    two_to(47),
                                                    two_to(61) - 16,
                                                    two_to(61),
                                                    two_to(62),
                                                    two_to(63) - 16,
                                                    two_to(63),
                                                    std::uint64_t{0} - 16,
                                                    std::uint64_t{0} - 1};
  constexpr std::array<DLDataType, 12> dtypes{{{kDLUInt, 8, 1},
                                               {kDLFloat, 32, 1},
                                               {kDLFloat, 32, 1},
                                               {kDLComplex, 128, 1},
                                               {kDLInt, 24, 1},
                                               {kDLUInt, 248, 65535},
                                               {kDLUInt, 4, 1},
                                               {kDLFloat, 8, 1},
                                               {kDLBool, 8, 0},
                                               {kDLInt, 0, 1},
                                               {200, 8, 1},
                                               {17, 4, 3}}};
  std::mt19937 random(20261123);
  int ordinary = 0;
  int taken = 0;
  int refused = 0;
  for (int repeat = 0; repeat < 50000; ++repeat) {
    std::array<std::int64_t, 4> shape{};
    std::array<std::int64_t, 4> steps{};
    for (std::size_t r = 0; r < 4; ++r) {
      shape[r] = one_of(extents, random);
      steps[r] = one_of(strides, random);
    }
    DLTensor tensor{};
    tensor.dtype = one_of(dtypes, random);
    tensor.ndim = static_cast<std::int32_t>(random() % 6) - 1;
    tensor.shape = random() % 16 == 0 ? nullptr : shape.data();
    tensor.strides = random() % 16 == 0 ? nullptr : steps.data();
    tensor.data = reinterpret_cast<void*>(one_of(addresses, random));
    tensor.byte_offset = random() % 2 == 0 ? 0 : one_of(addresses, random);
    const outcome found =
        expect_the_whole_answer(tensor, random() % 2 == 0 ? subbyte::packed : subbyte::padded);
    ordinary += is_ordinary(tensor) ? 1 : 0;
    taken += found.refusal.empty() ? 1 : 0;
    refused += found.refusal.empty() ? 0 : 1;
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat;
  }
  EXPECT_GT(ordinary, 1000) << "the samples must reach every answer";
  EXPECT_GT(taken - ordinary, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(OrdinaryStructure, IsThatOfTensorsInEitherOrderOfSlicesAndOfSwappedDimensions) {
  usm_dlpack_test::valid_tensor sample;
  EXPECT_TRUE(is_ordinary(sample.tensor));
  for (const std::array<std::int64_t, 2> strides :
       {std::array<std::int64_t, 2>{1, 2}, {6, 2}, {8, 1}, {2, 4}}) {
    sample.strides = strides;
    EXPECT_TRUE(is_ordinary(sample.tensor)) << strides[0] << ", " << strides[1];
  }
  std::array<std::int64_t, 4> shape{2, 3, 1, 4};
  std::array<std::int64_t, 4> strides{4, 8, 0, 1};
  sample.tensor.ndim = 4;
  sample.tensor.shape = shape.data();
  sample.tensor.strides = strides.data();
  EXPECT_TRUE(is_ordinary(sample.tensor));
  std::array<std::int64_t, 9> many{2, 1, 1, 1, 1, 1, 1, 1, 3};
  std::array<std::int64_t, 9> columns{1, 2, 2, 2, 2, 2, 2, 2, 2};
  sample.tensor.ndim = 9;
  sample.tensor.shape = many.data();
  sample.tensor.strides = columns.data();
  EXPECT_TRUE(is_ordinary(sample.tensor)) << "in order, so there is nothing to sort";
  sample.tensor.ndim = 0;
  EXPECT_TRUE(is_ordinary(sample.tensor));
  sample.tensor.shape = nullptr;
  sample.tensor.strides = nullptr;
  EXPECT_TRUE(is_ordinary(sample.tensor));
}

TEST(OrdinaryStructure, EndsWhereSumsAndProductsNeedMoreRoom) {
  usm_dlpack_test::valid_tensor sample;
  const auto is_ordinary_at = [&](std::uint64_t data, std::uint64_t offset,
                                  std::uint64_t extent) {
    std::int64_t one = 1;
    auto count = static_cast<std::int64_t>(extent);
    DLTensor tensor = sample.tensor;
    tensor.ndim = 1;
    tensor.shape = &count;
    tensor.strides = &one;
    tensor.data = reinterpret_cast<void*>(data);
    tensor.byte_offset = offset;
    expect_the_whole_answer(tensor);
    return is_ordinary(tensor);
  };
  EXPECT_TRUE(is_ordinary_at(two_to(61), two_to(61) - 4, two_to(40)));
  EXPECT_FALSE(is_ordinary_at(two_to(61) + 4, 0, 1));
  EXPECT_FALSE(is_ordinary_at(4, two_to(61), 1));
  EXPECT_FALSE(is_ordinary_at(4, 0, two_to(40) + 1));
  EXPECT_FALSE(is_ordinary_at(0, 4, 1)) << "null data";
  EXPECT_FALSE(is_ordinary_at(4, 0, 0));
  EXPECT_FALSE(is_ordinary_at(4, 2, 1)) << "misaligned";
}

}  // namespace
