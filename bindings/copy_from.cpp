// SPDX-License-Identifier: Apache-2.0
#include "copy_from.hpp"
#include "capsule.hpp"
#include "copies.hpp"
#include "dtypes.hpp"
#include "places.hpp"
#include "process.hpp"
#include "producer.hpp"
#include "to_dlpack_tensor.hpp"

namespace usm_dlpack::python {
namespace {

/// Checks values in host memory: dtype and shape must be those of the tensor.
proved_tensor check_values(const DLTensor& values, std::uint64_t flags,
                           const proved_tensor& own) {
  const std::string remedy = "pass values of the tensor's shape and dtype";
  const DLDataType dtype = own.described.dtype;
  if (values.ndim != own.described.ndim) {
    detail::refuse(errc::rank_mismatch, "ndim",
                   "as many dimensions as the tensor, " + detail::digits(own.ndim()),
                   detail::digits(values.ndim), remedy);
  }
  const tensor_structure structure = check_structure(values, detail::storage_of(flags));
  if (!same_data_type(values.dtype, dtype)) {
    detail::refuse(errc::dtype_mismatch, "dtype", to_string(dtype), to_string(values.dtype),
                   remedy);
  }
  const auto in_words = [](subbyte storage) {
    return storage == subbyte::padded ? "elements of a byte each" : "packed elements";
  };
  const subbyte storage = detail::storage_of(flags);
  if (dtype.bits < 8 && storage != own.storage()) {
    detail::refuse(errc::dtype_mismatch, "flags", in_words(own.storage()), in_words(storage),
                   remedy);
  }
  for (std::size_t r = 0; r < own.ndim(); ++r) {
    if (values.shape[r] != own.described.shape[r]) {
      detail::refuse(errc::extent_mismatch, detail::indexed("shape", r),
                     detail::digits(own.described.shape[r]), detail::digits(values.shape[r]),
                     remedy);
    }
  }
  return {values, flags, detail::import_protocol::on_host(structure)};
}

void check_writable(const proved_tensor& own) {
  if (own.readonly()) {
    detail::refuse(errc::read_only, "flags", "writable memory", "read-only memory",
                   "copy the array, or read only");
  }
  if (!own.structure().unique) {
    detail::refuse(errc::overlapping, "strides", "elements that do not overlap",
                   "strides that do not prove it", "copy the array to a compact one first");
  }
}

constexpr const char* copy_from_doc =
    "Copy values in host memory into this tensor's memory, whatever its strides.\n\n"
    "Waits for `sycl_queue` and `queue` first, and is complete when it returns. Memory between\n"
    "the elements is not written, but elements of fewer than 8 bits are written together with\n"
    "the bytes around them.\n\n"
    "Parameters\n----------\n"
    "host\n"
    "    Values with the tensor's shape and dtype: an object in host memory with\n"
    "    ``__dlpack__``, ``__array_interface__`` or a buffer. They may lie in the tensor's\n"
    "    memory.\n"
    "queue\n"
    "    Another queue that works on the memory, made from its root device alone.\n\n"
    "Raises\n------\n"
    "ConversionError\n"
    "    If the tensor is read-only, its elements overlap, or the values have another shape or\n"
    "    dtype. Then nothing is written.\n"
    "TypeError\n"
    "    If `host` is no array, or `queue` is no queue.";

void copy_from(nb::handle_t<tensor> self, nb::handle host, nb::handle queue) {
  const proved_tensor& to = ready_tensor(self).get();
  check_process();
  check_writable(to);
  std::optional<sycl::queue> also;
  if (!queue.is_none()) {
    also = to_queue(queue);
    device_for_queue(to.described.data, to.structure().empty, to.described.device,
                     to.proof.context(), *also);
  }
  const exportable read = make_values_exportable(host, to.described.dtype);
  import_request request;
  request.anywhere = true;
  const offered_capsule offered = ask_producer(read.array, request);
  const nb::ft_object_guard alone(offered.capsule);
  const capsule_content content = read_capsule(offered.capsule);
  DLTensor values = content.described();
  std::uint64_t flags = content.flags();
  if (values.device.device_type != kDLCPU) {
    detail::refuse(errc::device_type_unsupported, "device.device_type", "kDLCPU (1)",
                   detail::device_type_name(values.device.device_type),
                   "pass values on the host, for example host.numpy() or dpnp.asnumpy(host)");
  }
  if (read.element) {
    values.dtype = read.element->dtype;
    flags |= read.element->flags();
  }
  proved_tensor from = check_values(values, flags, to);
  from.owner = take_capsule(offered.capsule, content);  // while other threads run
  write_to_usm(from, to, also);
}

}  // namespace

void add_copy_from(tensor_class& made) {
  made.def("copy_from", &copy_from, nb::arg("host").none(), nb::kw_only(),
           nb::arg("queue") = nb::none(),
           nb::sig("def copy_from(self, host: typing.Any, *, "
                   "queue: SyclQueue | None = None) -> None"),
           copy_from_doc);
}

}  // namespace usm_dlpack::python
