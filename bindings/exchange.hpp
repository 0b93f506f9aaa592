// SPDX-License-Identifier: Apache-2.0
//
// The functions that make a DLPackTensor or a UsmAllocation: of memory, or of a capsule.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// The names of proofs in Python.
const char* name_of(bounds_proof bounds);
const char* name_of(device_proof device);

/// Adds UsmAllocation and the functions to the module.
void register_exchange(nanobind::module_& module);

}  // namespace usm_dlpack::python
