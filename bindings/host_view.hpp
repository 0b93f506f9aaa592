// SPDX-License-Identifier: Apache-2.0
//
// Python's HostView: host or shared USM as an array in host memory, without a copy.
#pragma once

#include "tensor.hpp"

namespace usm_dlpack::python {

/// DLPackTensor.host_view
nb::object make_host_view(nb::handle_t<tensor> self);

void register_host_view(guarded_module& module);

}  // namespace usm_dlpack::python
