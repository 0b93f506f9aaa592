// SPDX-License-Identifier: Apache-2.0
//
// Workarounds for defects of the SYCL runtime and its drivers, each with the version that has
// the defect and the test that shows it. When a newer runtime passes that test without the
// workaround, delete the workaround.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace usm_dlpack::detail {

/// Whether a queue records its commands in a graph, and does not run them. The query takes
/// nanoseconds.
inline bool is_recording(const sycl::queue& queue) {
  return queue.ext_oneapi_get_state() ==
         sycl::ext::oneapi::experimental::queue_state::recording;
}

/// Refuses a queue that records a graph, before anything is submitted to it. A barrier on it
/// would become a node of the graph, and its event would never complete. An executing queue
/// that is ordered behind it would silently begin to record (DPC++ 2026.2;
/// test_graphs.py).
/// @throws conversion_error `runtime_error`
inline void check_executing(const sycl::queue& queue) {
  if (is_recording(queue)) {
    refuse(errc::runtime_error, "queue", "a queue that runs its work",
           "one that records a graph", "do this before the recording begins or after it ends");
  }
}

/// Keeps the 64 out-of-order queues of OpenCL alive whose barriers are the newest. The CPU
/// driver hangs if the last handle of such a queue is released while its thread is still
/// finishing the queue's last command, although its event is complete (intel-opencl-rt 2026.2;
/// test_progress.py, "right after its work"). `queue::wait` would wait for that thread, but
/// see `pending_work`.
inline void keep_queue_alive(const sycl::queue& queue) {
  if (queue.is_in_order() || queue.get_backend() != sycl::backend::opencl) {
    return;
  }
  static auto& mutex = *new std::mutex;  // never destroyed: threads may outlive the statics
  static auto& newest = *new std::array<std::optional<sycl::queue>, 64>;  // in this order
  std::optional<sycl::queue> oldest = queue;  // destroyed after the lock
  const std::lock_guard<std::mutex> lock(mutex);
  auto place = std::find(newest.begin(), newest.end(), oldest);
  if (place == newest.end()) {
    place = newest.begin();
    place->swap(oldest);
  }
  std::rotate(place, place + 1, newest.end());
}

/// Submits a barrier. @pre the queue runs its work
inline sycl::event submit_barrier(sycl::queue queue) {
  keep_queue_alive(queue);
  return queue.ext_oneapi_submit_barrier();
}

inline sycl::info::event_command_status status_of(const sycl::event& command) {
  return command.get_info<sycl::info::event::command_execution_status>();
}

/// Whether a command has ended, by completing or by an error.
inline bool has_ended(const sycl::event& command) {
  using sycl::info::event_command_status;
  const event_command_status status = status_of(command);
  return status != event_command_status::submitted && status != event_command_status::running;
}

/// Polls a command of OpenCL until it has ended. `pending_work` says why.
/// @throws sycl::exception if the command failed
inline void poll(sycl::event command) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  while (!has_ended(command)) {
    const clock::duration spent = clock::now() - begin;
    if (spent < std::chrono::microseconds(100)) {  // the shortest sleep takes that long
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(
          std::min<clock::duration>(spent / 16, std::chrono::milliseconds(1)));
    }
  }
  if (status_of(command) != sycl::info::event_command_status::complete) {
    command.wait();  // throws the error
  }
}

/// Waits for a command that is behind no host task. @throws sycl::exception if it failed
/// @pre on OpenCL its queue is in order or is not released soon (see `keep_queue_alive`)
inline void wait_for_command(sycl::event command) {
  if (command.get_backend() == sycl::backend::opencl) {
    poll(std::move(command));
  } else {
    command.wait();
  }
}

/// Whether a barrier of this process was ever behind a host task.
inline std::atomic<bool> host_tasks_are_used{false};

/// Lets the runtime forget a barrier of an out-of-order queue that is complete, by the end of
/// a host task. Otherwise the end of any later host task makes it forget, with the barrier,
/// what is pending behind other host tasks, and the next barrier does not wait for that (DPC++
/// 2026.2; test_opencl_interop.cpp). One thread runs all host tasks: it has forgotten when it
/// runs the next one. Waits for at most a millisecond, because the thread may be held back.
/// Does nothing before the first host task: each takes memory until `queue::wait`.
inline void forget_barrier(sycl::queue queue) {
  if (queue.is_in_order() || !host_tasks_are_used) {
    return;
  }
  const auto submit = [&] {
    return queue.submit([](sycl::handler& handler) { handler.host_task([] {}); });
  };
  submit();
  const sycl::event next = submit();
  const auto begin = std::chrono::steady_clock::now();
  while (!has_ended(next) &&
         std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1)) {
    std::this_thread::yield();
  }
}

