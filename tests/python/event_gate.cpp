// SPDX-License-Identifier: Apache-2.0
//
// Events that are complete when a test says so, for Python through ctypes: OpenCL's user
// events, and on any backend host tasks that wait. Work that depends on one is pending, and
// takes no thread of the device meanwhile.
#include <sycl/sycl.hpp>

#include <dlfcn.h>

#include <condition_variable>
#include <mutex>

namespace {

template <class Function>
Function* opencl_function(const char* name) {
  void* library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

/// What a host task waits for: it never takes the GIL.
struct host_gate {
  std::mutex guard;
  std::condition_variable opened;
  bool is_open = false;
};

}  // namespace

/// A new event of a context, for the capsule of a `dpctl.SyclEvent`; null if there is none.
/// @param opener gets what `open_gate` takes
extern "C" sycl::event* new_gate(const sycl::context* context, void** opener) noexcept {
  try {
    const auto create = opencl_function<decltype(clCreateUserEvent)>("clCreateUserEvent");
    cl_int status = CL_INVALID_CONTEXT;
    cl_event native = create(sycl::get_native<sycl::backend::opencl>(*context), &status);
    if (status != CL_SUCCESS) {
      return nullptr;
    }
    *opener = native;
    return new sycl::event(sycl::make_event<sycl::backend::opencl>({native}, *context));
  } catch (...) {
    return nullptr;
  }
}

/// Lets the work go on that depends on the event. @return 0 if that was done
extern "C" int open_gate(void* opener) noexcept {
  const auto set = opencl_function<decltype(clSetUserEventStatus)>("clSetUserEventStatus");
  return set(static_cast<cl_event>(opener), CL_COMPLETE);
}

/// The event of a new host task of a queue, for the capsule of a `dpctl.SyclEvent`; null if
/// there is none. The task occupies a thread of the runtime until the gate is opened.
/// @param opener gets what `open_host_gate` takes
extern "C" sycl::event* new_host_gate(const sycl::queue* queue, void** opener) noexcept {
  try {
    auto* gate = new host_gate;  // never freed: the task may outlive the test
    *opener = gate;
    return new sycl::event(sycl::queue(*queue).submit([gate](sycl::handler& handler) {
      handler.host_task([gate] {
        std::unique_lock<std::mutex> lock(gate->guard);
        gate->opened.wait(lock, [gate] { return gate->is_open; });
      });
    }));
  } catch (...) {
    return nullptr;
  }
}

/// Lets the host task end. @return 0: it always can
extern "C" int open_host_gate(void* opener) noexcept {
  auto* gate = static_cast<host_gate*>(opener);
  const std::lock_guard<std::mutex> lock(gate->guard);
  gate->is_open = true;
  gate->opened.notify_all();
  return 0;
}
