// SPDX-License-Identifier: Apache-2.0
//
// The functions that make a DLPackTensor or a UsmAllocation: of memory, or of a capsule.
#pragma once

#include <nanobind/nanobind.h>

namespace usm_dlpack::python {

/// Adds UsmAllocation and the functions to the module.
void register_exchange(nanobind::module_& module);

}  // namespace usm_dlpack::python
