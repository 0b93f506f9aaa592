// SPDX-License-Identifier: Apache-2.0
//
// What CUDA keeps for each thread, and SYCL's backend cuda changes: the current context, which
// is what PyTorch calls the current device, and the recording of CUDA graphs. Every function
// of the module and everything that frees memory holds a `cuda_thread_scope`.
#pragma once

struct CUctx_st;

namespace usm_dlpack::python {

/// The destructor makes the CUDA context current that was current before. Meanwhile this
/// thread may call what would break the recording of a CUDA graph, as PyTorch's allocator may
/// (`CU_STREAM_CAPTURE_MODE_RELAXED`). Does nothing in a process without CUDA.
class cuda_thread_scope {
 public:
  cuda_thread_scope() noexcept;
  cuda_thread_scope(const cuda_thread_scope&) = delete;
  cuda_thread_scope& operator=(const cuda_thread_scope&) = delete;
  ~cuda_thread_scope();

 private:
  CUctx_st* context_ = nullptr;
  bool is_relaxed_ = false;
  int mode_ = 2;  ///< the mode of the thread before, once `is_relaxed_`
};

}  // namespace usm_dlpack::python
