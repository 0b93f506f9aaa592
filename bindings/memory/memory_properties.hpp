// SPDX-License-Identifier: Apache-2.0
//
// The properties of memory that DLPackTensor and UsmAllocation share. A property of one class
// alone is in the file of that class.
#pragma once

#include "arguments/places.hpp"
#include "order/queues.hpp"

#include <nanobind/stl/string.h>

namespace usm_dlpack::python {

/// Adds the properties to a class that has `proof()` and `readonly()`.
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
