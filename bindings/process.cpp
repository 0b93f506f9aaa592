// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <usm_dlpack/core/error.hpp>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <queue>

namespace usm_dlpack::python {
namespace {

/// The number of `inside_module` objects of this thread.
thread_local int calls_inside = 0;

std::atomic<bool> runtime_used{false};
std::atomic<bool> forked{false};

int is_adapter(dl_phdr_info* library, std::size_t, void*) noexcept {
  return std::strstr(library->dlpi_name, "libur_adapter_") != nullptr ? 1 : 0;
}

// Notes whether the runtime was used: it loads its adapters on the first query by anybody.
// Runs before the fork, because in the child the loader may be locked.
void before_fork() noexcept {
  if (dl_iterate_phdr(&is_adapter, nullptr) != 0) {
    runtime_used = true;
  }
}

void in_child() noexcept {
  interpreter_gate::forget_other_threads();
  if (runtime_used) {
    forked = true;
  }
}

[[noreturn]] void wait_for_the_end_of_the_process() noexcept {
  while (true) {
    pause();
  }
}

/// Takes the GIL. Once the interpreter finishes, Python before 3.14 ends the thread here by
/// unwinding its stack, which must not reach noexcept functions. Not inlined, because in a
/// noexcept function the compiler may leave out the handler.
[[gnu::noinline]] void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    wait_for_the_end_of_the_process();
  }
}

using state_query = PyThreadState* (*)();

/// Finds the function that returns the current thread state. It is not in the stable ABI, but
/// every CPython has one of these two.
state_query find_state_query() noexcept {
  for (const char* name : {"PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"}) {
    if (void* found = dlsym(RTLD_DEFAULT, name)) {
      return reinterpret_cast<state_query>(found);
    }
  }
  return nullptr;
}

/// The functions of `run_later`, and the thread that runs them. Never destroyed.
struct later_functions {
  std::mutex guard;
  std::condition_variable changed;
  std::queue<std::function<void()>> waiting;
  bool main_is_asked = false;
  std::chrono::steady_clock::time_point asked_at;
  bool has_thread = false;
  bool is_running = false;  ///< whether the thread is to run the functions that wait
};
auto& later = *new later_functions;

constexpr auto longest_wait = std::chrono::seconds(1);

void run_waiting() {
  std::unique_lock<std::mutex> held(later.guard);
  while (true) {
    later.changed.wait(held, [] { return later.is_running; });
    while (!later.waiting.empty()) {
      const interpreter_gate gate;
      if (!gate.open()) {
        return;
      }
      std::function<void()> next = std::move(later.waiting.front());
      later.waiting.pop();
      held.unlock();
      next();
      next = nullptr;
      held.lock();
    }
    later.is_running = false;
    later.changed.notify_all();
  }
}

/// @pre `later.guard` is locked
/// @throws std::system_error if no thread can be made; the functions then wait for the next
///         call
void start_running() {
  if (!later.has_thread) {
    std::thread(&run_waiting).detach();
    later.has_thread = true;
  }
  later.is_running = true;
  later.changed.notify_all();
}

int wait_on_main(void*) noexcept {
  run_unlocked([] {
    std::unique_lock<std::mutex> held(later.guard);
    later.main_is_asked = false;
    try {
      start_running();
      later.changed.wait_for(held, longest_wait, [] { return !later.is_running; });
    } catch (const std::system_error&) {
    }
  });
  return 0;
}

}  // namespace

bool process_is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

void check_process() {
  if (process_is_forked()) {
    detail::refuse(
        errc::process_forked, "process", "the one that the SYCL runtime was started in",
        "a child made by fork()",
        "start the child anew, for example by "
        "multiprocessing.set_start_method(\"spawn\"), or fork before the first use");
  }
}

void register_process() { pthread_atfork(&before_fork, nullptr, &in_child); }

void interpreter_gate::close() {
  closer_ = std::this_thread::get_id();
  closed_ = true;
  const nb::gil_scoped_release unlocked;
  for (int tries = 0; inside_ > 0 && tries < 10000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

inside_module::inside_module() noexcept {
  if (++calls_inside > 1) {
    return;
  }
  gate_.emplace();
  if (!gate_->open()) {
    gate_.reset();
    {
      const without_gil unlocked;  // does not come back if the interpreter finishes
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    gate_.emplace();
  }
}

inside_module::~inside_module() { --calls_inside; }

bool has_gil() noexcept {
  static const state_query current = find_state_query();
  // Before Python 3.12 this function returns the state of the thread that has the GIL.
  PyThreadState* state = current();
  return state != nullptr && state == PyGILState_GetThisThreadState();
}

freeing how_to_free() noexcept {
  if (process_is_forked() || interpreter_gate::is_closed()) {
    return freeing::never;
  }
  const bool only_drops = has_gil() && PyEval_GetGlobals() == nullptr;
  return only_drops ? freeing::later : freeing::here;
}

void run_later(std::function<void()> function) {
  const std::lock_guard<std::mutex> held(later.guard);
  later.waiting.push(std::move(function));
  const auto now = std::chrono::steady_clock::now();
  if (!later.main_is_asked) {
    later.main_is_asked = Py_AddPendingCall(&wait_on_main, nullptr) == 0;
    later.asked_at = now;
  }
  if (!later.main_is_asked || now - later.asked_at > longest_wait) {
    start_running();
  }
}

void reference_drop::operator()(PyObject* object) const noexcept {
  const interpreter_gate gate;
  if (!gate.open()) {
    return;
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(object);
  PyGILState_Release(state);
}

without_gil::~without_gil() {
  if (!nb::is_alive()) {
    wait_for_the_end_of_the_process();
  }
  take_gil(state_);
}

}  // namespace usm_dlpack::python
