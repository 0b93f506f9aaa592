// SPDX-License-Identifier: Apache-2.0
#include "memory_users.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <new>
#include <utility>

namespace usm_dlpack::python {
namespace {

struct remembered_memory {
  std::uint64_t nbytes;
  std::shared_ptr<memory_users> users;
};

/// By the first address.
struct all_memory {
  std::mutex guard;
  std::map<std::uintptr_t, remembered_memory> blocks;

  static all_memory& get() {
    static auto& all = *new all_memory;
    return all;
  }
};

}  // namespace

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
    return detail::is_idle(queue) || detail::wait_until_idle(queue);
  });
}

std::shared_ptr<memory_users> remember_memory(const void* address, std::uint64_t nbytes) {
  auto users = std::make_shared<memory_users>();
  all_memory& all = all_memory::get();
  const std::lock_guard<std::mutex> lock(all.guard);
  all.blocks[reinterpret_cast<std::uintptr_t>(address)] = {nbytes, users};
  return users;
}

void forget_memory(const void* address) noexcept {
  all_memory& all = all_memory::get();
  const std::lock_guard<std::mutex> lock(all.guard);
  all.blocks.erase(reinterpret_cast<std::uintptr_t>(address));
}

std::shared_ptr<memory_users> users_of(std::uintptr_t address) noexcept {
  all_memory& all = all_memory::get();
  const std::lock_guard<std::mutex> lock(all.guard);
  const auto after = all.blocks.upper_bound(address);
  if (after == all.blocks.begin()) {
    return nullptr;
  }
  const auto& [first, block] = *std::prev(after);
  return address - first < block.nbytes ? block.users : nullptr;
}

}  // namespace usm_dlpack::python
