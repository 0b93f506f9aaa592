// SPDX-License-Identifier: Apache-2.0
//
// Synchronisation: this package's own queues, the queue of a `stream`, and the hand-over of
// pending work from a producer's queue to a consumer's.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// This package's queue of a root device: in order, in the default context. It keeps one
/// address for the life of the process, because the C exchange API gives the address away, and
/// because a queue that is destroyed right after its work hangs the OpenCL CPU driver if
/// several threads do so (intel-opencl-rt 2026.2).
/// @throws conversion_error as `root_device`
sycl::queue& package_queue(std::int32_t device_id);

/// A root device's queue for one copy: in order, in the default context, and used by nobody
/// else meanwhile, so that a copy that waits does not delay others. The destructor waits for
/// work that an exception left. Queues are pooled for the life of the process.
class copy_queue {
 public:
  /// @throws conversion_error as `root_device`
  explicit copy_queue(std::int32_t device_id);
  copy_queue(const copy_queue&) = delete;
  copy_queue& operator=(const copy_queue&) = delete;
  ~copy_queue();

  sycl::queue& get() noexcept { return queue_; }

 private:
  std::int32_t device_id_;
  sycl::queue queue_;
};

/// The `stream` of `__dlpack__`.
struct consumer_stream {
  std::optional<sycl::queue> queue;  ///< the consumer's queue, if it named one
  bool unsynchronised = false;       ///< -1: do not wait for pending work
};

/// Reads None, -1, a `dpctl.SyclQueue`, a capsule "SyclQueueRef", an object that has
/// `_get_capsule()` or `sycl_queue`, or the address of a `sycl::queue`, which is trusted.
/// @throws nb::value_error for anything else, whatever it raised
consumer_stream read_stream(nb::handle stream);

/// The queue in a producer's attribute `sycl_queue`: a `dpctl.SyclQueue`, a capsule, an object
/// with `_get_capsule()`, or an address, which is trusted. None if there is no such attribute,
/// or None in it. Queries the object and not its type, because `__getattr__` or the object
/// itself may provide it.
/// @throws nb::value_error for anything else; nb::python_error for an error of the attribute
std::optional<sycl::queue> queue_attribute(nb::handle producer);

/// Orders later work of `consumer` behind the present work of `producer`. Within one context
/// this uses an event; for another context the host waits. The host also waits for the
/// producer's host tasks if `consumer` is out of order. Releases the GIL.
/// @throws conversion_error `runtime_error`
void hand_over(sycl::queue producer, sycl::queue consumer);

/// Like `hand_over` within one context, but never waits: `queue::memcpy` of an out-of-order
/// `consumer` overtakes host tasks then.
/// @pre both are of one context; they may be one out-of-order queue
/// @throws conversion_error `runtime_error`
void order_behind(sycl::queue producer, sycl::queue consumer);

/// Waits for a queue's present work, without the GIL.
/// @throws conversion_error `runtime_error`
void wait_for(const sycl::queue& queue);

}  // namespace usm_dlpack::python
