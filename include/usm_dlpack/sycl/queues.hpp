// SPDX-License-Identifier: Apache-2.0
//
// Waits for queues, and frees memory after their work. In a Python extension the package
// replaces these functions, because a wait must release the GIL. How a queue is waited for is
// in runtime_defects.hpp.
#pragma once

#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/runtime_defects.hpp>

#include <atomic>

namespace usm_dlpack::detail {

/// Waits for the present work of a queue, then frees USM. If waiting fails, or the queue
/// records a graph, the memory is not freed: a kernel may still write to it.
inline void wait_and_free(const sycl::queue& queue, void* address) noexcept {
  try {
    pending_work(queue).wait();
    sycl::free(address, queue.get_context());
  } catch (...) {  // a destructor cannot report it
  }
}

/// The functions that a Python extension replaces by the package's (python/package.hpp).
struct queue_functions {
  /// Waits for the present work of a queue. @pre it does not record a graph
  void (*wait_for_queue)(const sycl::queue& queue);
  /// Waits for the default queue of the queue's device, which consumers use unless they name
  /// one. In Python it is dpctl's; in C++ alone there is none.
  void (*wait_for_default_queue)(const sycl::queue& queue);
  /// Frees memory after the present work of its queue. May return before that.
  void (*free_after_work)(const sycl::queue& queue, void* address) noexcept;
  /// Frees what `free_after_work` left for later, if its work has ended.
  void (*free_finished)() noexcept;
};

inline constexpr queue_functions plain_queue_functions{
    [](const sycl::queue& queue) { pending_work(queue).wait(); }, [](const sycl::queue&) {},
    &wait_and_free, []() noexcept {}};

/// Not shared between libraries, which may be built with different versions of these headers.
[[gnu::visibility(
    "hidden")]] inline std::atomic<const queue_functions*> current_queue_functions{
    &plain_queue_functions};

inline const queue_functions& queue_functions_now() noexcept {
  return *current_queue_functions.load(std::memory_order_acquire);
}

}  // namespace usm_dlpack::detail
