// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include "python_objects.hpp"

#include <link.h>
#include <nanobind/nanobind.h>
#include <pthread.h>
#include <usm_dlpack/core/error.hpp>

#include <atomic>
#include <cstring>

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

}  // namespace usm_dlpack::python
