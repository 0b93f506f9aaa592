// SPDX-License-Identifier: Apache-2.0
//
// DLPack's C exchange API of DLPackTensor.
#pragma once

namespace usm_dlpack::python {

/// Sets `__dlpack_c_exchange_api__`, a table of five C functions, of the class DLPackTensor.
void register_exchange_api();

}  // namespace usm_dlpack::python
