// SPDX-License-Identifier: Apache-2.0
//
// The queues that use memory of this package, which is freed after their work.
#pragma once

#include <usm_dlpack/usm_dlpack.hpp>

#include <unordered_set>

namespace usm_dlpack::python {

using queue_set = std::unordered_set<sycl::queue>;

/// The queues that use memory of this package. All tensors of the memory share them, also
/// through capsules, so that it is freed after the work of all.
///
/// A queue is forgotten once it can have no work on the memory any more. The proof:
/// 1. All handles of the queue are here. Whoever submits to a queue has a handle, so nobody
///    does so any more, and nobody else can get a handle.
/// 2. The queue is empty then, and thus remains so.
/// A consumer that may still submit has a handle, whatever it has let go of. Nothing is
/// queried of a queue that others have, and nothing waits. What is kept are queues that others
/// have, or that had work when they were last queried: at most twice as many, and a few. A
/// call takes the same time however many there are.
class memory_users {
 public:
  memory_users() = default;
  memory_users(const memory_users&) = delete;
  memory_users& operator=(const memory_users&) = delete;
  ~memory_users();

  /// Adds a queue. Never waits for work.
  void add(const sycl::queue& queue) noexcept;
  /// Waits until all queues are idle, and forgets them. False: a queue may have work, and the
  /// memory must not be freed. @pre the GIL is not held
  bool wait() noexcept;

  /// The queues of all memory.
  static queue_set all();

 private:
  queue_set queues_;
  bool is_missing_one_ = false;  ///< a queue could not be remembered
};

}  // namespace usm_dlpack::python
