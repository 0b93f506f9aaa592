// SPDX-License-Identifier: Apache-2.0
//
// What stands in a DLPack capsule, field by field, for those who ask why it is refused.
#pragma once

#include <nanobind/nanobind.h>

namespace usm_dlpack::python {

/// Adds the reading of capsules to the module; Python's `explain` reads them.
void register_tensor_fields(nanobind::module_& module);

}  // namespace usm_dlpack::python
