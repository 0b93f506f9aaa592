// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <usm_dlpack/core/error.hpp>

#include <chrono>
#include <cstring>
#include <mutex>
#include <queue>

namespace usm_dlpack::python {
namespace {

std::atomic<bool> runtime_used{false};
std::atomic<bool> forked{false};

int is_adapter(dl_phdr_info* library, std::size_t, void*) noexcept {
  return std::strstr(library->dlpi_name, "libur_adapter_") != nullptr ? 1 : 0;
}

// Looks for the runtime's adapters, which it loads on the first query, by dpctl or anybody
// else. Runs before the fork, because the child may inherit a locked loader.
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
/// unwinding it, through functions that cannot be unwound. Not inlined, because in a noexcept
/// function the compiler may leave out the handler.
[[gnu::noinline]] void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    wait_for_the_end_of_the_process();
  }
}

using state_query = PyThreadState* (*)();

/// Finds a query of the current thread state, which the stable ABI lacks; every CPython has
/// one.
state_query find_state_query() noexcept {
  for (const char* name : {"PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"}) {
    if (void* found = dlsym(RTLD_DEFAULT, name)) {
      return reinterpret_cast<state_query>(found);
    }
  }
  return nullptr;
}

/// What waits for `run_later`'s runners. Never destroyed.
struct later_functions {
  std::mutex guard;
  std::queue<std::function<void()>> waiting;
  bool main_is_asked = false;
  std::chrono::steady_clock::time_point asked_at;
  bool has_thread = false;
};
auto& later = *new later_functions;

/// Runs all that wait. @param runner tells that this one has ended, under the lock
void run_waiting(bool later_functions::* runner) {
  const interpreter_gate gate;
  std::unique_lock<std::mutex> held(later.guard);
  while (!later.waiting.empty() && gate.open()) {
    std::function<void()> next = std::move(later.waiting.front());
    later.waiting.pop();
    held.unlock();
    next();
    next = nullptr;
    held.lock();
  }
  later.*runner = false;
}

int run_waiting_on_main(void*) noexcept {
  run_unlocked([] { run_waiting(&later_functions::main_is_asked); });
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

bool check_interpreter() noexcept {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) {
    return true;
  }
  PyErr_SetString(
      PyExc_ImportError,
      "usm_dlpack: expected the main interpreter, found a sub-interpreter, whose objects the "
      "SYCL runtime and dpctl would share with it; import the package in the main one");
  return false;
}

void interpreter_gate::close() {
  closer_ = std::this_thread::get_id();
  closed_ = true;
  const nb::gil_scoped_release unlocked;
  for (int tries = 0; inside_ != 0 && tries < 10000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool has_gil() noexcept {
  static const state_query current = find_state_query();
  // Before Python 3.12 this is the state of the thread that has the GIL.
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
  constexpr auto longest = std::chrono::seconds(1);
  const std::lock_guard<std::mutex> held(later.guard);
  later.waiting.push(std::move(function));
  const auto now = std::chrono::steady_clock::now();
  if (!later.main_is_asked) {
    later.main_is_asked = Py_AddPendingCall(&run_waiting_on_main, nullptr) == 0;
    later.asked_at = now;
  }
  if (!later.has_thread && (!later.main_is_asked || now - later.asked_at > longest)) {
    std::thread(&run_waiting, &later_functions::has_thread).detach();
    later.has_thread = true;
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
