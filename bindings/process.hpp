// SPDX-License-Identifier: Apache-2.0
//
// The process and its interpreter. The SYCL runtime does not survive fork(). Threads of the
// runtime may drop Python objects until the process ends.
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

/// Whether this process was made by fork() from one that used the SYCL runtime. The runtime's
/// threads exist only in the parent, and its locks may be held forever.
bool process_is_forked() noexcept;

/// @throws conversion_error `process_forked` in such a child
void check_process();

/// Registers the handlers of fork().
void register_process();

/// Says whether a thread may still take the GIL. Once the interpreter finishes, Python ends
/// each thread that asks for the GIL, whatever it is doing. So an atexit handler first closes
/// the gate, and waits for the threads that are inside.
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
  /// For a child made by fork(): other threads that were inside do not exist there.
  static void forget_other_threads() noexcept { inside_ = 0; }

 private:
  static inline std::atomic<int> inside_{0};
  static inline std::atomic<bool> closed_{false};
  static inline std::thread::id closer_{};
};

/// Held while a Python thread runs a function of this module. Any Python code may release the
/// GIL and ask for it again. If the interpreter finishes meanwhile, Python before 3.14 ends
/// the thread by unwinding its stack, and noexcept functions abort the process. So the exit
/// handler waits for the threads that are inside. A thread that comes later first waits for 50
/// ms without the GIL. Usually the interpreter finishes in this time, and the thread ends
/// here. If other exit handlers run, they may need the thread, so it goes on after the wait.
/// @pre the GIL is held
class inside_module {
 public:
  inside_module() noexcept;
  inside_module(const inside_module&) = delete;
  inside_module& operator=(const inside_module&) = delete;
  ~inside_module();

 private:
  std::optional<interpreter_gate> gate_;  ///< only in the thread's outermost call
};

/// Releases the GIL for the lifetime of this object. The destructor takes it back. After all
/// atexit handlers have run, a daemon thread waits there for the end of the process instead,
/// as in Python 3.14.
class without_gil {
 public:
  without_gil() noexcept : state_(PyEval_SaveThread()) {}
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;
  ~without_gil();

 private:
  PyThreadState* state_;
};

/// Whether this thread has the GIL. Does not wait for it.
bool has_gil() noexcept;

/// Runs a function soon on another thread, while the main thread waits for it between two
/// steps of its Python code. So in a program with one thread nobody submits to a queue while
/// another thread waits for it: dpctl, which submits with the GIL, may then hang, and the
/// OpenCL CPU driver (2026.2) may crash. The main thread waits for a second at most, because
/// the work may need it, and the function waits no longer than that for the main thread. The
/// interpreter's end waits for the function that runs, and drops the others.
/// @pre the GIL is held
void run_later(std::function<void()> function);

/// Runs a function that waits for queues. Releases the GIL meanwhile, if this thread has it.
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
  /// By `run_later`. This thread has the GIL but runs no Python code, so it only drops an
  /// object, as dpctl's host tasks do. A host task that waits here would wait for itself.
  later,
  /// Never. In a child of fork() the memory and the work belong to the parent. After the
  /// package's exit handler has run, the work may wait for Python code that does not run any
  /// more.
  never,
};
freeing how_to_free() noexcept;

/// Runs a function that waits for queues and frees memory. All USM is freed by this. If it is
/// not freed, everything that the function holds leaks, queues too, because destroying a queue
/// may wait.
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

/// Takes the GIL to drop a reference. Does nothing once the interpreter finishes.
struct reference_drop {
  void operator()(PyObject* object) const noexcept;
};
/// Owns a reference to a Python object. Any thread may destroy it.
using python_reference = std::unique_ptr<PyObject, reference_drop>;

}  // namespace usm_dlpack::python
