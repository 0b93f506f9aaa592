// SPDX-License-Identifier: Apache-2.0
#include "frees.hpp"
#include "cuda_streams.hpp"
#include "process.hpp"

#include <usm_dlpack/sycl/queues.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

namespace usm_dlpack::python {
namespace {

/// What host tasks left.
///
/// One batch at a time is queried, with one barrier a queue: when thousands of barriers wait
/// behind held work, their ends nest, and overflow the stack of the OpenCL CPU driver
/// (intel-opencl-rt 2026.2).
struct left_by_host_tasks {
  std::mutex guard;
  std::atomic<bool> is_empty{true};
  std::vector<pending_free> arrived;
  std::vector<pending_free> batch;
  std::vector<detail::pending_work> work_before_batch;

  void add(pending_free pending) {
    const std::lock_guard<std::mutex> lock(guard);
    arrived.push_back(std::move(pending));
    is_empty = false;
  }

  /// Returns the batch, if its work is done, and makes the next one.
  std::vector<pending_free> take_finished() {
    std::vector<pending_free> finished;
    const std::lock_guard<std::mutex> lock(guard);
    if (batch.empty()) {
      begin_batch();
    }
    if (std::all_of(work_before_batch.begin(), work_before_batch.end(),
                    [](const detail::pending_work& work) { return work.has_ended(); })) {
      finished.swap(batch);
      work_before_batch.clear();
    }
    is_empty = arrived.empty() && batch.empty();
    return finished;
  }

 private:
  void begin_batch() {
    const auto records = [](const pending_free& pending) {
      return std::any_of(pending.queues.begin(), pending.queues.end(), &detail::is_recording);
    };
    const auto later = std::partition(arrived.begin(), arrived.end(),
                                      [&](const pending_free& p) { return !records(p); });
    std::vector<sycl::queue> queues;
    std::vector<detail::pending_work> work;
    for (auto pending = arrived.begin(); pending != later; ++pending) {
      for (const sycl::queue& queue : pending->queues) {
        if (std::find(queues.begin(), queues.end(), queue) == queues.end()) {
          queues.push_back(queue);
          work.emplace_back(queue);
        }
      }
    }
    batch.assign(std::make_move_iterator(arrived.begin()), std::make_move_iterator(later));
    arrived.erase(arrived.begin(), later);
    work_before_batch = std::move(work);
  }
};
auto& of_host_tasks =
    *new left_by_host_tasks;  // never destroyed: threads may outlive the statics

/// Whether this thread has the GIL, and no Python code of its own that dropped something.
bool only_drops() noexcept { return has_gil() && PyEval_GetGlobals() == nullptr; }

}  // namespace

void free_after_work(pending_free pending) noexcept {
  try {
    if (process_is_forked() || interpreter_gate::is_closed()) {
      new pending_free(std::move(pending));
    } else if (only_drops()) {
      of_host_tasks.add(std::move(pending));
    } else {
      run_unlocked([&] {
        const beside_recordings relaxed;  // the garbage collector may drop arrays at any time
        for (const sycl::queue& queue : pending.queues) {
          detail::pending_work(queue).wait();
        }
        pending.free();
      });
    }
  } catch (...) {
    new (std::nothrow) pending_free(std::move(pending));
  }
}

void free_finished() noexcept {
  if (of_host_tasks.is_empty) {
    return;
  }
  try {
    const std::vector<pending_free> finished = of_host_tasks.take_finished();
    if (!finished.empty()) {
      run_unlocked([&] {
        const beside_recordings relaxed;
        for (const pending_free& pending : finished) {
          pending.free();
        }
      });
    }
  } catch (...) {  // a queue failed: what belongs to it is tried again
  }
}

}  // namespace usm_dlpack::python
