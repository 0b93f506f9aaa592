// SPDX-License-Identifier: Apache-2.0
//
// What the files of the module offer each other. Each file includes this header, and beside it
// only what this one does not include.
#pragma once

#include "copies.hpp"
#include "places.hpp"
#include "queues.hpp"
#include "tensor.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace usm_dlpack::python {

// capsule.cpp: DLPack's Python capsules.

/// The managed tensor in a fresh capsule, versioned or legacy; the capsule still owns it.
using capsule_content = std::variant<DLManagedTensorVersioned*, DLManagedTensor*>;

/// Reads a capsule without consuming it.
/// @throws conversion_error `capsule_unusable` for anything but a fresh DLPack capsule
capsule_content read_capsule(nb::handle object);

/// The tensor and the flags of a capsule's content; borrowed.
struct content_view {
  const DLTensor* described;
  std::uint64_t flags;  ///< 0 of a legacy managed tensor
};

/// @throws conversion_error for an unknown version or flags
content_view view_of(const capsule_content& content);

/// Who owns the content: a fresh capsule does, of a consumed one the consumer.
enum class capsule_state { fresh, consumed };

/// Renames a capsule that `read_capsule` accepted.
void mark_capsule(nb::handle object, const capsule_content& content,
                  capsule_state state) noexcept;

/// Makes a fresh capsule, which runs the deleter if nobody consumes it.
nb::object make_capsule(managed_tensor managed);
nb::object make_capsule(legacy_managed_tensor managed);

// producer.cpp: exports of other libraries' arrays, by the C exchange API of their type, or by
// __dlpack__.

/// The request of `from_dlpack` to a producer.
struct import_request {
  std::optional<bool> copy;  ///< only False is passed on
  bool host = false;         ///< whether arrays in host memory are accepted
  /// For an extension: neither the device before the export, nor the queue is queried.
  bool anywhere = false;
  nb::object stream = nb::none();    ///< the consumer's queue as Python's object
  std::optional<sycl::queue> queue;  ///< the same queue
};

/// A producer's fresh capsule.
struct producer_tensor {
  nb::object capsule;
  /// The queue that may still work on the memory, if the producer reports it.
  std::optional<sycl::queue> pending;
};

/// Exports an array. Its work is ordered before the request's queue if the producer reports
/// its own queue, or else takes a stream.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
producer_tensor ask_producer(nb::handle x, const import_request& request);

/// Whether an array reports that its memory is USM; false if it fails to.
bool reports_usm(nb::handle x);

/// Makes a producer copy its array to host memory, after all work on its `sycl_queue`.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
producer_tensor ask_for_host(nb::handle x);

// The protocols of export and import.

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

/// DLPackTensor.host_view
nb::object make_host_view(nb::handle_t<tensor> self);

using tensor_class = guarded_class<tensor>;
void add_dlpack_method(tensor_class& made);
void add_copy_from(tensor_class& made);

void register_devices(guarded_module& module);
void register_validate(guarded_module& module);
/// Sets `__dlpack_c_exchange_api__`, a table of five C functions, of the class DLPackTensor.
void register_exchange_api();
void register_to_dlpack_tensor(guarded_module& module);
void register_from_dlpack(guarded_module& module);
/// Adds the table of functions for extensions that include <usm_dlpack/nanobind/views.hpp>.
void register_package_interface(guarded_module& module);
void register_host_view(guarded_module& module);
void register_tensor(guarded_module& module);

}  // namespace usm_dlpack::python
