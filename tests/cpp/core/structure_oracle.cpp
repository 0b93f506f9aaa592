// SPDX-License-Identifier: Apache-2.0
//
// `check_structure` against the oracle of the fuzzers, which visits every bit of every
// element: tensors from a fixed seed, and the seeds that fuzzing found. A disagreement ends
// the process.
#include "../../fuzz/fuzz_structure.cpp"

#include <valid_tensor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

namespace {

TEST(StructureOracle, AgreesOnRandomTensors) {
  std::mt19937 random(20260131);  // the same numbers everywhere
  std::array<std::uint8_t, 96> bytes{};
  for (int repeat = 0; repeat < 20000; ++repeat) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

TEST(StructureOracle, AgreesOnWhatFuzzingFound) {
  const std::filesystem::path file(__FILE__);
  const auto corpus = file.parent_path() / "../../fuzz/corpus/fuzz_structure";
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++seeds;
  }
  EXPECT_GT(seeds, 0);
}

TEST(StructureOracle, ProvesThatPermutedTensorsWithGapsDoNotOverlap) {
  std::mt19937 random(7);
  for (int repeat = 0; repeat < 500; ++repeat) {
    usm_dlpack_test::valid_tensor valid;
    std::array<std::int64_t, 4> shape{};
    std::array<std::int64_t, 4> strides{};
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t r = 3; r > 0; --r) std::swap(order[r], order[random() % (r + 1)]);
    std::int64_t product = 1;
    for (const std::size_t r : order) {
      shape[r] = 1 + static_cast<std::int64_t>(random() % 4);
      strides[r] = random() % 2 == 0 ? product : -product;
      product *= shape[r] + static_cast<std::int64_t>(random() % 2);
    }
    valid.tensor.ndim = 4;
    valid.tensor.shape = shape.data();
    valid.tensor.strides = strides.data();
    EXPECT_TRUE(usm_dlpack::check_structure(valid.tensor).unique) << repeat;
  }
}

}  // namespace
