// SPDX-License-Identifier: Apache-2.0
//
// What several threads may do at once without a lock: describe one view, check and read one
// tensor, copy one error, delete managed tensors that others made. Meant for ThreadSanitizer.
#include <refusal.hpp>
#include <threads.hpp>
#include <valid_tensor.hpp>
#include <view_elements.hpp>

#include <usm_dlpack/core.hpp>
#include <usm_dlpack/core/layout_relaxed.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace usm_dlpack_test;
using usm_dlpack::conversion_error;
using usm_dlpack::errc;
using usm_dlpack::legacy_managed_tensor;
using usm_dlpack::managed_tensor;
using usm_dlpack::to_legacy_managed_tensor;
using usm_dlpack::to_managed_tensor;

constexpr int rounds = 100;

template <class Layout>
using view_2d = md::mdspan<float, md::dextents<int, 2>, Layout>;

// --- Views and tensors --------------------------------------------------------------------

TEST(CoreConcurrency, EightThreadsDescribeOneViewAndReadOneWrapper) {
  std::array<float, 6> elements{};
  const view_2d<md::layout_right> view(elements.data(), 2, 3);
  const auto shared = usm_dlpack::to_dlpack_tensor(view, some_device);
  of_each_thread<int> right;
  on_eight_threads([&](std::size_t number) {
    for (int round = 0; round < rounds; ++round) {
      const auto own = usm_dlpack::to_dlpack_tensor(view, some_device);
      for (const DLTensor& tensor : {own.get(), shared.get()}) {
        right[number].value +=
            tensor.data == elements.data() && tensor.shape[1] == 3 && tensor.strides[0] == 3;
      }
    }
  });
  for (const auto& thread : right) {
    EXPECT_EQ(thread.value, 2 * rounds);
  }
}

TEST(CoreConcurrency, EightThreadsCheckOneTensorAndMakeViewsOfIt) {
  const valid_managed_tensor valid;
  of_each_thread<int> right;
  on_eight_threads([&](std::size_t number) {
    for (int round = 0; round < rounds; ++round) {
      const auto structure = usm_dlpack::check_structure(valid.managed.dl_tensor);
      const auto strict =
          usm_dlpack::to_mdspan<view_2d<md::layout_right>>(valid.managed.dl_tensor);
      const auto relaxed =
          usm_dlpack::to_mdspan<view_2d<usm_dlpack::layout_relaxed>>(valid.managed);
      right[number].value += structure.nbytes == 24 &&
                             strict.data_handle() == relaxed.data_handle() &&
                             relaxed.mapping()(1, 2) == 5;
    }
  });
  for (const auto& thread : right) {
    EXPECT_EQ(thread.value, rounds);
  }
}

// --- Errors -------------------------------------------------------------------------------

TEST(CoreConcurrency, EightThreadsCopyReadAndDestroyOneError) {
  const auto original = std::make_unique<const conversion_error>(
      errc::ndim_out_of_range, usm_dlpack::refusal{"ndim", "0", "-1", "correct it"});
  of_each_thread<int> right;
  on_eight_threads([&](std::size_t number) {
    conversion_error assigned(errc::read_only, {"flags", "a", "b", "c"});
    for (int round = 0; round < rounds; ++round) {
      const conversion_error copy = *original;
      assigned = copy;
      right[number].value +=
          assigned.field() == "ndim" &&
          std::string(copy.what()) == "ndim: expected 0, found -1; correct it";
    }
  });
  for (const auto& thread : right) {
    EXPECT_EQ(thread.value, rounds);
  }
}

TEST(CoreConcurrency, AnErrorOutlivesTheThreadThatThrewIt) {
  of_each_thread<std::exception_ptr> thrown;
  on_eight_threads([&](std::size_t number) {
    valid_tensor valid;
    valid.tensor.ndim = -1 - static_cast<std::int32_t>(number);
    try {
      usm_dlpack::check_structure(valid.tensor);
    } catch (const conversion_error&) {
      thrown[number].value = std::current_exception();
    }
  });
  for (std::size_t number = 0; number < thread_count; ++number) {
    ASSERT_NE(thrown[number].value, nullptr);
    EXPECT_REFUSAL(std::rethrow_exception(thrown[number].value), errc::ndim_out_of_range,
                   "ndim", "0 or more dimensions",
                   std::to_string(-1 - static_cast<int>(number)));
  }
}

// --- Managed tensors ----------------------------------------------------------------------

/// Adds to a count when the resource that it stands for is freed.
struct counted_owner {
  std::shared_ptr<std::vector<float>> memory;
  std::atomic<int>* freed;
  counted_owner(std::shared_ptr<std::vector<float>> kept, std::atomic<int>& count)
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
  auto memory = std::make_shared<std::vector<float>>(6);
  const std::weak_ptr<std::vector<float>> watched = memory;
  const view_2d<md::layout_right> view(memory->data(), 2, 3);
  of_each_thread<managed_tensor> versioned;
  of_each_thread<legacy_managed_tensor> legacy;
  on_eight_threads([&](std::size_t number) {
    versioned[number].value =
        to_managed_tensor(view, some_device, counted_owner(memory, freed));
    legacy[number].value =
        to_legacy_managed_tensor(view, some_device, counted_owner(memory, freed));
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

/// A queue of one element: what stands in it was written by the thread that put it there, and
/// nothing but the element orders the two threads.
TEST(CoreConcurrency, AManagedTensorIsWholeWhereItIsHandedOverByAnAtomicPointer) {
  std::atomic<DLManagedTensorVersioned*> handed{nullptr};
  std::atomic<int> freed{0};
  std::atomic<int> right{0};
  on_eight_threads([&](std::size_t number) {
    for (int round = 0; round < rounds; ++round) {
      if (number % 2 == 0) {
        auto memory = std::make_shared<std::vector<float>>(6, static_cast<float>(round));
        const view_2d<md::layout_right> view(memory->data(), 2, 3);
        auto made =
            to_managed_tensor(view, some_device, counted_owner(std::move(memory), freed));
        DLManagedTensorVersioned* expected = nullptr;
        while (!handed.compare_exchange_weak(expected, made.get(), std::memory_order_release,
                                             std::memory_order_relaxed)) {
          expected = nullptr;
          std::this_thread::yield();
        }
        static_cast<void>(made.release());
      } else {
        managed_tensor taken;
        while (taken == nullptr) {
          taken.reset(handed.exchange(nullptr, std::memory_order_acquire));
        }
        const auto view = usm_dlpack::to_mdspan<view_2d<md::layout_right>>(*taken);
        const float* const elements = view.data_handle();
        right += elements[0] == elements[5] && view.extent(1) == 3;
      }
    }
  });
  EXPECT_EQ(right, 4 * rounds);
  EXPECT_EQ(freed, 4 * rounds);
}

}  // namespace
