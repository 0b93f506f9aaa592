// SPDX-License-Identifier: Apache-2.0
#include "memory/frees.hpp"
#include "order/process.hpp"

#include <usm_dlpack/sycl/queues.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace usm_dlpack::python {
namespace {

/// Work that must end before something is freed: one query a queue, which its frees share.
using shared_work = std::shared_ptr<detail::pending_work>;

bool has_ended(const shared_work& work) { return work->has_ended(); }

/// What threads left that must not wait.
///
/// A queue gets one barrier at a time: when thousands of barriers wait behind held work, their
/// ends nest, and overflow the stack of the OpenCL CPU driver (intel-opencl-rt 2026.2).
class deferred_frees {
 public:
  bool is_empty() const noexcept { return is_empty_; }

  void add(pending_free pending) {
    const std::lock_guard<std::mutex> lock(guard_);
    arrived_.push_back(std::move(pending));
    is_empty_ = false;
  }

  /// Returns what can be freed, and begins to query for what has arrived; nothing if another
  /// thread does this now. @pre the GIL is not held: a query may wait for a host task
  std::vector<pending_free> take_finished() {
    const std::unique_lock<std::mutex> alone(finishing_, std::try_to_lock);
    if (!alone.owns_lock()) {
      return {};
    }
    queried_.erase(std::remove_if(queried_.begin(), queried_.end(),
                                  [](const query& entry) { return has_ended(entry.work); }),
                   queried_.end());
    query_for(take_arrived());
    std::vector<pending_free> finished;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      if (std::all_of(next->work.begin(), next->work.end(), &has_ended)) {
        finished.push_back(std::move(next->pending));
        next = waiting_.erase(next);
      } else {
        ++next;
      }
    }
    const std::lock_guard<std::mutex> lock(guard_);
    is_empty_ = arrived_.empty() && waiting_.empty();
    return finished;
  }

 private:
  struct query {
    sycl::queue queue;
    shared_work work;
  };
  struct waiting_free {
    pending_free pending;
    std::vector<shared_work> work;
  };

  std::vector<pending_free> take_arrived() {
    const std::lock_guard<std::mutex> lock(guard_);
    return std::exchange(arrived_, {});
  }

  /// Leaves for later what has a queue that records a graph, or that was queried before. What
  /// cannot be queried leaks.
  void query_for(std::vector<pending_free> arrived) {
    std::vector<query> queries;
    for (pending_free& pending : arrived) {
      const auto is_busy = [this](const sycl::queue& queue) {
        return detail::is_recording(queue) || find(queried_, queue) != nullptr;
      };
      if (std::any_of(pending.queues.begin(), pending.queues.end(), is_busy)) {
        add(std::move(pending));
        continue;
      }
      try {
        std::vector<shared_work> work;
        for (const sycl::queue& queue : pending.queues) {
          const query* entry = find(queries, queue);
          if (entry == nullptr) {
            queries.push_back({queue, std::make_shared<detail::pending_work>(queue)});
            entry = &queries.back();
          }
          work.push_back(entry->work);
        }
        waiting_.push_back({std::move(pending), std::move(work)});
      } catch (const std::exception&) {
        new pending_free(std::move(pending));
      }
    }
    queried_.insert(queried_.end(), queries.begin(), queries.end());
  }

  static const query* find(const std::vector<query>& queries, const sycl::queue& queue) {
    const auto match = std::find_if(queries.begin(), queries.end(),
                                    [&](const query& entry) { return entry.queue == queue; });
    return match == queries.end() ? nullptr : &*match;
  }

  std::mutex guard_;  ///< of the two below
  std::atomic<bool> is_empty_{true};
  std::vector<pending_free> arrived_;
  std::mutex finishing_;  ///< of the two below
  std::vector<waiting_free> waiting_;
  std::vector<query> queried_;
};
auto& deferred = *new deferred_frees;  // never destroyed: threads may outlive the statics

/// Whether this thread runs no Python code: in a host task, of dpctl with the GIL and of
/// others without, or on a thread of C++.
bool runs_no_python() noexcept {
  return PyGILState_GetThisThreadState() == nullptr ||
         (has_gil() && PyEval_GetGlobals() == nullptr);
}

}  // namespace

void free_after_work(pending_free pending) noexcept {
  const interpreter_gate gate;  // the interpreter's end waits for what is freed here
  try {
    if (process_is_forked() || interpreter_gate::is_closed()) {
      new pending_free(std::move(pending));
    } else if (runs_no_python()) {
      deferred.add(std::move(pending));
    } else {
      run_unlocked([&] {
        const cuda_thread_scope kept;  // the garbage collector may drop arrays at any time
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

void free_usm_after_work(std::vector<sycl::queue> queues, void* address,
                         const sycl::context& context) noexcept {
  try {
    free_after_work({std::move(queues), [address, context]() noexcept {
                       try {
                         sycl::free(address, context);
                       } catch (const sycl::exception&) {
                         // The runtime is shutting down, and frees the memory itself.
                       }
                     }});
  } catch (const std::bad_alloc&) {  // leaks
  }
}

void free_finished() noexcept {
  if (deferred.is_empty() || process_is_forked()) {
    return;
  }
  try {
    run_unlocked([] {
      const cuda_thread_scope kept;
      for (const pending_free& pending : deferred.take_finished()) {
        pending.free();
      }
    });
  } catch (...) {  // what it took leaks
  }
}

}  // namespace usm_dlpack::python
