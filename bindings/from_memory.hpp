// SPDX-License-Identifier: Apache-2.0
//
// Memory of a Python object in, a proved DLPackTensor out.
#pragma once

#include <nanobind/nanobind.h>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// Python's `to_dlpack_tensor`, whose docstring says what the arguments are.
nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue);

/// What a context is taken from: a capsule of an object that gives one, the default context of
/// a device that a filter string means, or `syclobj` itself.
/// @throws nb::python_error ValueError for a string that means no device
nb::object resolve_syclobj(nb::handle syclobj);

/// Adds what Python code asks of memory to the module.
void register_from_memory(nb::module_& module);

}  // namespace usm_dlpack::python
