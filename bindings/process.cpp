// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <usm_dlpack/error.hpp>

#include <atomic>

namespace usm_dlpack::python {
namespace {

namespace nb = nanobind;

std::atomic<bool> runtime_used{false};
std::atomic<bool> forked{false};

bool is_loaded(const char* library) noexcept {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) {
    dlclose(handle);
  }
  return handle != nullptr;
}

// Whoever used the runtime, dpctl too: it loads its adapters with the first question that it
// is asked. Looked up before the fork, because the loader's lock may be lost behind it.
void before_fork() noexcept {
  for (const char* adapter : {"libur_adapter_opencl.so.0", "libur_adapter_level_zero.so.0",
                              "libur_adapter_level_zero_v2.so.0", "libur_adapter_cuda.so.0",
                              "libur_adapter_hip.so.0"}) {
    if (is_loaded(adapter)) {
      runtime_used = true;
    }
  }
}

void in_child() noexcept {
  if (runtime_used) {
    forked = true;
  }
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

void register_process() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    throw nb::import_error(
        "usm_dlpack: expected the main interpreter, found a sub-interpreter, whose objects the "
        "SYCL runtime and dpctl would share with it; import the package in the main one");
  }
  pthread_atfork(&before_fork, nullptr, &in_child);
}

}  // namespace usm_dlpack::python
