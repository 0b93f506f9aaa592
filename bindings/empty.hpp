// SPDX-License-Identifier: Apache-2.0
//
// Python's `empty`: tensors in new memory.
#pragma once

#include "guarded.hpp"

namespace usm_dlpack::python {

void register_empty(guarded_module& module);

}  // namespace usm_dlpack::python
