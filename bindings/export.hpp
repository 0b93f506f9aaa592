// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor.__dlpack__: what its keywords ask for, and the capsule that answers.
#pragma once

#include "copies.hpp"
#include "tensor.hpp"

namespace usm_dlpack::python {

/// Exports as a capsule: of the memory itself, of a copy on its device, or for the host.
/// @throws conversion_error (never a TypeError, which consumers take for "old producer")
/// @throws nb::value_error for a `stream` that no producer could use
nb::object export_capsule(nb::handle self, nb::handle stream, nb::handle max_version,
                          nb::handle dl_device, nb::handle copy);

extern const char* const export_doc;

/// A managed tensor of the memory itself that keeps a DLPackTensor alive.
/// @pre `self` is one
managed_tensor export_managed(nb::handle self);

/// A tensor as what is copied. Valid as long as the tensor.
copy_source source_of(const tensor& source);

}  // namespace usm_dlpack::python
