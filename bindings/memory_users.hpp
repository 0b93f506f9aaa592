// SPDX-License-Identifier: Apache-2.0
//
// The queues that work on memory which this package allocated, found by its address: whatever
// way a tensor of it came, through a capsule of another library too, its queue is known when
// the memory goes.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace usm_dlpack::python {

/// The queues that may still work on memory.
class memory_users {
 public:
  /// Of many queues, those without work are forgotten.
  void add(const sycl::queue& queue) noexcept;
  /// Waits until all are idle, and forgets them. False where that cannot be known: the memory
  /// must not be freed then. @pre the GIL is not held
  bool wait() noexcept;

 private:
  std::mutex guard_;
  std::vector<sycl::queue> queues_;
  bool is_missing_one_ = false;  ///< a queue could not be remembered
};

/// Remembers memory, until `forget_memory`.
std::shared_ptr<memory_users> remember_memory(const void* address, std::uint64_t nbytes);
void forget_memory(const void* address) noexcept;

/// The users of the memory that has an address inside, or null for memory of others.
/// @pre the process is not forked
std::shared_ptr<memory_users> users_of(std::uintptr_t address) noexcept;

}  // namespace usm_dlpack::python
