// SPDX-License-Identifier: Apache-2.0
//
// What the files of the module offer each other: the protocols of export and import, and a
// function for each file that registers what Python sees.
#pragma once

#include "copies.hpp"
#include "tensor.hpp"

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// Python's `to_dlpack_tensor`, whose docstring describes the arguments.
nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue);

/// DLPackTensor.__dlpack__: exports the memory itself, a copy on a root device, or memory for
/// the host.
/// @throws conversion_error (never a TypeError, which consumers take for "old producer")
/// @throws nb::value_error for an unusable `stream`
nb::object export_capsule(nb::handle self, nb::handle stream, nb::handle max_version,
                          nb::handle dl_device, nb::handle copy);
extern const char* const export_doc;

/// Makes a managed tensor that keeps a DLPackTensor alive.
/// @pre `self` is a DLPackTensor
managed_tensor export_managed(nb::handle self);

/// DLPackTensor.copy_from: copies values in host memory into the tensor's memory.
void copy_from(nb::handle self, nb::handle host, nb::handle queue);

/// Refuses a queue of another context or root device than the memory's. Compares contexts,
/// because the Level Zero driver knows a pointer in each context of its platform.
/// @param context a default context, which knows the memory
DLDevice device_for_queue(const void* pointer, bool empty, DLDevice device,
                          const sycl::context& context, const sycl::queue& queue);

/// A tensor as the source of a copy; valid as long as the tensor.
copy_source source_of(const tensor& source);

/// Makes a DLPackTensor of a managed tensor. The deleter runs once, also if the tensor is
/// refused. @throws conversion_error as `validate`
nb::object import_managed(managed_tensor managed);

/// Python's names of proofs.
const char* name_of(bounds_proof bounds);
const char* name_of(device_proof device);

void register_devices(nb::module_& module);
void register_validate(nb::module_& module);
/// Sets `__dlpack_c_exchange_api__`, a table of five C functions, of the class DLPackTensor.
void register_exchange_api();
void register_to_dlpack_tensor(nb::module_& module);
void register_from_dlpack(nb::module_& module);
/// Adds the table of functions for extensions that include <usm_dlpack/nanobind/views.hpp>.
void register_package_interface(nb::module_& module);
void register_tensor(nb::module_& module);
void register_observer(nb::module_& module);

}  // namespace usm_dlpack::python
