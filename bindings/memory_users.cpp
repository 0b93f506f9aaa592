// SPDX-License-Identifier: Apache-2.0
#include "memory_users.hpp"

#include "queues.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <new>

namespace usm_dlpack::python {

void memory_users::add(const sycl::queue& queue) noexcept {
  constexpr std::size_t many = 16;
  const std::lock_guard<std::mutex> lock(guard_);
  if (std::find(queues_.begin(), queues_.end(), queue) != queues_.end()) {
    return;
  }
  if (queues_.size() >= many) {
    queues_.erase(std::remove_if(queues_.begin(), queues_.end(), &detail::is_idle),
                  queues_.end());
  }
  try {
    queues_.push_back(queue);
  } catch (const std::bad_alloc&) {
    is_missing_one_ = true;
  }
}

bool memory_users::wait() noexcept {
  std::vector<sycl::queue> queues;
  {
    const std::lock_guard<std::mutex> lock(guard_);
    if (is_missing_one_) {
      return false;
    }
    queues.swap(queues_);
  }
  return std::all_of(queues.begin(), queues.end(), [](const sycl::queue& queue) {
    try {
      if (!detail::is_idle(queue)) {
        wait_in_turn(queue);
      }
      return true;
    } catch (...) {
      return false;
    }
  });
}

}  // namespace usm_dlpack::python
