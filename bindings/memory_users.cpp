// SPDX-License-Identifier: Apache-2.0
#include "memory_users.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

namespace usm_dlpack::python {
namespace {

constexpr std::size_t few = 16;

/// What is known about a queue that uses memory.
struct queue_use {
  std::unordered_set<queue_set*> memories;  ///< the sets that have a handle of the queue
  // Both count calls of `add`.
  std::uint64_t since;
  std::uint64_t next_query;
};

// Never destroyed: threads may outlive the statics.
std::mutex guard;
auto& uses = *new std::unordered_map<sycl::queue, queue_use>;
/// The objects that know their bytes, sorted by the lowest. There is a set for each power of
/// two: set n is for 2^n bytes and more. Since no object of a set is much longer than another,
/// those that overlap some bytes are near each other in it.
using places = std::set<std::pair<std::uintptr_t, memory_users*>>;
auto& by_length = *new std::array<places, 64>;
std::uint64_t now = 0;
std::size_t most = few;

places& places_of(std::uintptr_t length) noexcept {
  return by_length[static_cast<std::size_t>(63 - __builtin_clzll(length))];
}

/// Whether all handles of a queue are ours. SYCL has no query for this.
bool is_ours_alone(const sycl::queue& queue, const queue_use& use) noexcept {
  const long handles = sycl::detail::getSyclObjImpl(queue).use_count();
  if (handles != static_cast<long>(1 + use.memories.size())) {
    return false;
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // after others dropped their handles
  return true;
}

/// Whether a queue is known to be empty. Queries it only if enough time has passed.
/// @pre all handles are ours, because on OpenCL the query crashes while another thread submits
///      to the queue (DPC++ 2026.2)
bool is_empty(const sycl::queue& queue, queue_use& use) noexcept {
  using sycl::ext::oneapi::experimental::queue_state;
  if (now < use.next_query) {
    return false;
  }
  // On OpenCL each query adds a command to the queue. When thousands of them wait behind other
  // work, their ends nest, and overflow the stack of the CPU driver. So the time between
  // queries doubles.
  use.next_query = now + (now - use.since);
  try {
    return queue.ext_oneapi_get_state() == queue_state::executing && queue.ext_oneapi_empty();
  } catch (...) {
    return false;
  }
}

/// Forgets the queues that can have no work, and returns their last handles.
/// @pre `guard` is locked
std::vector<sycl::queue> take_finished() {
  std::vector<sycl::queue> finished;
  finished.reserve(uses.size());
  for (auto place = uses.begin(); place != uses.end();) {
    auto& [queue, use] = *place;
    if (!is_ours_alone(queue, use) || !is_empty(queue, use)) {
      ++place;
      continue;
    }
    finished.push_back(queue);
    for (queue_set* memory : use.memories) {
      memory->erase(finished.back());
    }
    place = uses.erase(place);
  }
  most = 2 * uses.size() + few;
  return finished;
}

/// Removes an allocation from what is known about its queues, and returns the queues.
queue_set take_all(queue_set& memory) noexcept {
  const std::lock_guard<std::mutex> lock(guard);
  for (const sycl::queue& queue : memory) {
    const auto found = uses.find(queue);
    if (found != uses.end() && found->second.memories.erase(&memory) != 0 &&
        found->second.memories.empty()) {
      uses.erase(found);
    }
  }
  return std::move(memory);
}

}  // namespace

template <class Function>
void memory_users::for_each(std::uintptr_t lowest, std::uintptr_t end,
                            const Function& function) {
  for (std::size_t bits = 0; bits < by_length.size(); ++bits) {
    const std::uintptr_t longest = (std::uintptr_t{2} << bits) - 1;
    const std::uintptr_t before = lowest - std::min(lowest, longest);
    auto place = by_length[bits].lower_bound({before + 1, nullptr});
    for (; place != by_length[bits].end() && place->first < end; ++place) {
      if (place->second->end_ > lowest) {
        function(*place->second);
      }
    }
  }
}

void memory_users::cover(const tensor_structure& bytes) {
  if (bytes.empty) {
    return;
  }
  const std::lock_guard<std::mutex> lock(guard);
  const bool is_first = lowest_ == end_;
  const std::uintptr_t lowest = is_first ? bytes.lowest : std::min(lowest_, bytes.lowest);
  const std::uintptr_t end = std::max(end_, bytes.lowest + bytes.nbytes);
  if (lowest != lowest_ || end != end_) {
    places_of(end - lowest).insert({lowest, this});
    if (!is_first) {
      places_of(end_ - lowest_).erase({lowest_, this});
    }
    lowest_ = lowest;
    end_ = end;
  }
}

void memory_users::leave_to_others() noexcept {
  const std::lock_guard<std::mutex> lock(guard);
  for_each(lowest_, end_, [&](memory_users& other) {
    if (&other == this) {
      return;
    }
    if (supposed_) {
      other.supposed_ = supposed_;
    }
    try {
      for (const sycl::queue& queue : queues_) {
        if (other.queues_.insert(queue).second) {
          uses.at(queue).memories.insert(&other.queues_);
        }
      }
    } catch (...) {
      other.is_missing_one_ = true;
    }
  });
  places_of(end_ - lowest_).erase({lowest_, this});
}

memory_users::~memory_users() {
  if (lowest_ != end_) {
    leave_to_others();
  }
  if (!queues_.empty()) {
    take_all(queues_);
  }
}

void memory_users::add(const sycl::queue& queue) noexcept {
  std::vector<sycl::queue> finished;
  try {
    const std::lock_guard<std::mutex> lock(guard);
    if (!queues_.insert(queue).second) {
      return;
    }
    ++now;
    uses.try_emplace(queue, queue_use{{}, now, now}).first->second.memories.insert(&queues_);
    if (uses.size() > most) {
      finished = take_finished();
    }
  } catch (const std::bad_alloc&) {
    is_missing_one_ = true;
  }
  for (sycl::queue& last : finished) {
    try {
      // Returns at once, because the queue is empty. But the OpenCL CPU driver hangs if a
      // queue is destroyed right after its work (intel-opencl-rt 2026.2).
      last.wait();
    } catch (...) {
      new (std::nothrow) sycl::queue(last);  // never destroyed
    }
  }
}

void memory_users::suppose(const sycl::queue& queue) noexcept {
  const std::lock_guard<std::mutex> lock(guard);
  supposed_ = queue;
}

std::optional<sycl::queue> memory_users::supposed(const tensor_structure& bytes) {
  std::optional<sycl::queue> found;
  const std::lock_guard<std::mutex> lock(guard);
  for_each(bytes.lowest, bytes.lowest + bytes.nbytes,
           [&](const memory_users& one) { found = one.supposed_ ? one.supposed_ : found; });
  return found;
}

std::vector<sycl::queue> memory_users::of(const tensor_structure& bytes,
                                          const std::optional<sycl::queue>& own) {
  std::vector<sycl::queue> others;
  const auto take = [&](const sycl::queue& queue) {
    if (queue != own && std::find(others.begin(), others.end(), queue) == others.end()) {
      others.push_back(queue);
    }
  };
  const std::lock_guard<std::mutex> lock(guard);
  for_each(bytes.lowest, bytes.lowest + bytes.nbytes, [&](const memory_users& one) {
    std::for_each(one.queues_.begin(), one.queues_.end(), take);
    if (one.supposed_) {
      take(*one.supposed_);
    }
  });
  return others;
}

bool memory_users::wait() noexcept {
  {
    const std::lock_guard<std::mutex> lock(guard);
    if (is_missing_one_) {
      return false;
    }
  }
  const queue_set queues = take_all(queues_);
  return std::all_of(queues.begin(), queues.end(), [](const sycl::queue& queue) {
    try {
      detail::wait_in_turn(queue);
      return true;
    } catch (...) {
      return false;
    }
  });
}

queue_set memory_users::all() {
  queue_set queues;
  const std::lock_guard<std::mutex> lock(guard);
  for (const auto& [queue, use] : uses) {
    queues.insert(queue);
  }
  return queues;
}

}  // namespace usm_dlpack::python
