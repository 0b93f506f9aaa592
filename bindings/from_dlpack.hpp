// SPDX-License-Identifier: Apache-2.0
//
// Python's `from_dlpack`: the import protocol, and copies of arrays that are elsewhere.
#pragma once

#include "guarded.hpp"

namespace usm_dlpack::python {

void register_from_dlpack(guarded_module& module);

}  // namespace usm_dlpack::python
