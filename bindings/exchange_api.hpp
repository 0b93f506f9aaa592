// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor's DLPack C exchange API: a table of five C functions, stored in its type.
#pragma once

#include <nanobind/nanobind.h>

namespace usm_dlpack::python {

/// Sets `__dlpack_c_exchange_api__` of the registered class DLPackTensor.
void register_exchange_api();

}  // namespace usm_dlpack::python
