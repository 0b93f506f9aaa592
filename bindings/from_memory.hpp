// SPDX-License-Identifier: Apache-2.0
//
// Makes a proved DLPackTensor of a Python object's memory.
#pragma once

#include <nanobind/nanobind.h>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// Python's `to_dlpack_tensor`, whose docstring describes the arguments.
nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue);

void register_from_memory(nb::module_& module);

}  // namespace usm_dlpack::python
