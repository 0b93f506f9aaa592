// SPDX-License-Identifier: Apache-2.0
//
// The rule of order: which queue waits for which. How a queue is waited for is in
// sycl/runtime_defects.hpp.
#pragma once

#include "order/process.hpp"

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace usm_dlpack::python {

/// This package's queue on a root device: in order, in the default context. It is also the
/// queue of arrays that know none. It stays at one address for the life of the process.
/// @throws conversion_error as `root_device`
sycl::queue& package_queue(std::int32_t device_id);

/// dpctl's own queue on a root device, for the life of the process. Consumers that name no
/// queue, such as dpnp, work on it.
/// @throws conversion_error as `root_device`; nb::python_error from dpctl
const sycl::queue& dpctl_queue(std::int32_t device_id);
/// The same, as the `dpctl.SyclQueue` that dpctl has. @pre the GIL is held
nb::object dpctl_queue_object(std::int32_t device_id);

/// A device as a `dpctl.SyclDevice`. That of a root device is made once. @pre the GIL is held
/// @param device_id of its root device
/// @throws conversion_error as `root_device`
nb::object dpctl_device_object(std::int32_t device_id, const sycl::device& device);

/// Waits for a queue's present work.
/// @throws conversion_error `runtime_error`, also for a queue that records a graph
void wait_for(const sycl::queue& queue);
/// The same, but throws the exceptions of the runtime as they are.
void wait_unlocked(const sycl::queue& queue);
/// Whether a queue is known to have no work. Never waits for it.
/// @throws conversion_error as `wait_for`
bool is_done(const sycl::queue& queue);

/// Orders later work of `consumer` behind the present work of `producer`. Within one context
/// this uses an event; if the contexts differ, the host waits. If `consumer` is out of order,
/// the host also waits for the producer's host tasks.
/// @throws conversion_error `runtime_error`, also if either queue records a graph; nothing was
///         submitted then
void hand_over(const sycl::queue& producer, const sycl::queue& consumer);

/// Keeps a row of a `queue_list`. All who name the same queue share one holder.
using queue_holder = std::shared_ptr<const sycl::queue>;

/// The queues that work on the memory of tensors of one origin: a tensor, its capsules, what
/// is imported from them, and our own allocation share a list. A row is a queue that a
/// consumer named, or that a producer works on. It lives as long as somebody holds it, then
/// until its work is finished.
///
/// Tensors that were made separately of the same bytes have separate lists.
class queue_list {
 public:
  /// Adds a queue, unless somebody holds a row of it already. If there are more than eight
  /// rows that nobody holds, `queue` is ordered behind the oldest ones, and these rows are
  /// removed.
  /// @throws conversion_error `runtime_error`
  queue_holder add(const sycl::queue& queue);

  /// Orders a consumer's queue behind all rows.
  /// @throws conversion_error as `hand_over`, before anything is submitted
  void hand_over_to(const sycl::queue& consumer);

  /// Waits for all rows, except those of `but`. Then removes the rows that had no holder when
  /// the wait began.
  /// @param skip_recording whether queues that record a graph are left out, and not refused
  /// @throws conversion_error as `wait_for`
  void wait(const std::optional<sycl::queue>& but = std::nullopt, bool skip_recording = false);

  std::vector<sycl::queue> queues() const;

 private:
  struct row {
    sycl::queue queue;
    std::weak_ptr<const sycl::queue> holder;
  };
  std::vector<row> rows_now() const;
  void forget(const row& finished);

  mutable std::mutex guard_;
  std::vector<row> rows_;
};

}  // namespace usm_dlpack::python
