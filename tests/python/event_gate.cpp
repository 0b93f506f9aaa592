// SPDX-License-Identifier: Apache-2.0
//
// Events that are complete when a test says so, for Python through ctypes: OpenCL's user
// events. Work that depends on one is pending, and takes no thread of the device meanwhile.
#include <sycl/sycl.hpp>

#include <dlfcn.h>

namespace {

template <class Function>
Function* opencl_function(const char* name) {
  void* library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

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
