// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor.copy_from
#pragma once

#include "tensor.hpp"

namespace usm_dlpack::python {

void add_copy_from(tensor_class& made);

}  // namespace usm_dlpack::python
