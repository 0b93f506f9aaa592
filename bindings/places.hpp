// SPDX-License-Identifier: Apache-2.0
//
// The SYCL objects that Python code passes, dpctl's or capsules, and the ways to say where.
#pragma once

#include "arguments.hpp"
#include "process.hpp"

#include <usm_dlpack/nanobind/dpctl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// The queue of a `dpctl.SyclQueue` or a capsule "SyclQueueRef"; nothing for anything else.
std::optional<sycl::queue> find_queue(nb::handle object);
/// The queue that `find_queue` finds. @throws nb::type_error if there is none
sycl::queue to_queue(nb::handle object);
/// The context of a `dpctl.SyclContext`, `dpctl.SyclQueue`, or a capsule "SyclContextRef" or
/// "SyclQueueRef"; a capsule is read, never consumed. @throws nb::type_error for anything else
sycl::context to_context(nb::handle object);
/// The device of a `dpctl.SyclDevice`. @throws nb::type_error for anything else
sycl::device to_device(nb::handle object);

/// A new object of dpctl, which queries the runtime. @throws conversion_error `process_forked`
template <class Object>
nb::object to_dpctl(const Object& object) {
  check_process();
  return detail::make_dpctl(object);
}

/// The context of memory, and the queue that works on it, if known.
struct memory_place {
  sycl::context context;
  std::optional<sycl::queue> queue;
};
/// Reads the field `syclobj` of an array interface: a queue, a context, a capsule or owner of
/// either, or a filter string, which means the default context of its device.
/// @throws nb::type_error for anything else, nb::value_error for a filter string of no device
memory_place read_syclobj(nb::handle syclobj);

/// Whether a pair of integers names a device of a type.
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
/// Reads the same, or a queue, which names its device.
destination_place read_destination(nb::handle device);

}  // namespace usm_dlpack::python
