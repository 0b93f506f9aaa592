// SPDX-License-Identifier: Apache-2.0
//
// Python's `validate` and UsmAllocation.
#pragma once

#include "guarded.hpp"

namespace usm_dlpack::python {

void register_validate(guarded_module& module);

}  // namespace usm_dlpack::python
