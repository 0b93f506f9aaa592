// SPDX-License-Identifier: Apache-2.0
//
// References to Python objects that C code may drop from any thread, and dpctl's objects to
// and from SYCL's, without dpctl's headers.
#pragma once

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>

#include <string>
#include <utility>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// Owns one reference to a Python object. Dropping it takes the GIL, and does nothing once the
/// interpreter is gone.
class python_reference {
 public:
  /// @pre the GIL is held
  explicit python_reference(nb::handle object) noexcept : object_(object.inc_ref().ptr()) {}
  python_reference(python_reference&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  python_reference& operator=(python_reference&&) = delete;
  ~python_reference() {
    if (object_ != nullptr && nb::is_alive()) {
      const PyGILState_STATE state = PyGILState_Ensure();
      {
        const nb::error_scope keep;  // a deleter may run while an exception is on its way
        Py_DECREF(object_);
      }
      PyGILState_Release(state);
    }
  }

 private:
  PyObject* object_;
};

/// The context of a `dpctl.SyclContext`, `dpctl.SyclQueue`, or a capsule "SyclContextRef" or
/// "SyclQueueRef"; a capsule is read, never consumed. @throws nb::type_error for anything else
sycl::context to_context(nb::handle object);
/// The queue of a `dpctl.SyclQueue` or a capsule "SyclQueueRef".
sycl::queue to_queue(nb::handle object);
/// The device of a `dpctl.SyclDevice`.
sycl::device to_device(nb::handle object);

/// A new `dpctl.SyclDevice`.
nb::object to_dpctl(const sycl::device& device);
/// A new `dpctl.SyclContext`.
nb::object to_dpctl(const sycl::context& context);

}  // namespace usm_dlpack::python
