// SPDX-License-Identifier: Apache-2.0
//
// The queues that work on memory which this package allocated: its tensors, also those that
// are made of each other's capsules, share them, so that the memory goes after the work of
// all.
#pragma once

#include <sycl/sycl.hpp>

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

}  // namespace usm_dlpack::python
