// SPDX-License-Identifier: Apache-2.0
//
// The queues that use memory of this package. All tensors of the memory share them, also
// through capsules, so that it is freed after the work of all.
#pragma once

#include <sycl/sycl.hpp>

#include <mutex>
#include <vector>

namespace usm_dlpack::python {

class memory_users {
 public:
  /// Adds a queue. If there are many, forgets those without work.
  void add(const sycl::queue& queue) noexcept;
  /// Waits until all queues are idle, and forgets them. Returns false if that cannot be known:
  /// the memory must not be freed then. @pre the GIL is not held
  bool wait() noexcept;

 private:
  std::mutex guard_;
  std::vector<sycl::queue> queues_;
  bool is_missing_one_ = false;  ///< a queue could not be remembered
};

}  // namespace usm_dlpack::python
