// SPDX-License-Identifier: Apache-2.0
//
// Waits for queues, and frees memory after their work. A Python extension replaces the two
// functions that wait by ones that release the GIL.
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

/// Whether a queue runs its commands, and does not record them in a graph.
inline bool is_executing(const sycl::queue& queue) {
  return queue.ext_oneapi_get_state() ==
         sycl::ext::oneapi::experimental::queue_state::executing;
}

/// Whether a command is complete, or there is none.
inline bool is_complete(const std::optional<sycl::event>& command) {
  using sycl::info::event_command_status;
  return !command || command->get_info<sycl::info::event::command_execution_status>() ==
                         event_command_status::complete;
}

/// Whether all work of a queue is known to be done; for the Python package. False for a queue
/// that records a graph, which looks idle. On OpenCL, `ext_oneapi_empty` crashes while another
/// thread submits to the queue (DPC++ 2026.2), and an out-of-order queue has nothing else to
/// query.
inline bool is_idle(const sycl::queue& queue) noexcept {
  try {
    if (!is_executing(queue)) {
      return false;
    }
    if (queue.get_backend() != sycl::backend::opencl) {
      return queue.ext_oneapi_empty();
    }
    return queue.is_in_order() && is_complete(queue.ext_oneapi_get_last_event());
  } catch (...) {
    return false;
  }
}

/// Waits for the present work of an in-order queue, for at most a second, by polling its last
/// command. `queue::wait` would hold a lock of the runtime while it waits for a command behind
/// a host task (DPC++ 2026.2): dpctl, which submits with the GIL held, would wait for that
/// lock, while its host task waits for the GIL.
/// @returns whether that work is done; false at once for an out-of-order queue, for one that
///          records a graph, and on backends other than OpenCL, where a status may not change
///          until somebody waits
inline bool watch_last_command(const sycl::queue& queue) {
  using clock = std::chrono::steady_clock;
  if (!queue.is_in_order() || queue.get_backend() != sycl::backend::opencl ||
      !is_executing(queue)) {
    return false;
  }
  const std::optional<sycl::event> last = queue.ext_oneapi_get_last_event();
  const auto begin = clock::now();
  while (!is_complete(last)) {
    const clock::duration spent = clock::now() - begin;
    if (spent > std::chrono::seconds(1)) {
      return false;
    }
    if (spent < std::chrono::microseconds(100)) {  // which the shortest sleep takes
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(
          std::min<clock::duration>(spent / 16, std::chrono::milliseconds(1)));
    }
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

/// Waits for the present work of a queue, then frees USM. The host waits, because a barrier
/// can miss a running host task of an out-of-order queue (DPC++ 2026.2). The backend's free
/// may wait as well, for kernels of any queue. If waiting fails, the memory is not freed: a
/// kernel may still write to it.
inline void free_after_work(const sycl::queue& queue, void* address) noexcept {
  try {
    if (!watch_last_command(queue)) {
      wait_in_turn(queue);
    }
    sycl::free(address, queue.get_context());
  } catch (...) {  // a destructor cannot report it
  }
}

// A queue's host tasks may need a lock that the waiting thread holds: in Python, the GIL. So a
// Python extension replaces both functions by the package's, which release it
// (python/package.hpp).

/// Waits for the present work of a queue.
inline std::atomic<void (*)(const sycl::queue&)> wait_for_work{
    [](const sycl::queue& queue) { wait_in_turn(queue); }};

/// Frees memory after the present work of its queue.
inline std::atomic<decltype(&free_after_work)> free_behind_work{&free_after_work};

/// Orders later work of `consumer` behind the present work of `producer`, without waiting. For
/// one and the same queue a barrier is enough.
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
