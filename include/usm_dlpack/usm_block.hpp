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
  usm_block(usm_block&& other) noexcept : queue_(other.queue_), address_(other.address_) {
    other.address_ = nullptr;
  }
  usm_block& operator=(usm_block&& other) noexcept {
    if (this != &other) {
      free();
      queue_ = other.queue_;
      address_ = other.address_;
      other.address_ = nullptr;
    }
    return *this;
  }
  ~usm_block() { free(); }

  const sycl::queue& queue() const noexcept { return queue_; }
  void* address() const noexcept { return address_; }

 private:
  void free() noexcept {
    if (address_ == nullptr) {
      return;
    }
    const auto wait_and_free = [](void* block) {
      static_cast<usm_block*>(block)->free_when_idle();
    };
    if (const function_runner run = runner_of_waits.load(std::memory_order_acquire)) {
      run(wait_and_free, this);
    } else {
      wait_and_free(this);
    }
  }

  /// Waits twice: a backend's free may wait too, for kernels of any queue.
  void free_when_idle() noexcept {
    if (is_idle()) {
      try {
        sycl::free(address_, queue_.get_context());
      } catch (...) {  // nobody is left to tell
      }
    }
  }

  /// Waits for what the queue has got so far. False where the runtime does not say that it is
  /// done: then the memory is not freed, because a kernel may still write to it.
  bool is_idle() noexcept {
    try {
      queue_.ext_oneapi_submit_barrier().wait();
      return true;
    } catch (...) {
      return false;
    }
  }

  sycl::queue queue_;
  void* address_;
};

}  // namespace usm_dlpack::detail
