// SPDX-License-Identifier: Apache-2.0
//
// Waits for queues, and frees memory after their work. The functions that a Python extension
// replaces, so that it waits without the GIL, stand here.
#pragma once

#include <usm_dlpack/sycl/config.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace usm_dlpack::detail {

/// Whether all work of a queue is known to be done, for the Python package. False for a queue
/// that records a graph, which looks idle. On OpenCL, `ext_oneapi_empty` crashes while another
/// thread submits to the queue (DPC++ 2026.2), and an out-of-order queue has nothing else to
/// query.
inline bool is_idle(const sycl::queue& queue) noexcept {
  using sycl::ext::oneapi::experimental::queue_state;
  using sycl::info::event_command_status;
  try {
    if (queue.ext_oneapi_get_state() != queue_state::executing) {
      return false;
    }
    if (queue.get_backend() != sycl::backend::opencl) {
      return queue.ext_oneapi_empty();
    }
    if (!queue.is_in_order()) {
      return false;
    }
    const std::optional<sycl::event> last = queue.ext_oneapi_get_last_event();
    return !last || last->get_info<sycl::info::event::command_execution_status>() ==
                        event_command_status::complete;
  } catch (...) {
    return false;
  }
}

/// Waits for the present work of an in-order queue for a second, by looking at its last
/// command again and again. `queue::wait` holds a lock of the runtime while it waits for a
/// command behind a host task (DPC++ 2026.2). dpctl submits with the GIL held, and would wait
/// for that lock, while its host task waits for the GIL.
/// @returns whether that work is done; false at once for another queue, for one that records a
///          graph, and on other backends than OpenCL, where a status may stay as it is until
///          somebody waits
inline bool watch_last_command(const sycl::queue& queue) {
  using sycl::ext::oneapi::experimental::queue_state;
  using sycl::info::event_command_status;
  using clock = std::chrono::steady_clock;
  if (!queue.is_in_order() || queue.get_backend() != sycl::backend::opencl ||
      queue.ext_oneapi_get_state() != queue_state::executing) {
    return false;
  }
  const std::optional<sycl::event> last = queue.ext_oneapi_get_last_event();
  const auto begin = clock::now();
  while (last && last->get_info<sycl::info::event::command_execution_status>() !=
                     event_command_status::complete) {
    const clock::duration spent = clock::now() - begin;
    if (spent > std::chrono::seconds(1)) {
      return false;
    }
    std::this_thread::sleep_for(
        std::min<clock::duration>(spent / 16, std::chrono::milliseconds(1)));
  }
  return true;
}

/// Waits for a queue. Threads that wait for the same queue take turns: the OpenCL CPU driver
/// crashes if several wait for one out-of-order queue (intel-opencl-rt 2026.2).
inline void wait_in_turn(sycl::queue queue) {
  static auto& mutex = *new std::mutex;  // never destroyed: threads may outlive the statics
  static auto& ended = *new std::condition_variable;
  static auto& waited_for = *new std::vector<sycl::queue>;
  std::unique_lock<std::mutex> lock(mutex);
  const auto find = [&] { return std::find(waited_for.begin(), waited_for.end(), queue); };
  ended.wait(lock, [&] { return find() == waited_for.end(); });
  waited_for.push_back(queue);
  lock.unlock();
  std::exception_ptr thrown;
  try {
    watch_last_command(queue);
    queue.wait();  // reports errors
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  waited_for.erase(find());
  ended.notify_all();
  if (thrown != nullptr) {
    std::rethrow_exception(thrown);
  }
}

/// Frees USM after the work of its queue. Waits, as the backend's free may do too, for kernels
/// of any queue. Not by a barrier, which can miss a running host task of an out-of-order queue
/// (DPC++ 2026.2). If waiting fails, the memory is not freed: a kernel may still write to it.
inline void free_after_work(const sycl::queue& queue, void* address) noexcept {
  try {
    if (!watch_last_command(queue)) {
      wait_in_turn(queue);
    }
    sycl::free(address, queue.get_context());
  } catch (...) {  // a destructor cannot report it
  }
}

// A queue's host tasks may need a lock of the thread that waits: in Python the GIL. So an
// extension replaces both functions by the package's, which release it (nanobind/package.hpp).

/// Waits for the present work of a queue.
inline std::atomic<void (*)(const sycl::queue&)> wait_for_work{
    [](const sycl::queue& queue) { wait_in_turn(queue); }};

/// Frees the memory of a queue after its work.
inline std::atomic<decltype(&free_after_work)> free_behind_work{&free_after_work};

/// Orders later work of `consumer` behind the present work of `producer`, without waiting. A
/// barrier alone orders later commands of its own queue.
/// @pre both are of one context
inline void order_by_event(sycl::queue producer, sycl::queue consumer) {
  const sycl::event pending = producer.ext_oneapi_submit_barrier();
  if (producer != consumer) {
    consumer.submit([&](sycl::handler& handler) {
      handler.depends_on(pending);
      handler.ext_oneapi_barrier();
    });
  }
}

}  // namespace usm_dlpack::detail
