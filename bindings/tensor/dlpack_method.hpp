// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor.__dlpack__, and the managed tensors of a DLPackTensor. A new keyword of
// `__dlpack__` is read in `export_capsule`.
#pragma once

#include "tensor/tensor.hpp"

namespace usm_dlpack::python {

/// Makes a managed tensor that keeps a DLPackTensor alive.
/// @pre `self` is a DLPackTensor
managed_tensor export_managed(nb::handle self);

/// The signature of every `__dlpack__` of this package.
inline constexpr const char* dlpack_signature =
    "def __dlpack__(self, *, stream: typing.Any | None = None, "
    "max_version: tuple[int, int] | None = None, "
    "dl_device: tuple[int, int] | None = None, "
    "copy: bool | None = None) -> typing.Any";

}  // namespace usm_dlpack::python
