// SPDX-License-Identifier: Apache-2.0
//
// Replaces the global `operator new` and `operator delete` by ones that count.
#include <allocation_counter.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<std::size_t> made{0};
std::atomic<std::size_t> freed{0};
std::atomic<std::ptrdiff_t> aligned{0};        // made by the aligned form and not freed by it
std::atomic<std::ptrdiff_t> until_failure{0};  // the allocation that fails, counted from 1

void* count_and_allocate(std::size_t size, std::size_t alignment) {
  if (until_failure.load() > 0 && until_failure.fetch_sub(1) == 1) {
    throw std::bad_alloc();
  }
  ++made;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size == 0 ? 1 : size) != 0) {
    throw std::bad_alloc();
  }
  // So that what is left unwritten is seen, and not what stood there before.
  std::memset(memory, 0xCD, size);
  return memory;
}

void count_and_free(void* memory) noexcept {
  freed += memory == nullptr ? 0U : 1U;
  std::free(memory);
}

}  // namespace

// The array and the nothrow forms of the standard library call these.
void* operator new(std::size_t size) {
  return count_and_allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  void* const memory = count_and_allocate(size, static_cast<std::size_t>(alignment));
  ++aligned;
  return memory;
}
void operator delete(void* memory) noexcept { count_and_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { count_and_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  aligned -= memory == nullptr ? 0 : 1;
  count_and_free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  ::operator delete(memory, alignment);
}

namespace usm_dlpack_test {

std::size_t allocations() noexcept { return made; }
std::size_t deallocations() noexcept { return freed; }
void fail_allocation(std::ptrdiff_t number) noexcept { until_failure = number; }

}  // namespace usm_dlpack_test

namespace {

/// Expects at the end that each form of `operator new` was answered by the same of `delete`.
class matching_forms : public ::testing::Environment {
  void TearDown() override { EXPECT_EQ(aligned, 0) << "freed by the other form"; }
};
[[maybe_unused]] const auto* const registered =
    ::testing::AddGlobalTestEnvironment(new matching_forms);

}  // namespace
