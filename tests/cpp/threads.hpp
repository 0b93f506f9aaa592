// SPDX-License-Identifier: Apache-2.0
//
// Runs tests' work on several threads that start at once, for sycl/test_concurrency.cpp, which
// is built with ThreadSanitizer too, and for other tests with threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>

namespace usm_dlpack_test {

inline constexpr std::size_t thread_count = 8;

/// One value for each thread, on a cache line of its own, so that threads do not wait for each
/// other where they should race.
template <class Value>
struct of_one_thread {
  alignas(64) Value value{};
};
template <class Value>
using of_each_thread = std::array<of_one_thread<Value>, thread_count>;

/// Calls `work(number)` on eight threads, none of which starts before all are there, and waits
/// for all. `work` must not throw.
template <class Work>
void on_eight_threads(const Work& work) {
  std::atomic<std::size_t> missing{thread_count};
  std::array<std::thread, thread_count> threads;
  for (std::size_t number = 0; number < thread_count; ++number) {
    threads[number] = std::thread([&, number] {
      // Relaxed: ThreadSanitizer must not take the start for an order of what follows.
      missing.fetch_sub(1, std::memory_order_relaxed);
      while (missing.load(std::memory_order_relaxed) > 0) {
        std::this_thread::yield();
      }
      work(number);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace usm_dlpack_test
