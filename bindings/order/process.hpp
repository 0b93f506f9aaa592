// SPDX-License-Identifier: Apache-2.0
//
// The process and its interpreter. The SYCL runtime does not survive fork(). Threads of the
// runtime may drop Python objects until the process ends. What holds in a child of fork() and
// at exit is decided here.
#pragma once

#include "order/cuda_thread.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
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
  ~interpreter_gate();

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
/// handler waits for the threads that are inside. A thread that comes while it waits is held
/// up without the GIL until it is done. Usually the interpreter finishes then, and the thread
/// ends here. If other exit handlers run, they may need the thread, so it goes on.
/// What CUDA keeps for the thread is as before when the function returns.
/// @pre the GIL is held
class inside_module {
 public:
  inside_module() noexcept;
  inside_module(const inside_module&) = delete;
  inside_module& operator=(const inside_module&) = delete;
  ~inside_module();

 private:
  // Only in the thread's outermost call.
  std::optional<interpreter_gate> gate_;
  std::optional<cuda_thread_scope> cuda_;
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

/// Runs a function that waits for queues. Releases the GIL meanwhile, if this thread has it.
template <class Function>
void run_unlocked(Function&& function) {
  std::optional<without_gil> unlocked;
  if (has_gil()) {
    unlocked.emplace();
  }
  function();
}

/// Takes the GIL to drop a reference. Does nothing in a child of fork(), nor once the
/// interpreter finishes.
struct reference_drop {
  void operator()(PyObject* object) const noexcept;
};
/// Owns a reference to a Python object. Any thread may destroy it.
using python_reference = std::unique_ptr<PyObject, reference_drop>;

}  // namespace usm_dlpack::python
