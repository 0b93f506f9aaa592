// SPDX-License-Identifier: Apache-2.0
//
// One USM allocation that can leave the process, owned together with the queue whose work is
// waited for before it is freed.
#pragma once

#include <usm_dlpack/usm_export.hpp>

#include <sycl/sycl.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace usm_dlpack::detail {

/// The device id that USM of a queue is exported with: that of the queue's root device, whose
/// default context the queue must have.
inline std::int32_t export_id(const sycl::queue& queue) {
  const sycl::context context = queue.get_context();
  if (device_table::get().find(context) == nullptr) {
    refuse_context(nullptr, true, context, -1);
  }
  return device_id(queue.get_device());
}

/// Calls a function with its argument, and returns once it has returned.
using function_runner = void (*)(void (*function)(void*), void* argument) noexcept;

/// Runs what waits for a queue; null runs it directly. The queue's work may stand behind a
/// host task that needs a lock of this thread: in Python the GIL, which a runner that the
/// package sets gives up (package_interface.hpp).
inline std::atomic<function_runner> runner_of_waits{nullptr};

/// Whether a queue says that all its work is done. One that records a graph says so of work
/// that was not even begun.
inline bool is_idle(const sycl::queue& queue) noexcept {
  using sycl::ext::oneapi::experimental::queue_state;
  try {
    return queue.ext_oneapi_get_state() == queue_state::executing && queue.ext_oneapi_empty();
  } catch (...) {
    return false;
  }
}

/// Waits for what a queue has got so far; not by a barrier, which on an out-of-order queue can
/// miss a host task that runs (DPC++ 2026.2). False where the runtime does not say that it is
/// done: then memory is not freed, because a kernel may still write to it.
inline bool wait_until_idle(sycl::queue queue) noexcept {
  try {
    queue.wait();
    return true;
  } catch (...) {
    return false;
  }
}

/// USM that nothing shows any more, with the queue whose work it waits for. Freed once, by
/// `free()`.
struct dropped_block {
  sycl::queue queue;
  void* address;

  /// Frees what is idle at once: to give up the GIL lets other threads run, which may wait for
  /// a lock that this one has.
  void free() noexcept {
    const function_runner run = runner_of_waits.load(std::memory_order_acquire);
    if (run == nullptr) {
      free_when_idle();
    } else if (is_idle(queue)) {
      give_back();
    } else {
      run([](void* block) { static_cast<dropped_block*>(block)->free_when_idle(); }, this);
    }
  }

 private:
  /// Waits twice: a backend's free may wait too, for kernels of any queue.
  void free_when_idle() noexcept {
    if (wait_until_idle(queue)) {
      give_back();
    }
  }

  void give_back() noexcept {
    try {
      sycl::free(address, queue.get_context());
    } catch (...) {  // nobody is left to tell
    }
  }
};

/// Owns one USM allocation of a queue's device and context. Null after a move.
class usm_block {
 public:
  usm_block(const sycl::queue& queue, sycl::usm::alloc kind, std::size_t alignment,
            std::size_t size)
      : queue_(queue), address_(ask_runtime("data", [&] {
          return sycl::aligned_alloc(alignment, size, queue.get_device(), queue.get_context(),
                                     kind);
        })) {
    if (address_ == nullptr) {
      refuse(errc::data_null, "data",
             digits(size) + " bytes of " + to_string(kind) + " USM for the array",
             "null: the SYCL runtime had none to give", "free other memory, or use less");
    }
  }
  usm_block(usm_block&& other) noexcept
      : queue_(other.queue_), address_(std::exchange(other.address_, nullptr)) {}
  /// What was here before goes last: while it waits, other threads may look at this block.
  usm_block& operator=(usm_block&& other) noexcept {
    if (this != &other) {
      const usm_block old(std::move(*this));
      queue_ = other.queue_;
      address_ = std::exchange(other.address_, nullptr);
    }
    return *this;
  }
  ~usm_block() {
    if (void* const address = std::exchange(address_, nullptr)) {
      dropped_block{queue_, address}.free();
    }
  }

  const sycl::queue& queue() const noexcept { return queue_; }
  void* address() const noexcept { return address_; }

 private:
  sycl::queue queue_;
  void* address_;
};

}  // namespace usm_dlpack::detail
