// SPDX-License-Identifier: Apache-2.0
//
// Stands for the headers of PyTorch XPU in moving_over.cpp: a tensor in USM, its export, and
// the current queue, by PyTorch's names.
#pragma once

#include <dlpack/dlpack.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <functional>

namespace at {

struct Tensor {
  std::function<DLManagedTensorVersioned*()> to_dlpack;
};

inline DLManagedTensorVersioned* toDLPackVersioned(const Tensor& tensor) {
  return tensor.to_dlpack();
}

}  // namespace at

namespace c10::xpu {

struct XPUStream {
  sycl::queue& queue() const {
    static sycl::queue& only =
        *new sycl::queue(usm_dlpack::root_device(0), sycl::property::queue::in_order());
    return only;
  }
};

inline XPUStream getCurrentXPUStream() { return {}; }

}  // namespace c10::xpu
