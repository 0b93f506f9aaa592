// SPDX-License-Identifier: Apache-2.0
//
// The one reader of places: of what Python code passes to say where, and which queue. A new
// kind of place goes in `read_place`, and in `Place` of python/usm_dlpack/_arrays.py. Also
// the readers of what arrays say of their own place, and makers of dpctl's objects.
#pragma once

#include "arguments/arguments.hpp"
#include "order/process.hpp"

#include <usm_dlpack/python/dpctl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

namespace usm_dlpack::python {

/// Borrows the SYCL object in a dpctl object or a capsule; null for anything else.
/// @throws nb::python_error as `detail::find_sycl`
template <class Object>
const Object* find_sycl(nb::handle object) {
  return raising([&] { return detail::find_sycl<Object>(object.ptr()); });
}

/// Makes an object of dpctl. This queries the runtime. @throws conversion_error
/// `process_forked`
template <class Object>
nb::object to_dpctl(const Object& object) {
  check_process();
  return raising([&] { return nb::steal(detail::make_dpctl(object).release()); });
}

/// A root device, and a queue if the object that names the device knows one.
struct place {
  std::int32_t device_id = 0;
  std::optional<sycl::queue> queue;
};

/// Reads a place, for an argument `device`: (14, id), a filter string, a device or a queue of
/// dpctl or in a capsule, which is not consumed, or an object with `_get_capsule()`,
/// `sycl_queue`, the C exchange API, `__dlpack_device__()` or `sycl_device`, in this order. A
/// sub-device means its root. Whether the id of a tuple exists is not checked.
/// @throws nb::type_error or nb::value_error for anything else; conversion_error
///         `request_unsupported` for the host, and as `device_id`; what the object's own code
///         raises
place read_place(nb::handle device);

/// The queue that a place knows, or that is at an address, which is trusted.
/// @param field is named in the error, with the other values that it may have
/// @throws nb::builtin_exception of the kind `refusal` if there is none; nb::value_error for
/// an
///         attribute `sycl_queue` that is no queue; what the object's own code raises
sycl::queue read_queue(nb::handle object, const char* field = "queue",
                       const char* other_values = "",
                       nb::exception_type refusal = nb::exception_type::type_error);

/// The queue in a producer's attribute `sycl_queue`: a `dpctl.SyclQueue`, a capsule, an object
/// with `_get_capsule()`, or an address, which is trusted. Nothing if there is no such
/// attribute, or if it is None. Looks at the object and not only at its type, because
/// `__getattr__` or the object itself may have the attribute.
/// @throws nb::value_error for anything else; nb::python_error if reading the attribute raises
std::optional<sycl::queue> queue_attribute(nb::handle producer);

/// The device that an array reports by `__dlpack_device__`, if it has this method.
/// @throws conversion_error `device_type_unsupported` for an answer that is not a device
std::optional<DLDevice> reported_device(nb::handle array);

/// The context of memory, and the queue that works on it, if known.
struct memory_owner {
  sycl::context context;
  std::optional<sycl::queue> queue;
};
/// Reads the field `syclobj` of an array interface: a queue, a context, a capsule of either,
/// an object whose `_get_capsule()` returns such a capsule, or a filter string, which means
/// the default context of its device.
/// @throws nb::type_error for anything else, nb::value_error for a filter string without a
///         device
memory_owner read_syclobj(nb::handle syclobj);

}  // namespace usm_dlpack::python