/// The commands that a queue has when this object is constructed. Other threads may submit to
/// the queue and wait for it meanwhile.
///
/// On OpenCL this polls, because each function that waits fails (test_progress.py):
/// - `queue::wait`, while it waits for a command behind a host task, holds a lock of the
///   runtime that every submission needs. dpctl submits with the GIL held, and its host tasks
///   need the GIL, so all wait for each other (DPC++ 2026.2).
/// - `clFinish` of the CPU driver crashes if several threads call it for one out-of-order
///   queue (intel-opencl-rt 2026.2).
/// - A thread in `clWaitForEvents` occupies a slot of the CPU driver's thread arena. If a
///   host task then waits for a command of an out-of-order queue, as dpctl's do, the driver
///   runs that wait on a thread that works on that queue, which waits for itself
///   (intel-opencl-rt 2026.2).
/// - `event::wait` may return too early if the command is behind a host task (DPC++ 2026.2).
///   So may the status of such a command, but not that of a barrier.
///
/// On other backends the status of an event may not change until a thread waits. There the
/// queries report whether the queue is empty now, and `wait` is `queue::wait`, also for later
/// work. An in-order queue that SYCL has not used has no last event, and counts as empty
/// whatever native commands it has (DPC++ 2026.2): on OpenCL it gets a barrier.
class pending_work {
 public:
  /// Any query may wait for a lock that another thread holds while it waits for a host task of
  /// dpctl. So a Python thread first releases the GIL.
  /// @throws conversion_error `runtime_error` for a queue that records a graph;
  /// sycl::exception
  explicit pending_work(const sycl::queue& queue) : queue_(queue) {
    check_executing(queue_);
    if (queue_.get_backend() == sycl::backend::opencl) {
      last_ = queue_.is_in_order() ? queue_.ext_oneapi_get_last_event() : std::nullopt;
      const bool is_behind_host_task = last_ && !last_->get_wait_list().empty();
      if (!last_ || is_behind_host_task) {
        last_ = submit_barrier(queue_);
        if (!last_->get_wait_list().empty()) {
          host_tasks_are_used = true;
        }
      }
    }
  }

  /// Whether the work is complete. Does not wait for it.
  bool is_done() const {
    if (!last_) {
      return queue_.ext_oneapi_empty();
    }
    const bool done = status_of(*last_) == sycl::info::event_command_status::complete;
    if (done) {
      forget_barrier(queue_);
    }
    return done;
  }
  /// Whether the work is complete or has failed. Never waits.
  bool has_ended() const {
    return last_ ? detail::has_ended(*last_) : queue_.ext_oneapi_empty();
  }

  /// Waits for the work. @throws sycl::exception of a failed command
  void wait() {
    if (last_) {
      poll(*last_);
      forget_barrier(queue_);
    } else {
      queue_.wait();
    }
  }

  /// An event after the work. Never waits.
  sycl::event event() {
    return last_ && !queue_.is_in_order() ? *last_ : submit_barrier(queue_);
  }

 private:
  sycl::queue queue_;
  std::optional<sycl::event> last_;  ///< the last command, or a barrier; only on OpenCL
};

/// Orders later work of `consumer` behind the work of `producer`. Waits only if `consumer` is
/// out of order and `producer` has a host task: `queue::memcpy` on it would overtake a barrier
/// behind the host task (DPC++ 2026.2; test_order.py).
/// @pre both are of one context, and run their work
inline void order_by_event(pending_work& producer, sycl::queue consumer) {
  sycl::event last = producer.event();
  if (consumer.is_in_order()) {
    // `ext_oneapi_submit_barrier({last})` would block behind a host task (DPC++ 2026.2).
    consumer.submit([&](sycl::handler& handler) {
      handler.depends_on(last);
      handler.ext_oneapi_barrier();
    });
  } else if (last.get_wait_list().empty()) {
    keep_queue_alive(consumer);
    consumer.ext_oneapi_submit_barrier({last});
  } else {
    producer.wait();
  }
}

/// Whether a device is known to reach the memory of another one. On OpenCL the query would end
/// the process (DPC++ 2026.2; test_devices.py on PoCL).
inline bool can_access_peer(sycl::device device, const sycl::device& other) {
  try {
    return device.get_backend() != sycl::backend::opencl &&
           device.ext_oneapi_can_access_peer(other);
  } catch (const sycl::exception&) {  // the backend does not know
    return false;
  }
}

}  // namespace usm_dlpack::detail
