// SPDX-License-Identifier: Apache-2.0
//
// The process and its interpreter: the SYCL runtime does not survive fork(), its objects
// belong to one interpreter, and threads of the runtime may drop Python objects until the end.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// Whether this is a fork()ed child of a process that used the SYCL runtime, whose threads and
/// locks exist only in the parent.
bool process_is_forked() noexcept;

/// @throws conversion_error `process_forked` in such a child
void check_process();

/// Registers the handlers of fork().
void register_process();

/// Whether a native thread may still take the GIL. After the interpreter began to finish,
/// Python ends each thread that asks for the GIL, whatever it is doing; so an atexit handler
/// closes the gate before, and waits for the threads that are inside.
class interpreter_gate {
 public:
  interpreter_gate() noexcept { ++inside_; }
  interpreter_gate(const interpreter_gate&) = delete;
  interpreter_gate& operator=(const interpreter_gate&) = delete;
  ~interpreter_gate() { --inside_; }

  /// The thread that finishes the interpreter holds the GIL, so the gate stays open for it.
  bool open() const noexcept {
    return nb::is_alive() && (!closed_ || std::this_thread::get_id() == closer_);
  }
  /// @pre the GIL is held; it is released while this waits, for ten seconds at most
  static void close();
  static bool is_closed() noexcept { return closed_; }
  /// For a child made by fork(), in which the other threads that were inside do not exist.
  static void forget_other_threads() noexcept { inside_ = 0; }

 private:
  static inline std::atomic<int> inside_{0};
  static inline std::atomic<bool> closed_{false};
  static inline std::thread::id closer_{};
};

/// A Python thread that runs a function of this module. Before 3.14 Python ends a thread that
/// asks for the GIL while the interpreter finishes, by unwinding its stack, which functions
/// that are noexcept do not survive; any Python code may release the GIL and ask for it. So
/// the exit handler waits for the threads that are inside, and one that comes later waits
/// first, 50 ms without the GIL: the interpreter finishes meanwhile, unless other exit
/// handlers run. Those may need the thread, so it goes on then.
/// @pre the GIL is held
class inside_module {
 public:
  inside_module() noexcept;
  inside_module(const inside_module&) = delete;
  inside_module& operator=(const inside_module&) = delete;
  ~inside_module();

 private:
  std::optional<interpreter_gate> gate_;  ///< of the thread's outermost call
};

/// Releases the GIL for the lifetime of this object. Until all atexit handlers have run, the
/// destructor takes it back; after that, a daemon thread waits here for the end of the
/// process, as in Python 3.14.
class without_gil {
 public:
  without_gil() noexcept : state_(PyEval_SaveThread()) {}
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;
  ~without_gil();

 private:
  PyThreadState* state_;
};

/// Whether this thread has the GIL, as the interpreter reports it. Does not wait for it.
bool has_gil() noexcept;

/// Runs a function soon, on a thread of its own, while the main thread waits for it between
/// two steps of its Python code. So in a program of one thread nobody submits to a queue that
/// another thread waits for: that may hang beside dpctl, which submits with the GIL, and crash
/// the OpenCL CPU driver (2026.2). The main thread waits for a second at most, because the
/// work may need it; the function does not wait longer than that for the main thread either.
/// The interpreter's end waits for the function that runs, and drops the others.
/// @pre the GIL is held
void run_later(std::function<void()> function);

/// Runs a function that waits for queues, without the GIL if this thread has it.
template <class Function>
void run_unlocked(Function&& function) {
  std::optional<without_gil> unlocked;
  if (has_gil()) {
    unlocked.emplace();
  }
  function();
}

/// How a thread that drops the last owner of memory can free it.
enum class freeing {
  here,
  /// By `run_later`: this thread has the GIL and runs no Python code, so it only drops an
  /// object. dpctl's host tasks do that, and would wait for the task that they are in.
  later,
  /// Never. In a child of fork() the memory and the work are the parent's. After the exit
  /// handlers have begun, work may wait for a Python that does not run any more.
  never,
};
freeing how_to_free() noexcept;

/// Runs a function that waits for queues and frees memory. All frees go through here. What is
/// not freed leaks with all that the function holds, queues too: destroying one may wait.
template <class Function>
void free_memory(Function&& function) noexcept {
  using kept = std::decay_t<Function>;
  switch (how_to_free()) {
    case freeing::here: run_unlocked(function); return;
    case freeing::later: try { run_later(function);
      } catch (...) {  // std::bad_alloc, or std::system_error: leaks
        new (std::nothrow) kept(std::forward<Function>(function));
      }
      return;
    case freeing::never: new (std::nothrow) kept(std::forward<Function>(function)); return;
  }
}

/// Takes the GIL to drop a reference. Does nothing once the interpreter is finishing.
struct reference_drop {
  void operator()(PyObject* object) const noexcept;
};
/// Owns one reference to a Python object; any thread may destroy it.
using python_reference = std::unique_ptr<PyObject, reference_drop>;

}  // namespace usm_dlpack::python
