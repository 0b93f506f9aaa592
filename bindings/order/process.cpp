// SPDX-License-Identifier: Apache-2.0
#include "order/process.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <usm_dlpack/core/error.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace usm_dlpack::python {
namespace {

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

/// Ends a child before the SYCL runtime does, which would wait for its thread of host tasks:
/// only the parent has that (DPC++ 2026.2).
void end_child(int status, void*) noexcept {
  std::fflush(nullptr);
  _exit(status);
}

void in_child() noexcept {
  interpreter_gate::forget_other_threads();
  if (runtime_used) {
    forked = true;
    on_exit(&end_child, nullptr);
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
    if (void* query = dlsym(RTLD_DEFAULT, name)) {
      return reinterpret_cast<state_query>(query);
    }
  }
  return nullptr;
}

// The exit handler's wait for the threads that are inside. Never destroyed.
auto& leaving_guard = *new std::mutex;
auto& last_has_left = *new std::condition_variable;
bool nobody_waits_for_leaving = false;

/// The number of `inside_module` objects of this thread.
thread_local int calls_inside = 0;

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

interpreter_gate::~interpreter_gate() {
  if (--inside_ <= 0 && closed_) {
    const std::lock_guard<std::mutex> lock(leaving_guard);
    last_has_left.notify_all();
  }
}

void interpreter_gate::close() {
  closer_ = std::this_thread::get_id();
  closed_ = true;
  {
    const nb::gil_scoped_release unlocked;
    std::unique_lock<std::mutex> lock(leaving_guard);
    last_has_left.wait_for(lock, std::chrono::seconds(10), [] { return inside_ <= 0; });
  }
  const std::lock_guard<std::mutex> lock(leaving_guard);
  nobody_waits_for_leaving = true;
  last_has_left.notify_all();
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
      std::unique_lock<std::mutex> lock(leaving_guard);
      last_has_left.wait(lock, [] { return nobody_waits_for_leaving; });
    }
    gate_.emplace();
  }
  cuda_.emplace();
}

inside_module::~inside_module() { --calls_inside; }

bool has_gil() noexcept {
  static const state_query current = find_state_query();
  // Before Python 3.12 this function returns the state of the thread that has the GIL.
  PyThreadState* state = current();
  return state != nullptr && state == PyGILState_GetThisThreadState();
}

void reference_drop::operator()(PyObject* object) const noexcept {
  const interpreter_gate gate;
  if (process_is_forked() || !gate.open()) {
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
