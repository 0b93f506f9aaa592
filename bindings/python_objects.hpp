// SPDX-License-Identifier: Apache-2.0
//
// References to Python objects that any thread may drop, errors, and the SYCL objects that
// Python code passes: dpctl's, or capsules.
#pragma once

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/nanobind/dpctl.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

namespace usm_dlpack::python {

namespace nb = nanobind;

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
  /// For a child made by fork(), in which the threads that were inside do not exist.
  static void forget_other_threads() noexcept { inside_ = 0; }

 private:
  static inline std::atomic<int> inside_{0};
  static inline std::atomic<bool> closed_{false};
  static inline std::thread::id closer_{};
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

/// Runs a function without the GIL, if this thread has it.
void run_unlocked(void (*function)(void*), void* argument) noexcept;

/// Owns one reference to a Python object. The destructor takes the GIL, and does nothing once
/// the interpreter is finishing.
class python_reference {
 public:
  /// @pre the GIL is held
  explicit python_reference(nb::handle object) noexcept : object_(object.inc_ref().ptr()) {}
  /// Takes over a reference, from any thread.
  static python_reference adopt(PyObject* object) noexcept { return python_reference(object); }
  nb::handle get() const noexcept { return object_; }
  python_reference(python_reference&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  python_reference& operator=(python_reference&&) = delete;
  ~python_reference() {
    const interpreter_gate gate;
    if (object_ != nullptr && gate.open()) {
      const PyGILState_STATE state = PyGILState_Ensure();
      {
        const nb::error_scope keep;  // a deleter may run during an exception
        Py_DECREF(object_);
      }
      PyGILState_Release(state);
    }
  }

 private:
  explicit python_reference(PyObject* adopted) noexcept : object_(adopted) {}

  PyObject* object_;
};

/// Defines `error_table`, the table of codes, and `_set_errors`, by which usm_dlpack._errors
/// passes its functions when it is imported.
void register_errors(nb::module_& module);

/// Sets the Python error of a refusal, by the name of its code.
void set_error(const char* code, const char* field, const char* expected, const char* found,
               const char* remedy) noexcept;
/// Sets the ArgumentError of a call that no overload of an extension's function took.
void set_argument_error(const char* function, PyObject* args, PyObject* kwargs,
                        PyObject* reasons) noexcept;

/// Sets the Python error of the exception that is being handled.
void set_python_error() noexcept;

/// Runs a function that may throw; returns 0, or -1 with the Python error set.
template <class Function>
int guarded(Function&& function) noexcept {
  try {
    function();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

/// The name of an object's type, in ASCII; ignores the metaclass.
std::string name_of_type(nb::handle object);

/// The text of an object for a sentence. Does not fail: the error of a `__repr__` must not
/// replace the refusal.
std::string text_of(nb::handle object);

/// The queue of a `dpctl.SyclQueue` or a capsule "SyclQueueRef"; null for anything else.
const sycl::queue* find_queue(nb::handle object);
/// The context of a `dpctl.SyclContext`, `dpctl.SyclQueue`, or a capsule "SyclContextRef" or
/// "SyclQueueRef"; a capsule is read, never consumed. @throws nb::type_error for anything else
sycl::context to_context(nb::handle object);
/// The queue that `find_queue` finds. @throws nb::type_error if there is none
sycl::queue to_queue(nb::handle object);
/// The device of a `dpctl.SyclDevice`.
sycl::device to_device(nb::handle object);

/// A new `dpctl.SyclDevice`. @throws conversion_error `process_forked`, as all overloads
nb::object to_dpctl(const sycl::device& device);
nb::object to_dpctl(const sycl::context& context);
nb::object to_dpctl(const sycl::queue& queue);

}  // namespace usm_dlpack::python
