// SPDX-License-Identifier: Apache-2.0
#include "arguments/places.hpp"
#include "exchange/producer.hpp"
#include "tensor/tensor.hpp"

#include <nanobind/stl/string.h>

namespace usm_dlpack::python {
namespace {

/// Interned names; never destroyed.
struct place_attributes {
  nb::handle queue = PyUnicode_InternFromString("sycl_queue");
  nb::handle sycl_device = PyUnicode_InternFromString("sycl_device");
  nb::handle dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
};

const place_attributes& attributes() {
  static const place_attributes interned;
  return interned;
}

/// The SYCL object in an object of dpctl, in a capsule, or in the capsule that an object's
/// `_get_capsule()` returns.
template <class Object>
std::optional<Object> find_wrapped(nb::handle object) {
  if (const auto* wrapped = find_sycl<Object>(object)) {
    return *wrapped;
  }
  const nb::object method = find_attribute(object, "_get_capsule", PyExc_AttributeError);
  const nb::object capsule = method.is_valid() ? method() : nb::object();
  const auto* wrapped = method.is_valid() ? find_sycl<Object>(capsule) : nullptr;
  return wrapped != nullptr ? std::optional(*wrapped) : std::nullopt;
}

bool is_integer(nb::handle object) {
  return PyLong_Check(object.ptr()) != 0 && PyBool_Check(object.ptr()) == 0;
}

/// The queue at an address. The caller guarantees the address, as in DLPack. Nothing is at
/// addresses that are not aligned, nor at 0, 1 and 2, which other libraries use as numbers of
/// streams.
std::optional<sycl::queue> queue_at(nb::handle address) {
  constexpr std::uintptr_t last_stream_number = 2;
  const auto value = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLong(address.ptr()));
  const bool is_beyond = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (is_beyond || value <= last_stream_number || value % alignof(sycl::queue) != 0) {
    return {};
  }
  return *reinterpret_cast<const sycl::queue*>(value);
}

std::optional<sycl::queue> find_queue(nb::handle object) {
  if (has_tensor_type(object)) {
    static_cast<void>(ready_tensor(object));  // refuses one without content
  }
  std::optional<sycl::queue> queue = find_wrapped<sycl::queue>(object);
  return queue ? queue : queue_attribute(object);
}

/// The id of the device that a filter string names.
/// @throws nb::value_error if there is none
std::int32_t read_filter(const char* field, nb::handle text, const char* remedy) {
  static imported device_class{"dpctl", "SyclDevice"};
  const nb::object device = checked_unless(
      PyExc_Exception,
      PyObject_CallFunctionObjArgs(device_class.get().ptr(), text.ptr(), nullptr));
  if (!device.is_valid()) {
    if (detail::device_table::get().devices.empty()) {
      static_cast<void>(root_device(0));  // refuses: there is no device
    }
    refuse_argument(nb::exception_type::value_error, field,
                    "the filter string of a device that exists", text_of(text), remedy);
  }
  return device_id(*find_sycl<sycl::device>(device));
}

DLDevice read_tuple(nb::handle pair) {
  const auto find_part = [&](Py_ssize_t i) {
    const auto part = PyTuple_Size(pair.ptr()) == 2
                          ? find_integer(nb::handle(PyTuple_GetItem(pair.ptr(), i)))
                          : std::nullopt;
    return part >= INT32_MIN && part <= INT32_MAX ? part : std::nullopt;
  };
  const auto type = find_part(0), id = find_part(1);
  if (!type || !id) {
    refuse_argument(nb::exception_type::value_error, "device", "(14, device_id)",
                    text_of(pair), "pass the pair that __dlpack_device__ gives");
  }
  return {static_cast<DLDeviceType>(*type), static_cast<std::int32_t>(*id)};
}

/// The id of a root device as DLPack names it.
std::int32_t read_dlpack_device(const DLDevice& named, nb::handle object) {
  if (named.device_type == kDLOneAPI) {
    return named.device_id;
  }
  const std::string text =
      type_has(object, attributes().dlpack_device)
          ? text_of_type(object) + " on " +
                detail::device_type_name(static_cast<std::int32_t>(named.device_type))
          : text_of(object);
  if (named.device_type == kDLCPU) {
    detail::refuse(errc::request_unsupported, "device",
                   "a root device as (14, device_id), since USM is memory of one", text,
                   "pass (14, device_id); usm_type=\"host\" allocates host USM there");
  }
  const std::int32_t id =
      detail::is_cuda(named.device_type) ? detail::find_cuda_device(named.device_id) : -1;
  if (id < 0) {
    refuse_argument(nb::exception_type::value_error, "device", "(14, device_id)", text,
                    "pass a SYCL device of this process");
  }
  return id;
}

/// The id of the root device that an object of one of the usual types names: a tuple, a filter
/// string or a `dpctl.SyclDevice`.
std::optional<std::int32_t> find_plain_device(nb::handle object) {
  if (PyTuple_Check(object.ptr()) != 0) {
    return read_dlpack_device(read_tuple(object), object);
  }
  if (PyUnicode_Check(object.ptr()) != 0) {
    return read_filter("device", object, "`python -m usm_dlpack` shows them");
  }
  const auto* device = find_sycl<sycl::device>(object);
  return device == nullptr ? std::nullopt : std::optional(device_id(*device));
}

/// The id of the root device that another object names, which knows no queue.
std::optional<std::int32_t> find_attribute_device(nb::handle object) {
  // PyTorch's `__dlpack_device__` gives PyTorch's own index.
  std::optional<DLDevice> named = exchanged_device(object);
  if (!named) {
    named = reported_device(object);
  }
  if (named) {
    return read_dlpack_device(*named, object);
  }
  const nb::object attribute = find_attribute(object, attributes().sycl_device);
  if (!attribute.is_valid() || attribute.is_none()) {
    return std::nullopt;
  }
  if (const auto* device = find_sycl<sycl::device>(attribute)) {
    return device_id(*device);
  }
  refuse_argument(nb::exception_type::type_error, "sycl_device", "a dpctl.SyclDevice",
                  text_of(attribute), "correct the attribute of the object's class");
}

}  // namespace

