// SPDX-License-Identifier: Apache-2.0
//
// DLPackTensor.__dlpack__, and the managed tensors of a DLPackTensor. A new keyword of
// `__dlpack__` is read in `export_dlpack`.
#include "arguments/arguments.hpp"
#include "arguments/places.hpp"
#include "exchange/capsule.hpp"
#include "memory/copies.hpp"
#include "memory/frees.hpp"
#include "module.hpp"
#include "order/cuda_streams.hpp"
#include "order/process.hpp"

namespace usm_dlpack::python {

namespace {

constexpr const char* export_doc =
    "Export as a DLPack capsule that keeps the memory alive.\n\n"
    "Parameters\n----------\n"
    "stream\n"
    "    A `Place`, as `usm_dlpack.device_id` lists them, that knows the consumer's queue; or the\n"
    "    address of a ``sycl::queue``, which is trusted. The queue's later work waits for the\n"
    "    present work on the tensor; if their contexts differ, the host waits. None: the host\n"
    "    waits as `wait` does, so the memory is ready. -1: the host waits only if a copy is made.\n"
    "    With kDLCUDA in `dl_device`: a CUDA stream, as for `cuda_view`.\n"
    "max_version\n"
    "    The newest DLPack version that the consumer knows. None, or a version below 1.0, gives\n"
    "    a legacy capsule.\n"
    "dl_device\n"
    "    None or the tensor's own device; (14, device_id) of another root device, for a copy\n"
    "    there; (1, 0) for the host, which needs a copy only for device USM; or (2, ordinal) for\n"
    "    CUDA, if that is the backend of the device.\n"
    "copy\n"
    "    True always copies, and False never does. None copies if it is necessary. A copy waits\n"
    "    as `wait` does, and is complete when this returns. On a root device it has\n"
    "    the same USM kind. It keeps positive strides without overlap or gaps; otherwise it is\n"
    "    in C order.\n\n"
    "Raises\n------\n"
    "BufferError\n"
    "    If what a keyword asks for is not possible.\n"
    "ValueError\n"
    "    If `stream` cannot be used.";

bool wants_versioned(nb::handle max_version) {
  if (max_version.is_none()) {
    return false;
  }
  std::int64_t version[2] = {0, 0};
  if (!read_pair(max_version, version) || version[0] < 0 || version[1] < 0) {
    detail::refuse(errc::request_unsupported, "max_version",
                   "None or a tuple (major, minor) of integers", text_of(max_version),
                   "pass the newest DLPack version that you know");
  }
  return version[0] >= 1;
}

/// Where an export goes.
struct export_target {
  DLDevice device;         ///< as the consumer names it
  std::int32_t device_id;  ///< of the root device; -1 for the host

