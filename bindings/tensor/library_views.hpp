// SPDX-License-Identifier: Apache-2.0
//
// Python's HostView and CudaView: a tensor as an array in host memory, or in CUDA memory,
// without a copy. A view for another kind of library belongs here.
#pragma once

#include "tensor/tensor.hpp"

namespace usm_dlpack::python {

/// DLPackTensor.host_view
nb::object make_host_view(nb::handle_t<tensor> self);
/// DLPackTensor.cuda_view
nb::object make_cuda_view(nb::handle_t<tensor> self);

}  // namespace usm_dlpack::python