place read_place(nb::handle device) {
  if (const std::optional<std::int32_t> id = find_plain_device(device)) {
    return {*id, std::nullopt};
  }
  if (PyType_Check(device.ptr()) == 0) {  // a class has only its instances' attributes
    if (const std::optional<sycl::queue> queue = find_queue(device)) {
      return {device_id(queue->get_device()), *queue};
    }
    if (const std::optional<std::int32_t> id = find_attribute_device(device)) {
      return {*id, std::nullopt};
    }
  }
  const std::optional<std::int64_t> number = find_integer(device);
  const bool is_id = number && *number >= 0 && *number <= INT32_MAX;
  refuse_argument(
      nb::exception_type::type_error, "device",
      "a place: (14, device_id), a filter string, or a device, a queue or an array "
      "of SYCL",
      text_of(device), "pass (14, " + (is_id ? std::to_string(*number) : "device_id") + ")");
}

sycl::queue read_queue(nb::handle object, const char* field, const char* other_values,
                       nb::exception_type refusal) {
  std::optional<sycl::queue> queue;
  if (is_integer(object)) {
    queue = queue_at(object);
  } else if (PyType_Check(object.ptr()) == 0) {
    queue = find_queue(object);
  }
  if (queue) {
    return *queue;
  }
  refuse_argument(refusal, field,
                  std::string(other_values) +
                      "a place that knows a queue, or the address of a sycl::queue",
                  text_of(object), "pass a dpctl.SyclQueue");
}

std::optional<sycl::queue> queue_attribute(nb::handle producer) {
  const nb::object attribute = find_attribute(producer, attributes().queue);
  if (!attribute.is_valid() || attribute.is_none()) {
    return {};
  }
  std::optional<sycl::queue> queue =
      is_integer(attribute) ? queue_at(attribute) : find_wrapped<sycl::queue>(attribute);
  if (!queue) {
    refuse_argument(nb::exception_type::value_error, "sycl_queue",
                    "None, a dpctl.SyclQueue, a capsule \"SyclQueueRef\", an object with "
                    "_get_capsule(), or the address of a sycl::queue",
                    text_of(attribute), "correct the attribute of the object's class");
  }
  return queue;
}

std::optional<DLDevice> reported_device(nb::handle array) {
  const nb::object method = find_attribute(array, attributes().dlpack_device);
  if (!method.is_valid() || method.is_none()) {
    return std::nullopt;
  }
  const nb::object answer = method();
  std::int64_t pair[2] = {0, 0};
  const auto fits = [](std::int64_t part) { return part >= INT32_MIN && part <= INT32_MAX; };
  if (!read_pair(answer, pair) || !fits(pair[0]) || !fits(pair[1])) {
    detail::refuse(errc::device_type_unsupported, "__dlpack_device__",
                   "a tuple (device_type, device_id) of int32_t", text_of(answer),
                   "correct the producer");
  }
  return DLDevice{static_cast<DLDeviceType>(pair[0]), static_cast<std::int32_t>(pair[1])};
}

memory_owner read_syclobj(nb::handle syclobj) {
  if (const auto queue = find_wrapped<sycl::queue>(syclobj)) {
    return {queue->get_context(), *queue};
  }
  if (PyUnicode_Check(syclobj.ptr()) != 0) {
    const std::int32_t id =
        read_filter("syclobj", syclobj, "correct the object that offers it");
    return {default_context(id), std::nullopt};
  }
  if (const auto context = find_wrapped<sycl::context>(syclobj)) {
    return {*context, std::nullopt};
  }
  refuse_argument(nb::exception_type::type_error, "syclobj",
                  "a dpctl.SyclContext, a dpctl.SyclQueue or a capsule of either",
                  text_of_type(syclobj), "pass one of dpctl's objects");
}

}  // namespace usm_dlpack::python
