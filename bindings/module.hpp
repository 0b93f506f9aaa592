// SPDX-License-Identifier: Apache-2.0
//
// What the files of the module offer each other: the protocols of export and import, and a
// function for each file that registers what Python sees.
#pragma once

#include "copies.hpp"
#include "python_objects.hpp"
#include "tensor.hpp"

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// Python's `to_dlpack_tensor`, whose docstring describes the arguments.
nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue);

/// Makes a managed tensor that keeps a DLPackTensor alive.
/// @pre `self` is a DLPackTensor
managed_tensor export_managed(nb::handle self);

/// Refuses a queue of another context or root device than the memory's. Compares contexts,
/// because the Level Zero driver knows a pointer in each context of its platform.
/// @param context a default context, which knows the memory
DLDevice device_for_queue(const void* pointer, bool empty, DLDevice device,
                          const sycl::context& context, const sycl::queue& queue);

/// A tensor as the source of a copy; valid as long as the tensor.
copy_source source_of(const tensor& source);

/// Makes a DLPackTensor of a managed tensor. The deleter runs once, also if the tensor is
/// refused. @throws conversion_error as `validate`
nb::object import_managed(managed_tensor managed, std::optional<sycl::queue> queue = {});

/// Adds the properties of memory, which DLPackTensor and UsmAllocation share, to a class with
/// `proof()` and `readonly()`.
template <class Class>
Class& add_memory_properties(Class& made) {
  using self = typename Class::Type;
  made.def_prop_ro(
          "data",
          [](const self& x) { return reinterpret_cast<std::uintptr_t>(x.proof().data()); },
          "Address of the first element; 0 only where there is none.")
      .def_prop_ro(
          "usm_type", [](const self& x) { return to_string(x.proof().usm_type()); },
          "\"host\", \"device\" or \"shared\"; \"unknown\" only for an empty tensor, whose\n"
          "address need not be in any allocation.")
      .def_prop_ro(
          "sycl_device", [](const self& x) { return to_dpctl(x.proof().device()); },
          nb::sig("def sycl_device(self) -> SyclDevice"),
          "The device that the memory was allocated on.")
      .def_prop_ro(
          "sycl_context", [](const self& x) { return to_dpctl(x.proof().context()); },
          nb::sig("def sycl_context(self) -> SyclContext"),
          "The default context that the memory belongs to.")
      .def_prop_ro("readonly", &self::readonly, "Whether consumers must not write.");
  return made;
}

/// Python's names of proofs.
const char* name_of(bounds_proof bounds);
const char* name_of(device_proof device);

using tensor_class = nb::class_<tensor>;
void add_dlpack_method(tensor_class& made);
void add_copy_from(tensor_class& made);

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
