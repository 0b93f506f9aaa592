// SPDX-License-Identifier: Apache-2.0
//
// An array of another library in, a proved DLPackTensor out.
#pragma once

#include "producer.hpp"

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <optional>

namespace usm_dlpack::python {

/// A DLPackTensor of a managed tensor, whose memory is proved. The deleter runs once, also if
/// it is refused. @throws conversion_error as `validate`
nb::object import_managed(managed_tensor managed);

/// Adds `from_dlpack` to the module, of which Python's gives the arguments.
void register_import(nb::module_& module);

}  // namespace usm_dlpack::python
