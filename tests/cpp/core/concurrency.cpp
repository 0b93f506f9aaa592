// SPDX-License-Identifier: Apache-2.0
//
// What several threads may do at once without a lock: describe one view, check and read one
// tensor, copy one error, delete managed tensors that others made. Meant for ThreadSanitizer.
#include <mdspan_under_test.hpp>
#include <threads.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace {

using namespace usm_dlpack_test;
using usm_dlpack::conversion_error;
using usm_dlpack::errc;

constexpr int rounds = 100;
using view = md::mdspan<float, md::dextents<int, 2>>;

void expect_all(const of_each_thread<int>& right) {
  for (const auto& thread : right) {
    EXPECT_EQ(thread.value, rounds);
  }
}

TEST(CoreConcurrency, EightThreadsDescribeOneViewAndTakeOneTensor) {
  const valid_managed_tensor valid;
  const view shared(static_cast<float*>(valid.managed.dl_tensor.data), 2, 3);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(shared, some_device);
  of_each_thread<int> right;
  on_eight_threads([&](std::size_t number) {
    for (int round = 0; round < rounds; ++round) {
      const auto own = usm_dlpack::to_dlpack_tensor(shared, some_device);
      const view taken = usm_dlpack::to_mdspan<view>(valid.managed);
      right[number].value += own.get().strides[0] == wrapper.get().strides[0] &&
                             taken.data_handle() == shared.data_handle() &&
                             usm_dlpack::check_structure(valid.managed.dl_tensor).nbytes == 24;
    }
  });
  expect_all(right);
}

TEST(CoreConcurrency, EightThreadsCopyReadAndDestroyOneError) {
  const conversion_error original(errc::ndim_out_of_range, {"ndim", "0", "-1", "correct it"});
  of_each_thread<int> right;
  on_eight_threads([&](std::size_t number) {
    conversion_error assigned(errc::read_only, {"flags", "a", "b", "c"});
    for (int round = 0; round < rounds; ++round) {
      const conversion_error copy = original;
      assigned = copy;
      right[number].value += assigned.field() == "ndim" && copy.found() == "-1";
    }
  });
  expect_all(right);
}

/// Adds to a count when the resource that it stands for is freed.
struct counted_owner {
  std::shared_ptr<float[]> memory;
  std::atomic<int>* freed;
  counted_owner(std::shared_ptr<float[]> kept, std::atomic<int>& count)
      : memory(std::move(kept)), freed(&count) {}
  counted_owner(counted_owner&& other) noexcept
      : memory(std::move(other.memory)), freed(std::exchange(other.freed, nullptr)) {}
  ~counted_owner() {
    if (freed != nullptr) freed->fetch_add(1, std::memory_order_relaxed);
  }
};

/// Every thread makes a tensor of each of the two kinds, then another one deletes them.
TEST(CoreConcurrency, EightThreadsDeleteTheManagedTensorsThatOthersMadeOfOneView) {
  std::atomic<int> freed{0};
  std::shared_ptr<float[]> memory(new float[6]);
  const std::weak_ptr<float[]> watched = memory;
  const view shared(memory.get(), 2, 3);
  of_each_thread<usm_dlpack::managed_tensor> versioned;
  of_each_thread<usm_dlpack::legacy_managed_tensor> legacy;
  on_eight_threads([&](std::size_t number) {
    versioned[number].value =
        usm_dlpack::to_managed_tensor(shared, some_device, counted_owner(memory, freed));
    legacy[number].value = usm_dlpack::to_legacy_managed_tensor(shared, some_device,
                                                                counted_owner(memory, freed));
  });
  EXPECT_EQ(freed, 0);
  memory.reset();
  EXPECT_FALSE(watched.expired());
  on_eight_threads([&](std::size_t number) {
    const std::size_t other = (number + 1) % thread_count;
    DLManagedTensorVersioned* const raw = versioned[other].value.release();
    raw->deleter(raw);
    legacy[other].value.reset();
  });
  EXPECT_EQ(freed, 16);
  EXPECT_TRUE(watched.expired()) << "the last of eight threads freed the memory";
}

}  // namespace
