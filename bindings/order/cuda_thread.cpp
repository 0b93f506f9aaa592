// SPDX-License-Identifier: Apache-2.0
#include "order/cuda_thread.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {
namespace {

/// Functions of libcuda.so.1, or null. Each returns a CUresult, 0 for success.
/// Source: CUDA driver API.
struct thread_functions {
  int (*get_current)(CUctx_st**) = nullptr;
  int (*set_current)(CUctx_st*) = nullptr;
  int (*exchange_mode)(int*) = nullptr;

  static thread_functions find() noexcept {
    thread_functions found;
    const auto is_found = [](const char* name, auto& function) {
      return detail::find_function("libcuda.so.1", name, function);
    };
    const bool all = is_found("cuCtxGetCurrent", found.get_current) &&
                     is_found("cuCtxSetCurrent", found.set_current) &&
                     is_found("cuThreadExchangeStreamCaptureMode", found.exchange_mode);
    return all ? found : thread_functions();
  }
};

/// The functions, if there are CUDA devices. Before the devices were listed nobody knows, but
/// another library may have loaded the driver.
thread_functions functions_of_now() noexcept {
  if (!detail::device_table::is_made()) {
    return thread_functions::find();
  }
  static const thread_functions functions =
      detail::has_cuda_devices() ? thread_functions::find() : thread_functions();
  return functions;
}

}  // namespace

cuda_thread_scope::cuda_thread_scope() noexcept {
  const thread_functions cuda = functions_of_now();
  if (cuda.exchange_mode == nullptr) {
    return;
  }
  cuda.get_current(&context_);
  is_relaxed_ = cuda.exchange_mode(&mode_) == 0;
}

cuda_thread_scope::~cuda_thread_scope() {
  const thread_functions cuda = functions_of_now();
  if (cuda.exchange_mode == nullptr) {
    return;
  }
  CUctx_st* now = nullptr;
  if (cuda.get_current(&now) == 0 && now != context_) {
    cuda.set_current(context_);
  }
  if (is_relaxed_) {
    cuda.exchange_mode(&mode_);
  }
}

}  // namespace usm_dlpack::python
