// SPDX-License-Identifier: Apache-2.0
//
// Readers of the SYCL objects that Python code passes, which are dpctl's or capsules, and of
// the ways to name a device.
#pragma once

#include "arguments.hpp"
#include "process.hpp"

#include <usm_dlpack/python/dpctl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// Borrows the SYCL object in a dpctl object or a capsule; null for anything else.
/// @throws nb::python_error as `detail::find_sycl`
template <class Object>
const Object* find_sycl(nb::handle object) {
  return raising([&] { return detail::find_sycl<Object>(object.ptr()); });
}

/// The queue in a `dpctl.SyclQueue` or a capsule "SyclQueueRef"; nothing for anything else.
std::optional<sycl::queue> find_queue(nb::handle object);
/// The queue that `find_queue` finds. @throws nb::type_error if there is none
sycl::queue to_queue(nb::handle object);
/// The context in a `dpctl.SyclContext` or `dpctl.SyclQueue`, or in a capsule "SyclContextRef"
/// or "SyclQueueRef", which is not consumed. @throws nb::type_error for anything else
sycl::context to_context(nb::handle object);
/// The device in a `dpctl.SyclDevice`. @throws nb::type_error for anything else
sycl::device to_device(nb::handle object);

/// Makes an object of dpctl. This queries the runtime. @throws conversion_error
/// `process_forked`
template <class Object>
nb::object to_dpctl(const Object& object) {
  check_process();
  return raising([&] { return nb::steal(detail::make_dpctl(object).release()); });
}

/// The context of memory, and the queue that works on it, if known.
struct memory_place {
  sycl::context context;
  std::optional<sycl::queue> queue;
};
/// Reads the field `syclobj` of an array interface: a queue, a context, a capsule of either,
/// an object whose `_get_capsule()` returns such a capsule, or a filter string, which means
/// the default context of its device.
/// @throws nb::type_error for anything else, nb::value_error for a filter string without a
///         device
memory_place read_syclobj(nb::handle syclobj);

/// Whether an object is a pair whose first item is a device type.
bool is_device_of_type(nb::handle pair, DLDeviceType type);

/// Where a tensor is to be.
struct destination_place {
  std::int32_t device_id;
  std::optional<sycl::queue> queue;
};
/// Reads a device, `(14, device_id)`, or a filter string.
/// @throws nb::type_error or nb::value_error for anything else, conversion_error as
/// `device_id`
std::int32_t read_device_id(nb::handle device);
/// Reads the same, or a queue, which stands for its device.
destination_place read_destination(nb::handle device);

}  // namespace usm_dlpack::python
