// SPDX-License-Identifier: Apache-2.0
//
// What each file adds to the module and to its classes. A new file adds its function here and
// calls it in module.cpp.
#pragma once

#include "arguments/places.hpp"
#include "tensor/tensor.hpp"

#include <nanobind/stl/string.h>

namespace usm_dlpack::python {

void register_devices(guarded_module& module);
void register_empty(guarded_module& module);
/// Sets `__dlpack_c_exchange_api__` of DLPackTensor: a table of five C functions.
void register_exchange_api();
void register_from_dlpack(guarded_module& module);
void register_library_views(guarded_module& module);
/// Adds the table for extensions, which python/package.hpp describes.
void register_package_interface(guarded_module& module);
void register_tensor(guarded_module& module);
void register_to_dlpack_tensor(guarded_module& module);
void register_validate(guarded_module& module);

void add_copy_from(tensor_class& tensor_type);
void add_dlpack_method(tensor_class& tensor_type);

/// Adds the properties of memory that DLPackTensor and UsmAllocation share to a class that has
/// `proof()` and `readonly()`.
template <class Class>
Class& add_memory_properties(Class& python_class) {
  using self = typename Class::Type;
  python_class
      .def_prop_ro(
          "data",
          [](const self& x) { return reinterpret_cast<std::uintptr_t>(x.proof().data()); },
          "Address of the first element; 0 only if the tensor is empty.")
      .def_prop_ro(
          "usm_type", [](const self& x) { return to_string(x.proof().usm_type()); },
          nb::sig(
              "def usm_type(self) -> typing.Literal['host', 'device', 'shared', 'unknown']"),
          "\"host\", \"device\" or \"shared\"; \"unknown\" for an empty tensor in no allocation.")
      .def_prop_ro(
          "sycl_device",
          [](const self& x) {
            check_process();
            return dpctl_device_object(x.proof().device_id(), x.proof().device());
          },
          nb::sig("def sycl_device(self) -> SyclDevice"),
          "The device that the memory was allocated on.")
      .def_prop_ro(
          "sycl_context", [](const self& x) { return to_dpctl(x.proof().context()); },
          nb::sig("def sycl_context(self) -> SyclContext"),
          "The default context that the memory belongs to.")
      .def_prop_ro("readonly", &self::readonly, "Whether consumers must not write.");
  return python_class;
}

}  // namespace usm_dlpack::python
