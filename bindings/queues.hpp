// SPDX-License-Identifier: Apache-2.0
//
// Who waits for whom: this package's own queues, the queue that a `stream` names, and the
// hand-over of pending work from a producer's queue to a consumer's.
#pragma once

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>

#include <cstdint>
#include <optional>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// A root device's queue of this package: in order, in the default context, kept for the life
/// of the process at one address, which the C exchange API gives away. Kept also because a
/// queue that is destroyed right after its work hangs the OpenCL CPU driver when several
/// threads do so (intel-opencl-rt 2026.2).
/// @throws conversion_error as `root_device`
sycl::queue& package_queue(std::int32_t device_id);

/// A root device's queue for one copy, in order, in the default context, whose work is waited
/// for before this goes: nobody else uses it meanwhile, so that a copy that waits for other
/// work holds up no other copy. As many are kept, for the life of the process, as were in use
/// at once.
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

/// What the `stream` of `__dlpack__` asks for.
struct consumer_stream {
  std::optional<sycl::queue> queue;  ///< the consumer's queue, if it named one
  bool unsynchronised = false;       ///< -1: whatever is pending, do not wait for it
};

/// Reads None, -1, a `dpctl.SyclQueue`, a capsule "SyclQueueRef", an object that has
/// `_get_capsule()` or `sycl_queue`, or the address of a `sycl::queue`, which is trusted if it
/// can be one at all.
/// @throws nb::value_error for anything else, whatever it raised
consumer_stream read_stream(nb::handle stream);

/// The queue of a producer that says it by its attribute `sycl_queue`, or none. The object is
/// asked, not its type: it may have the attribute itself, or by `__getattr__`.
/// @throws nb::python_error for what the attribute raises that is no AttributeError
std::optional<sycl::queue> queue_attribute(nb::handle producer);

/// Orders what `consumer` gets from now on behind what `producer` has got until now: by an
/// event, without waiting, in one context; a queue of another context makes the host wait. So
/// does an out-of-order `consumer` while `producer` has a host task: until that is done.
/// The GIL is released meanwhile. @throws conversion_error `runtime_error`
void hand_over(sycl::queue producer, sycl::queue consumer);

/// The same by an event alone, in one context: never waits, also not for host tasks, which
/// `queue::memcpy` of an out-of-order `consumer` then overtakes.
/// @pre `producer` and `consumer` are of one context; they may be one queue, which is out of
/// order
/// @throws conversion_error `runtime_error`
void order_behind(sycl::queue producer, sycl::queue consumer);

/// Waits, without the GIL, until all that a queue has got until now is done.
/// @throws conversion_error `runtime_error`
void wait_for(sycl::queue queue);

}  // namespace usm_dlpack::python
