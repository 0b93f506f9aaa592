// SPDX-License-Identifier: Apache-2.0
//
// What DLPack allows and other libraries get wrong, on real USM, where no test of a header
// says it by name; and any tensor at all against what its allocation holds.
#include <usm_dlpack/usm_dlpack.hpp>

#include <refusal.hpp>

#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

namespace test_edge_cases {

using namespace usm_dlpack_test;
using sycl::usm::alloc;
using usm_dlpack::errc;
using usm_dlpack::validate;

TEST(EdgeCases, ALegacyManagedTensorIsProvedAsItsDlTensor) {
  usm_tensor valid(alloc::shared);
  int deleted = 0;
  DLManagedTensor legacy{};
  legacy.dl_tensor = valid.tensor;
  legacy.manager_ctx = &deleted;
  legacy.deleter = [](DLManagedTensor* self) { ++*static_cast<int*>(self->manager_ctx); };
  EXPECT_EQ(validate(legacy).usm_type(), alloc::shared);
  usm_dlpack::requirements wanted;
  wanted.ndim = 3;
  EXPECT_REFUSAL(validate(legacy, wanted), errc::rank_mismatch, "ndim",
                 "3 dimensions, as asked for", "2");
  legacy.deleter = nullptr;
  EXPECT_EQ(validate(legacy).data(), valid.memory.at());
  EXPECT_EQ(deleted, 0);
}

// What a consumer writes: own first, then look.
usm_dlpack::usm_allocation receive(DLManagedTensorVersioned* raw) {
  const usm_dlpack::managed_tensor received(raw);
  return validate(*received);
}

TEST(EdgeCases, AReceivedTensorIsLetGoOnceWhetherItIsTakenOrRefused) {
  usm_managed_tensor received;
  EXPECT_EQ(receive(&received.managed).usm_type(), alloc::device);
  EXPECT_EQ(received.deleted, 1);
  received.managed.version.major = 2;
  received.managed.dl_tensor = {};
  EXPECT_REFUSAL(receive(&received.managed), errc::version_unsupported, "version.major", "1",
                 "2");
  EXPECT_EQ(received.deleted, 2);
}

// CCCL imports const bfloat16 from a tensor of float16.
TEST(EdgeCases, ConstBfloat16IsNotFloat16) {
  usm_tensor valid;
  using view_type = md::mdspan<const sycl::ext::oneapi::bfloat16, md::dextents<int, 2>>;
  valid.tensor.dtype = {kDLBfloat, 16, 1};
  EXPECT_EQ(
      static_cast<const void*>(usm_dlpack::to_mdspan<view_type>(valid.tensor).data_handle()),
      valid.memory.at());
  valid.tensor.dtype = {kDLFloat, 16, 1};
  EXPECT_REFUSAL(usm_dlpack::to_mdspan<view_type>(valid.tensor), errc::dtype_mismatch, "dtype",
                 "bfloat16 (code 4, bits 16, lanes 1) for the view's element type",
                 "float16 (code 2, bits 16, lanes 1)");
}

TEST(EdgeCases, EveryAllocationIsTakenWhateverItsAlignmentOnOpencl) {
  std::vector<std::unique_ptr<usm_memory>> all;
  const sycl::queue queue = queue_on();
  bool below_256 = false;
  for (std::size_t n = 0; n < 64; ++n) {
    all.push_back(std::make_unique<usm_memory>(alloc::device, 64 + n, queue));
    below_256 = below_256 || reinterpret_cast<std::uintptr_t>(all.back()->at()) % 256 != 0;
    const auto view = view_of(all.back()->as<float>(), 16);
    const auto exported = usm_dlpack::to_dlpack_tensor(view, queue);
    EXPECT_EQ(validate(exported.get()).data(), all.back()->at());
  }
  EXPECT_TRUE(below_256) << "DLPack's 256 bytes are met by chance";
}

/// A tensor of any rank and dtype over an allocation, or reaching out of it.
struct random_usm_tensor {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  DLTensor tensor{};

  random_usm_tensor(std::mt19937& random, const usm_memory& memory) {
    // mt19937 gives the same numbers everywhere, the standard distributions do not.
    const auto below = [&](unsigned count) {
      return static_cast<std::int64_t>(random() % count);
    };
    constexpr DLDataType dtypes[] = {
        {kDLBool, 8, 1},    {kDLInt, 8, 1},      {kDLInt, 16, 1},     {kDLInt, 32, 1},
        {kDLInt, 64, 1},    {kDLUInt, 8, 4},     {kDLUInt, 16, 1},    {kDLUInt, 32, 3},
        {kDLUInt, 64, 1},   {kDLFloat, 16, 1},   {kDLFloat, 32, 1},   {kDLFloat, 64, 1},
        {kDLBfloat, 16, 1}, {kDLComplex, 64, 1}, {kDLComplex, 128, 1}};
    tensor.dtype = dtypes[random() % std::size(dtypes)];
    tensor.device = {kDLOneAPI, 0};
    tensor.ndim = static_cast<std::int32_t>(below(9));
    for (std::int32_t r = 0; r < tensor.ndim; ++r) {
      shape.push_back(below(24) == 0 ? 0 : 1 + below(3));
      strides.push_back(below(8) - 2);
    }
    tensor.data = memory.at();
    tensor.byte_offset = static_cast<std::uint64_t>(16 * below(24));
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  random_usm_tensor(const random_usm_tensor&) = delete;
  random_usm_tensor& operator=(const random_usm_tensor&) = delete;

  /// Whether every element lies in the first `size` bytes behind `data`: each one is visited.
  bool lies_within(std::int64_t size, std::size_t r = 0, std::int64_t offset = 0) const {
    if (r == shape.size()) {
      const std::int64_t item = tensor.dtype.bits * tensor.dtype.lanes / 8;
      const std::int64_t first = static_cast<std::int64_t>(tensor.byte_offset) + offset * item;
      return first >= 0 && first + item <= size;
    }
    bool within = true;
    for (std::int64_t i = 0; i < shape[r]; ++i) {
      within = within && lies_within(size, r + 1, offset + i * strides[r]);
    }
    return within;
  }
  bool empty() const { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }
};

TEST(EdgeCases, ExactlyTheTensorsWithinTheirAllocationAreTakenUnpooled) {
  constexpr std::int64_t size = 384;
  std::mt19937 random(20261121);
  std::array<int, 3> seen{};  // refused, taken, empty
  for (const alloc kind : usm_kinds) {
    const usm_memory memory(kind, size, queue_on());
    for (int repeat = 0; repeat < 2000; ++repeat) {
      const random_usm_tensor sample(random, memory);
      const bool within = sample.lies_within(size);
      ++seen[sample.empty() ? 2 : within ? 1 : 0];
      try {
        const usm_dlpack::usm_allocation proved = validate(sample.tensor);
        ASSERT_TRUE(within) << "repeat " << repeat;
        ASSERT_EQ(proved.structure().empty, sample.empty());
        ASSERT_EQ(proved.data(),
                  memory.at(static_cast<std::ptrdiff_t>(sample.tensor.byte_offset)));
      } catch (const usm_dlpack::conversion_error& error) {
        ASSERT_FALSE(within) << "repeat " << repeat << ": " << error.what();
        ASSERT_STREQ(usm_dlpack::to_string(error.code()), "out_of_bounds");
      }
    }
  }
  for (const int times : seen) EXPECT_GT(times, 300);
}

}  // namespace test_edge_cases
