// SPDX-License-Identifier: Apache-2.0
//
// The span of a tensor against an oracle that visits every bit of every element: thousands of
// small tensors from a fixed seed.
#include <valid_tensor.hpp>

#include <usm_dlpack/core/structure.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using usm_dlpack::subbyte;
namespace type_code = usm_dlpack::type_code;

/// The bits of a tensor relative to its first element, one by one.
struct visited_bits {
  std::set<std::int64_t> bits;
  bool overlap = false;
  std::int64_t elements = 0;
};

void visit(const DLTensor& tensor, std::int64_t bits, std::int64_t offset, std::size_t r,
           visited_bits& visited) {
  if (r == static_cast<std::size_t>(tensor.ndim)) {
    ++visited.elements;
    for (std::int64_t bit = 0; bit < bits; ++bit) {
      visited.overlap = !visited.bits.insert(offset * bits + bit).second || visited.overlap;
    }
    return;
  }
  for (std::int64_t i = 0; i < tensor.shape[r]; ++i) {
    visit(tensor, bits, offset + i * tensor.strides[r], r + 1, visited);
  }
}

std::int64_t byte_of(std::int64_t bit) { return bit >= 0 ? bit / 8 : -((7 - bit) / 8); }

struct random_tensor {
  std::array<std::int64_t, 4> shape{};
  std::array<std::int64_t, 4> strides{};
  DLTensor tensor{};
  subbyte storage = subbyte::packed;

  explicit random_tensor(std::mt19937& random) {
    // mt19937 gives the same numbers everywhere, the standard distributions do not.
    const auto below = [&](unsigned count) {
      return static_cast<std::int64_t>(random() % count);
    };
    constexpr std::array<DLDataType, 8> dtypes{{
        {kDLUInt, 8, 1},
        {kDLFloat, 16, 1},
        {kDLInt, 24, 1},
        {kDLFloat, 32, 2},
        {type_code::float4_e2m1fn, 4, 1},
        {type_code::float6_e2m3fn, 6, 1},
        {kDLUInt, 1, 1},
        {type_code::float4_e2m1fn, 4, 3},
    }};
    tensor.dtype = dtypes[static_cast<std::size_t>(below(8))];
    storage = below(2) == 0 ? subbyte::packed : subbyte::padded;
    tensor.device = usm_dlpack_test::some_device;
    tensor.ndim = static_cast<std::int32_t>(below(5));
    for (std::size_t r = 0; r < 4; ++r) {
      shape[r] = below(16) == 0 ? 0 : 1 + below(4);
      strides[r] = below(25) - 12;
    }
    tensor.data = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  random_tensor(const random_tensor&) = delete;
  random_tensor& operator=(const random_tensor&) = delete;

  std::string description() const {
    std::ostringstream text;
    text << usm_dlpack::to_string(tensor.dtype)
         << (storage == subbyte::padded ? " padded" : "");
    for (std::size_t r = 0; r < static_cast<std::size_t>(tensor.ndim); ++r) {
      text << ", extent " << shape[r] << " stride " << strides[r];
    }
    return text.str();
  }
};

std::int64_t element_bits(const random_tensor& random) {
  const bool padded = random.storage == subbyte::padded && random.tensor.dtype.bits < 8;
  return (padded ? 8 : random.tensor.dtype.bits) * random.tensor.dtype.lanes;
}

TEST(StructureOracle, SpansExactlyTheBytesThatElementsTouch) {
  std::mt19937 random(20260131);
  int proved = 0;
  int overlapping = 0;
  int empty = 0;
  for (int repeat = 0; repeat < 4000; ++repeat) {
    const random_tensor sample(random);
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, sample.description());
    visited_bits visited;
    visit(sample.tensor, element_bits(sample), 0, 0, visited);
    const auto structure = usm_dlpack::check_structure(sample.tensor, sample.storage);
    ASSERT_EQ(structure.empty, visited.elements == 0);
    if (structure.empty) {
      ++empty;
      ASSERT_EQ(structure.nbytes, 0U);
      continue;
    }
    const std::int64_t lowest = byte_of(*visited.bits.begin());
    const std::int64_t past_end = byte_of(*visited.bits.rbegin()) + 1;
    const auto first = reinterpret_cast<std::uintptr_t>(sample.tensor.data);
    ASSERT_EQ(structure.first, first);
    ASSERT_EQ(structure.lowest, first + static_cast<std::uintptr_t>(lowest));
    ASSERT_EQ(structure.nbytes, static_cast<std::uint64_t>(past_end - lowest));
    ASSERT_FALSE(structure.unique && visited.overlap) << "proved what is not so";
    proved += structure.unique ? 1 : 0;
    overlapping += visited.overlap ? 1 : 0;
  }
  EXPECT_GT(proved, 500) << "the samples must reach both answers";
  EXPECT_GT(overlapping, 500);
  EXPECT_GT(empty, 100);
}

TEST(StructureOracle, ProvesThatPermutedCompactTensorsDoNotOverlap) {
  std::mt19937 random(7);
  for (int repeat = 0; repeat < 500; ++repeat) {
    random_tensor sample(random);
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t r = 3; r > 0; --r) {
      std::swap(order[r], order[random() % (r + 1)]);
    }
    std::int64_t product = 1;
    for (const std::size_t r : order) {
      sample.strides[r] = random() % 2 == 0 ? product : -product;
      product *=
          std::max<std::int64_t>(sample.shape[r], 1) + static_cast<std::int64_t>(random() % 2);
    }
    EXPECT_TRUE(usm_dlpack::check_structure(sample.tensor, sample.storage).unique)
        << sample.description();
  }
}

TEST(StructureOracle, TakesNullStridesAsTheOnesThatItWrites) {
  std::mt19937 random(11);
  for (int repeat = 0; repeat < 500; ++repeat) {
    random_tensor sample(random);
    usm_dlpack::detail::write_compact_strides(sample.shape.data(), sample.strides.data(),
                                              static_cast<std::size_t>(sample.tensor.ndim));
    const auto written = usm_dlpack::check_structure(sample.tensor, sample.storage);
    sample.tensor.strides = nullptr;
    const auto null = usm_dlpack::check_structure(sample.tensor, sample.storage);
    EXPECT_EQ(null.lowest, written.lowest) << sample.description();
    EXPECT_EQ(null.nbytes, written.nbytes) << sample.description();
    EXPECT_EQ(null.unique, written.unique) << sample.description();
  }
}

}  // namespace
