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

/// The queues that use the memory of tensors: of those with the same lowest byte, and of those
/// that were made of them. They all share this object, also through capsules. An allocation of
/// this package and a CUDA array have it, too, so they are freed after the work of all queues.
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

  /// The object of the tensors whose lowest byte is at an address.
  /// @param known the object of the tensor's memory, if it has one already
  static std::shared_ptr<memory_users> at(const void* lowest,
                                          std::shared_ptr<memory_users> known);

  /// Adds a queue. Never waits for work.
  void add(const sycl::queue& queue) noexcept;
  /// Notes that a consumer which named no queue may use this one. Freeing does not wait for
  /// it, because such a consumer keeps the memory until its work is done.
  void suppose(const sycl::queue& queue) noexcept;
  std::optional<sycl::queue> supposed() const;
  /// All queues that use the memory, but for one.
  std::vector<sycl::queue> besides(const std::optional<sycl::queue>& own) const;
  /// Waits until all queues are idle, and forgets them. Returns false if a queue may still
  /// have work, so that the memory must not be freed. @pre the GIL is not held
  bool wait() noexcept;

  /// The queues of all allocations.
  static queue_set all();

 private:
  queue_set queues_;
  std::optional<sycl::queue> supposed_;
  const void* address_ = nullptr;  ///< by which other tensors find this object
  bool is_missing_one_ = false;    ///< a queue could not be remembered
};

}  // namespace usm_dlpack::python
