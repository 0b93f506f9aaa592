// SPDX-License-Identifier: Apache-2.0
//
// DLPack's C exchange API for DLPackTensor.
#pragma once

namespace usm_dlpack::python {

/// Sets `__dlpack_c_exchange_api__` of the class DLPackTensor: a table of five C functions.
void register_exchange_api();

}  // namespace usm_dlpack::python
