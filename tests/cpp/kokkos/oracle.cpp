// SPDX-License-Identifier: Apache-2.0
//
// `check_structure` and `to_mdspan` against the oracle of the fuzzer: on every dtype, on
// tensors from a fixed seed, and on what fuzzing found. A disagreement on a tensor ends the
// process.
#include "../../fuzz/fuzz_tensors.cpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace {

TEST(Oracle, AgreesOnEveryDtype) {
  for (int number = 0; number < 256 * 256 * 3; ++number) {
    const DLDataType dtype{static_cast<std::uint8_t>(number % 256),
                           static_cast<std::uint8_t>(number / 256 % 256),
                           static_cast<std::uint16_t>(number / 65536)};
    const bool known = oracle_knows_dtype(dtype);
    ASSERT_EQ(usm_dlpack::detail::dtype_is_known(dtype), known)
        << usm_dlpack::to_string(dtype);
    const auto mask = static_cast<wide>(usm_dlpack::detail::alignment_mask(dtype));
    ASSERT_TRUE(!known || mask == oracle_alignment(dtype) - 1) << usm_dlpack::to_string(dtype);
  }
}

TEST(Oracle, AgreesOnRandomTensors) {
  std::mt19937 random(20260131);  // the same numbers everywhere
  std::array<std::uint8_t, 96> bytes{};
  for (int repeat = 0; repeat < 100000; ++repeat) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

// ctest runs this program at the root of the project.
TEST(Oracle, AgreesOnWhatFuzzingFound) {
  int seeds = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/fuzz/corpus/fuzz_tensors")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++seeds;
  }
  EXPECT_GT(seeds, 0);
}

}  // namespace
