// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor.__dlpack__.
#pragma once

#include "copies.hpp"
#include "tensor.hpp"

namespace usm_dlpack::python {

/// Exports the memory itself, a copy on a root device, or memory for the host.
/// @throws conversion_error (never a TypeError, which consumers take for "old producer")
/// @throws nb::value_error for an unusable `stream`
nb::object export_capsule(nb::handle self, nb::handle stream, nb::handle max_version,
                          nb::handle dl_device, nb::handle copy);

extern const char* const export_doc;

/// Makes a managed tensor that keeps a DLPackTensor alive.
/// @pre `self` is a DLPackTensor
managed_tensor export_managed(nb::handle self);

/// A tensor as the source of a copy; valid as long as the tensor.
copy_source source_of(const tensor& source);

}  // namespace usm_dlpack::python
