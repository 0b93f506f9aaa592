// SPDX-License-Identifier: Apache-2.0
//
// `validate`, UsmAllocation and the functions for device ids.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// Python's names of proofs.
const char* name_of(bounds_proof bounds);
const char* name_of(device_proof device);

void register_exchange(nanobind::module_& module);

}  // namespace usm_dlpack::python