  bool is_host() const noexcept { return device.device_type == kDLCPU; }
  bool is_cuda() const noexcept { return device.device_type == kDLCUDA; }
};

/// Reads the requested device: a root device of this process, or the host.
export_target read_device(nb::handle dl_device, DLDevice own) {
  if (dl_device.is_none()) {
    return {own, own.device_id};
  }
  std::int64_t pair[2] = {0, 0};
  const bool is_pair =
      read_pair(dl_device, pair) && pair[1] >= INT32_MIN && pair[1] <= INT32_MAX;
  const auto number = static_cast<std::int32_t>(pair[1]);
  if (is_pair && pair[0] == kDLCPU && number == 0) {
    return {{kDLCPU, 0}, -1};
  }
  const std::int32_t of_cuda =
      is_pair && pair[0] == kDLCUDA ? detail::find_cuda_device(number) : -1;
  if (of_cuda >= 0) {
    return {{kDLCUDA, number}, of_cuda};
  }
  if (!is_pair || pair[0] != kDLOneAPI) {
    detail::refuse(errc::request_unsupported, "dl_device",
                   "(14, device_id) of a root device, as the tensor's own (14, " +
                       std::to_string(own.device_id) +
                       "), (1, 0), or (2, ordinal) of a GPU of the backend cuda",
                   text_of(dl_device),
                   is_pair ? "copy to the host first, by dl_device=(1, 0)"
                           : "pass the tuple that __dlpack_device__ gives");
  }
  if (number != own.device_id) {
    detail::working_device(number);
  }
  return {{kDLOneAPI, number}, number};
}

std::optional<bool> read_copy(nb::handle copy) {
  if (copy.is_none()) {
    return std::nullopt;
  }
  const std::optional<bool> read = find_truth(copy);
  if (!read) {
    detail::refuse(errc::request_unsupported, "copy", "None, True or False", text_of(copy),
                   "pass one of these");
  }
  return read;
}

/// Reads None, -1, or a queue. @throws nb::value_error for anything else, also if the object's
/// own code raises another error
consumer_stream read_stream(nb::handle stream) {
  if (stream.is_none()) {
    return {};
  }
  if (PyLong_Check(stream.ptr()) != 0 && find_integer(stream) == -1) {
    return {std::nullopt, true};
  }
  try {
    return {read_queue(stream, "stream", "None, -1, ", nb::exception_type::value_error)};
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) {
      throw;
    }
    nb::raise_from(
        error, PyExc_ValueError,
        "stream: expected None, -1, a place that knows a queue, or the address of a "
        "sycl::queue, found %s, which raises an exception; pass a dpctl.SyclQueue",
        text_of(stream).c_str());
  }
}

template <class Owner>
nb::object finish(const DLTensor& described, bool versioned, std::uint64_t flags,
                  Owner&& owner) {
  return versioned
             ? make_capsule(to_managed_tensor(described, std::forward<Owner>(owner), flags))
             : make_capsule(
                   to_legacy_managed_tensor(described, std::forward<Owner>(owner), flags));
}

nb::object export_copy(const tensor& source, const export_target& to, bool versioned,
                       const std::optional<sycl::queue>& consumer) {
  wait_for(source);
  tensor_copy copied =
      to.is_host() ? copy_to_host(source.get(), false)
                   : copy_to_usm(source.get(), to.device_id, source.proof().usm_type(), false);
  if (consumer) {
    copy_free& of_copy = copied.memory.get_deleter();
    of_copy.consumer = of_copy.queues->add(*consumer);
  }
  copied.described.device = to.device;
  return finish(copied.described, versioned, copied.flags, std::move(copied.memory));
}

/// Orders the consumer's queue or stream behind the work on the tensor. If the consumer names
/// none, waits for that work.
void synchronise(const tensor& source, const consumer_stream& consumer) {
  if (consumer.unsynchronised) {
    return;
  }
  if (consumer.queue) {
    hand_over(source, *consumer.queue);
  } else if (consumer.cuda) {
    order_stream_behind(source, *consumer.cuda);
  } else {
    wait_for(source);
  }
}

}  // namespace

nb::object export_dlpack(nb::handle_t<tensor> self, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, nb::handle copy) {
  const tensor& source = ready_tensor(self);
  check_process();
  const DLDevice own = source.get().described.device;
  const export_target to = read_device(dl_device, own);
  const consumer_stream consumer =
      to.is_cuda() ? read_cuda_stream(stream) : read_stream(stream);
  const bool versioned = wants_versioned(max_version);
  const std::optional<bool> copies = read_copy(copy);
  if (to.is_host() && consumer.queue) {
    throw nb::value_error(
        "stream: expected None or -1 with dl_device=(1, 0), found a queue, which cannot order "
        "what the host does; pass None");
  }
  const bool elsewhere = !to.is_host() && to.device_id != own.device_id;
  const bool must =
      elsewhere || (to.is_host() && source.proof().usm_type() == sycl::usm::alloc::device);
  if (must && copies == false) {
    detail::refuse(errc::copy_needed, "copy",
                   elsewhere ? "None or True for another device"
                             : "None or True for device USM on the host",
                   "False",
                   elsewhere ? "allow the copy" : "allow the copy, or use host or shared USM");
  }
  if (must || copies == true) {
    return export_copy(source, to, versioned, consumer.queue);
  }
  DLTensor described = source.get().described;
  described.device = to.device;
  free_finished();
  synchronise(source, consumer);
  exported_tensor owner{python_reference(self.inc_ref().ptr()),
                        consumer.queue ? source.queues()->add(*consumer.queue) : nullptr};
  return finish(described, versioned, source.get().flags & ~flag::is_copied, std::move(owner));
}

managed_tensor export_managed(nb::handle self) {
  const proved_tensor& source = nb::inst_ptr<tensor>(self)->get();
  return to_managed_tensor(source.described,
                           exported_tensor{python_reference(self.inc_ref().ptr()), nullptr},
                           source.flags & ~flag::is_copied);
}

void add_dlpack_method(tensor_class& tensor_type) {
  tensor_type.def("__dlpack__", &export_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
                  nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
                  nb::arg("copy") = nb::none(), nb::sig(dlpack_signature), export_doc);
}

}  // namespace usm_dlpack::python
