// SPDX-License-Identifier: Apache-2.0
//
// Makes a proved DLPackTensor of another library's array.
#pragma once

#include "producer.hpp"

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// Makes a DLPackTensor of a managed tensor. The deleter runs once, also if the tensor is
/// refused. @throws conversion_error as `validate`
nb::object import_managed(managed_tensor managed);

/// Adds `from_dlpack` to the module.
void register_import(nb::module_& module);

}  // namespace usm_dlpack::python
