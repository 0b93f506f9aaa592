// SPDX-License-Identifier: Apache-2.0
//
// Synchronisation: this package's own queues, and the order between a producer's queue and a
// consumer's.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// This package's queue on a root device: in order, in the default context. It is also the
/// queue of arrays that know none. It stays at one address for the life of the process, for
/// two reasons. The C exchange API and extensions get the address. And if several threads
/// destroy queues right after their work, the OpenCL CPU driver hangs (intel-opencl-rt
/// 2026.2).
/// @throws conversion_error as `root_device`
sycl::queue& package_queue(std::int32_t device_id);

/// dpctl's own queue on a root device. dpnp and dpctl put an array on it when they take memory
/// without a queue.
/// @pre the GIL is held
/// @throws conversion_error as `root_device`; nb::python_error from dpctl
sycl::queue dpctl_queue(std::int32_t device_id);
/// The same, as a `dpctl.SyclQueue`.
nb::object dpctl_queue_object(std::int32_t device_id);

/// A queue on a root device for one copy: in order, in the default context. Nobody else uses
/// it meanwhile, so a copy that waits does not delay others. After an exception the destructor
/// waits for the rest of the work. The queues are kept and used again for the life of the
/// process.
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
  std::optional<CUstream> cuda{};    ///< the stream of a consumer of CUDA
};

/// Orders later work of `consumer` behind the present work of `producer`. Within one context
/// this uses an event; if the contexts differ, the host waits. If `consumer` is out of order,
/// the host also waits for the producer's host tasks. Releases the GIL.
/// @throws conversion_error `runtime_error`
void hand_over(sycl::queue producer, sycl::queue consumer);

/// Like `hand_over` within one context, but never waits. So a `queue::memcpy` of an
/// out-of-order `consumer` may overtake host tasks.
/// @pre both queues are of one context; they may be the same out-of-order queue
/// @throws conversion_error `runtime_error`
void order_behind(sycl::queue producer, sycl::queue consumer);

/// Waits for a queue's present work, without the GIL.
/// @throws conversion_error `runtime_error`
void wait_for(const sycl::queue& queue);

/// Waits for the commands that a queue has now, without the GIL, while another thread may
/// submit to it. `queue::wait` would also wait for what that thread submits, with a lock of
/// the runtime, for which dpctl waits with the GIL, while a host task of dpctl waits for the
/// GIL.
/// @throws conversion_error `runtime_error`
void wait_by_event(sycl::queue queue);

}  // namespace usm_dlpack::python
