// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <nanobind/stl/string.h>

namespace usm_dlpack::python {
namespace {

[[noreturn]] void refuse_object(const char* field, const char* expected, nb::handle found) {
  refuse_argument(nb::exception_type::type_error, field, expected, text_of_type(found),
                  "pass one of dpctl's objects");
}

/// The device that a filter string names; an invalid object if there is none.
nb::object find_filtered(nb::handle text) {
  static imported device_class{"dpctl", "SyclDevice"};
  // dpctl reads only up to the first zero character.
  const nb::object plain = checked(PyObject_Str(text.ptr()));
  if (PyUnicode_FindChar(plain.ptr(), 0, 0, PY_SSIZE_T_MAX, 1) >= 0) {
    return {};
  }
  return checked_unless(PyExc_Exception, PyObject_CallFunctionObjArgs(device_class.get().ptr(),
                                                                      plain.ptr(), nullptr));
}

/// The object that a `syclobj` carries: itself, or what its `_get_capsule()` returns.
nb::object carried_by(nb::handle syclobj) {
  const nb::object method = find_attribute(syclobj, "_get_capsule", PyExc_AttributeError);
  return method.is_valid() && PyType_Check(syclobj.ptr()) == 0 ? nb::object(method())
                                                               : nb::borrow(syclobj);
}

std::int32_t read_device(nb::handle device, const char* kinds) {
  if (PyTuple_Check(device.ptr()) != 0) {
    if (!is_device_of_type(device, kDLOneAPI)) {
      refuse_argument(nb::exception_type::value_error, "device", "(14, device_id)",
                      text_of(device), "pass the pair that __dlpack_device__ gives");
    }
    return read_int32("device", nb::handle(PyTuple_GetItem(device.ptr(), 1)));
  }
  const bool is_filter = PyUnicode_Check(device.ptr()) != 0;
  const nb::object meant = is_filter ? find_filtered(device) : nb::borrow(device);
  if (!meant.is_valid()) {
    if (detail::device_table::get().devices.empty()) {
      static_cast<void>(root_device(0));  // refuses: there is no device
    }
    refuse_argument(nb::exception_type::value_error, "device",
                    "the filter string of a device that exists", text_of(device),
                    "`python -m usm_dlpack devices` shows them");
  }
  if (const auto* found = find_sycl<sycl::device>(meant)) {
    return device_id(*found);
  }
  const auto number = PyBool_Check(device.ptr()) != 0 ? std::nullopt : find_integer(device);
  const bool is_id = number && *number >= 0 && *number <= INT32_MAX;
  refuse_argument(nb::exception_type::type_error, "device",
                  std::string("(14, device_id), ") + kinds + " of dpctl", text_of(device),
                  "pass (14, " + (is_id ? std::to_string(*number) : "device_id") + ")");
}

}  // namespace

std::optional<sycl::queue> find_queue(nb::handle object) {
  const auto* found = find_sycl<sycl::queue>(object);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

sycl::queue to_queue(nb::handle object) {
  if (std::optional<sycl::queue> queue = find_queue(object)) {
    return *std::move(queue);
  }
  refuse_object("queue", "a dpctl.SyclQueue or a capsule \"SyclQueueRef\"", object);
}

sycl::context to_context(nb::handle object) {
  if (const auto queue = find_queue(object)) {
    return queue->get_context();
  }
  if (const auto* context = find_sycl<sycl::context>(object)) {
    return *context;
  }
  refuse_object("syclobj", "a dpctl.SyclContext, a dpctl.SyclQueue or a capsule of either",
                object);
}

sycl::device to_device(nb::handle object) {
  if (const auto* device = find_sycl<sycl::device>(object)) {
    return *device;
  }
  refuse_object("device", "a dpctl.SyclDevice", object);
}

memory_place read_syclobj(nb::handle syclobj) {
  if (std::optional<sycl::queue> queue = find_queue(syclobj)) {
    const sycl::context context = queue->get_context();
    return {context, std::move(queue)};
  }
  if (PyUnicode_Check(syclobj.ptr()) != 0) {
    const nb::object device = find_filtered(syclobj);
    if (!device.is_valid()) {
      refuse_argument(nb::exception_type::value_error, "syclobj",
                      "the filter string of a device that exists", text_of(syclobj),
                      "correct the object that offers it");
    }
    return {default_context(device_id(to_device(device))), std::nullopt};
  }
  const nb::object carried = carried_by(syclobj);
  std::optional<sycl::queue> queue = find_queue(carried);
  return {to_context(carried), std::move(queue)};
}

bool is_device_of_type(nb::handle pair, DLDeviceType type) {
  return PyTuple_Check(pair.ptr()) != 0 && PyTuple_Size(pair.ptr()) == 2 &&
         find_integer(nb::handle(PyTuple_GetItem(pair.ptr(), 0))) == type;
}

std::int32_t read_device_id(nb::handle device) {
  return read_device(device, "a filter string or a device");
}

destination_place read_destination(nb::handle device) {
  if (is_device_of_type(device, kDLCPU)) {
    detail::refuse(errc::request_unsupported, "device",
                   "a root device as (14, device_id), since a DLPackTensor is USM",
                   text_of(device),
                   "copy to the host with numpy(), or numpy.from_dlpack(x, device=\"cpu\")");
  }
  if (std::optional<sycl::queue> queue = find_queue(device)) {
    const std::int32_t id = device_id(queue->get_device());
    return {id, std::move(queue)};
  }
  return {read_device(device, "a filter string, a device or a queue"), std::nullopt};
}

}  // namespace usm_dlpack::python
