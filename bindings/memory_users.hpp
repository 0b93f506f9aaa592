// SPDX-License-Identifier: Apache-2.0
//
// The queues that use the memory of tensors. Later uses of a tensor run after their work, and
// memory of this package is freed after it.
#pragma once

#include <usm_dlpack/usm_dlpack.hpp>

#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

namespace usm_dlpack::python {

using queue_set = std::unordered_set<sycl::queue>;

/// The queues that use the memory of a tensor and of those that were made of it. They share
/// this object, also through capsules. An allocation of this package and a CUDA array have it,
/// too, so they are freed after the work of all queues. Other tensors of the same bytes have
/// objects of their own. Questions are about bytes, and an object that goes leaves its queues
/// to those whose bytes overlap.
///
/// A queue is forgotten once it can have no work on the memory any more. This is so if two
/// things hold:
/// 1. Only this package's records have handles of the queue. Whoever submits to a queue has a
///    handle, so nobody submits any more, and nobody can get a handle.
/// 2. The queue is empty. Because of 1 it stays empty. A queue that others have is not
///    queried, and nothing waits. The number of queues that are kept is at most twice the
///    number of those that others have or that had work when they were last queried, plus a
///    few. On average a call takes the same time for any number of queues.
class memory_users {
 public:
  memory_users() = default;
  memory_users(const memory_users&) = delete;
  memory_users& operator=(const memory_users&) = delete;
  ~memory_users();

  /// Adds the bytes of a tensor to those that this object is about. Called for each tensor.
  void cover(const tensor_structure& bytes);
  /// Adds a queue. Never waits for work.
  void add(const sycl::queue& queue) noexcept;
  /// Notes that a consumer which named no queue may use this one. Freeing does not wait for
  /// it, because such a consumer keeps the memory until its work is done.
  void suppose(const sycl::queue& queue) noexcept;
  /// All queues that use some bytes, but for one.
  static std::vector<sycl::queue> of(const tensor_structure& bytes,
                                     const std::optional<sycl::queue>& own);
  /// The queue that consumers which named none may use, if some bytes were given to any.
  static std::optional<sycl::queue> supposed(const tensor_structure& bytes);
  /// Waits until all queues are idle, and forgets them. Returns false if a queue may still
  /// have work, so that the memory must not be freed. @pre the GIL is not held
  bool wait() noexcept;

  /// The queues of all allocations.
  static queue_set all();

 private:
  /// Calls a function for each object whose bytes overlap some. @pre the lock is held
  template <class Function>
  static void for_each(std::uintptr_t lowest, std::uintptr_t end, const Function& function);
  void leave_to_others() noexcept;

  queue_set queues_;
  std::optional<sycl::queue> supposed_;
  std::uintptr_t lowest_ = 0, end_ = 0;  ///< equal if no bytes are known
  bool is_missing_one_ = false;          ///< a queue could not be remembered
};

}  // namespace usm_dlpack::python
