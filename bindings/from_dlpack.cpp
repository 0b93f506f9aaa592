// SPDX-License-Identifier: Apache-2.0
//
// Everything is proved before anything is consumed: a refused capsule stays its producer's.
// Memory elsewhere, in host memory or on another root device, is copied.
#include "module.hpp"

namespace usm_dlpack::python {
namespace {

/// The arguments of `from_dlpack`.
struct destination {
  std::optional<std::int32_t> device_id;     ///< a root device
  std::optional<sycl::usm::alloc> usm_type;  ///< of a copy
  bool c_order = false;                      ///< elements are in C order, without gaps
  std::optional<element_type> element;       ///< of an array whose export has only the bits
  import_request request;
};

/// Consumes a capsule.
tensor::owner_type take(const producer_tensor& offered, const capsule_content& content) {
  mark_capsule(offered.capsule, content, capsule_state::consumed);
  if (const auto* versioned = std::get_if<DLManagedTensorVersioned*>(&content)) {
    return managed_tensor(*versioned);
  }
  return legacy_managed_tensor(std::get<DLManagedTensor*>(content));
}

/// Refuses a copy that is needed but forbidden.
void check_copy(bool needed, const destination& wanted, const char* field,
                const char* expected, const char* found) {
  if (needed && wanted.request.copy == false) {
    detail::refuse(errc::copy_needed, field, expected, found, "allow the copy with copy=None");
  }
}

/// A producer's tensor with strides.
/// @param arrays where to write shape and strides
DLTensor filled(const DLTensor& offered, std::vector<std::int64_t>& arrays) {
  arrays.resize(2 * static_cast<std::size_t>(offered.ndim));
  DLTensor described{};
  detail::write_tensor(offered, arrays.data(), described);
  return described;
}

/// Copies a producer's tensor. Owns the tensor during the copy, because other threads run
/// meanwhile, and gives it back if the copy fails.
/// @param structure of the tensor in `content`
/// @param proof of its memory; none for host memory
nb::object import_copy_of(const producer_tensor& offered, const capsule_content& content,
                          const tensor_structure& structure,
                          const std::optional<usm_allocation>& proof,
                          const destination& wanted) {
  const content_view view = view_of(content);
  std::vector<std::int64_t> arrays;
  const DLTensor described = filled(*view.described, arrays);
  copy_source source{described,       structure, view.flags,
                     offered.pending, proof,     wanted.c_order};
  if (wanted.element) {
    source.described.dtype = wanted.element->dtype;
    source.flags |= wanted.element->flags();
  }
  const std::int32_t id = wanted.device_id ? *wanted.device_id : proof->device_id();
  const sycl::usm::alloc kind =
      wanted.usm_type.value_or(proof ? proof->usm_type() : sycl::usm::alloc::device);
  std::optional<sycl::queue> queue = wanted.request.queue;
  if (!queue && offered.pending && device_id(offered.pending->get_device()) == id) {
    queue = offered.pending;
  }
  mark_capsule(offered.capsule, content, capsule_state::consumed);
  nb::object copy;
  try {
    tensor_copy made = copy_to_usm(source, id, kind);
    copy =
        import_managed(to_managed_tensor(made.described, std::move(made.memory), made.flags),
                       std::move(queue));
  } catch (...) {
    mark_capsule(offered.capsule, content, capsule_state::fresh);
    throw;
  }
  take(offered, content);  // and drop it
  return copy;
}

/// Whether a tensor is on another device, or of another USM kind, than requested.
bool is_elsewhere(const usm_allocation& proof, const destination& wanted) {
  return (wanted.device_id && *wanted.device_id != proof.device_id()) ||
         (wanted.usm_type && *wanted.usm_type != proof.usm_type());
}

/// Whether a tensor is not in C order as requested.
bool is_in_other_order(const DLTensor& described, const tensor_structure& structure,
                       const destination& wanted) {
  return wanted.c_order && described.strides != nullptr &&
         !is_c_contiguous(described, structure);
}

/// Makes a DLPackTensor of a producer's tensor, copied if it is elsewhere or in another order.
nb::object import_offered(producer_tensor offered, const destination& wanted) {
  // Allocated before anything is consumed: the garbage collector may run code here that takes
  // the capsule.
  nb::object made = nb::inst_alloc(nb::type<tensor>());
  // Without a GIL, another thread could take the capsule between the proof and the release.
  const nb::ft_object_guard alone(offered.capsule);
  const capsule_content content = read_capsule(offered.capsule);
  const content_view view = view_of(content);
  if (view.described->device.device_type == kDLCPU && wanted.device_id) {
    const tensor_structure structure =
        check_structure(*view.described, detail::storage_of(view.flags));
    check_copy(true, wanted, "copy", "None or True for an array in host memory", "False");
    return import_copy_of(offered, content, structure, std::nullopt, wanted);
  }
  const usm_allocation proof =
      std::visit([](const auto* managed) { return validate(*managed); }, content);
  if (offered.pending) {
    detail::check_context(proof, *offered.pending);
  }
  const bool copied = (view.flags & flag::is_copied) != 0;
  check_copy(copied, wanted, "copy", "memory of the producer, as copy=False asks",
             "a copy that it made");
  const bool elsewhere = is_elsewhere(proof, wanted);
  check_copy(elsewhere, wanted, "copy", "None or True for another device or USM kind",
             "False");
  const bool reordered = is_in_other_order(*view.described, proof.structure(), wanted);
  check_copy(reordered, wanted, "strides", "those of C order, since copy=False", "others");
  // Elements of a dpctl or dpnp copy of a broadcast overlap: that is no real copy.
  const bool done = copied && proof.structure().unique;
  if (elsewhere || reordered || (wanted.request.copy == true && !done)) {
    return import_copy_of(offered, content, proof.structure(), proof, wanted);
  }
  DLTensor described = *view.described;
  if (wanted.c_order) {
    described.strides = nullptr;  // also for extents of 0 and 1
  }
  tensor& taken = *new (nb::inst_ptr<tensor>(made)) tensor(described, proof, view.flags);
  nb::inst_mark_ready(made);
  taken.own(take(offered, content));
  taken.set_queue(wanted.request.queue ? wanted.request.queue : std::move(offered.pending));
  return made;
}

/// Whether the exception that is being handled refuses USM that only its producer can read.
bool is_out_of_reach(nb::handle x) {
  try {
    throw;
  } catch (const conversion_error& refusal) {
    const auto& row = detail::error_table[static_cast<std::size_t>(refusal.code()) - 1];
    return row.raised == detail::python_class::binding_error;
  } catch (const nb::python_error& refusal) {  // the producer's own
    return refusal.matches(PyExc_Exception) && reports_usm(x);
  } catch (...) {
    return false;
  }
}

/// Imports an array that was refused through host memory. If that fails too, raises the
/// refusal, with the second error as its cause.
nb::object import_through_host(nb::handle x, const destination& wanted,
                               nb::python_error refusal) {
  try {
    return import_offered(ask_for_host(x), wanted);
  } catch (...) {
    set_python_error();
    nb::python_error second;
    if (!second.matches(PyExc_Exception)) {
      throw second;
    }
    const nb::object cause = nb::steal(PyException_GetCause(refusal.value().ptr()));
    if (!cause.is_valid()) {
      PyException_SetCause(refusal.value().ptr(), second.value().inc_ref().ptr());
    }
  }
  throw refusal;
}

nb::object import_array(nb::handle x, const destination& wanted) {
  try {
    return import_offered(ask_producer(x, wanted.request), wanted);
  } catch (...) {
    if (!wanted.device_id || wanted.request.copy == false || !is_out_of_reach(x)) {
      throw;
    }
    set_python_error();
  }
  return import_through_host(x, wanted, nb::python_error());
}

/// Makes a new tensor of another's memory, proved again. Uses no capsule, which would hide the
/// owner from the garbage collector.
nb::object share(nb::handle x, const destination& wanted) {
  const tensor& source = *nb::inst_ptr<tensor>(x);
  const std::optional<sycl::queue>& consumer = wanted.request.queue;
  DLTensor shown = source.get();
  if (wanted.c_order) {
    shown.strides = nullptr;
  }
  const usm_allocation proof =
      detail::import_tensor(shown, {}, detail::storage_of(source.flags()));
  if (consumer && source.queue()) {
    hand_over(*source.queue(), *consumer);
  }
  return make_tensor(shown, proof, source.flags(), source.owner_for_others(x),
                     consumer ? consumer : source.queue());
}

/// Python's `from_dlpack`, whose docstring describes the arguments.
nb::object from_dlpack(nb::handle x, nb::handle device, nb::handle copy, nb::handle usm_type,
                       nb::handle order) {
  destination wanted;
  wanted.request.copy = read_flag("copy", copy);
  if (const auto kind = read_choice("usm_type", usm_type, {"host", "device", "shared"})) {
    constexpr sycl::usm::alloc kinds[] = {sycl::usm::alloc::host, sycl::usm::alloc::device,
                                          sycl::usm::alloc::shared};
    wanted.usm_type = kinds[*kind];
  }
  wanted.c_order = read_choice("order", order, {"C"}).has_value();
  check_process();
  exportable array{nb::borrow(x), {}};
  if (!device.is_none()) {
    array = make_exportable(x);
    wanted.element = array.element;
    destination_place place = read_destination(device);
    wanted.device_id = place.device_id;
    wanted.request.host = true;
    if (place.queue) {
      check_queue(*place.queue);
      wanted.request.queue = std::move(place.queue);
      wanted.request.stream = nb::borrow(device);
    }
    detail::working_device(place.device_id);  // before the producer is called
  }
  if (is_tensor(x) && wanted.request.copy != true) {
    const tensor& own = *nb::inst_ptr<tensor>(x);
    if (!is_elsewhere(own.proof(), wanted) &&
        !is_in_other_order(own.get(), own.proof().structure(), wanted)) {
      return share(x, wanted);
    }
  }
  return import_array(array.array, wanted);
}

/// Refuses values whose dtype or shape is not the tensor's.
tensor_structure check_values(const DLTensor& values, std::uint64_t flags, const tensor& own) {
  const std::string remedy = "pass values of the tensor's shape and dtype";
  if (values.ndim != static_cast<std::int32_t>(own.ndim())) {
    detail::refuse(errc::rank_mismatch, "ndim",
                   "as many dimensions as the tensor, " + detail::digits(own.ndim()),
                   detail::digits(values.ndim), remedy);
  }
  const tensor_structure structure = check_structure(values, detail::storage_of(flags));
  if (values.dtype.code != own.dtype().code || values.dtype.bits != own.dtype().bits ||
      values.dtype.lanes != own.dtype().lanes) {
    detail::refuse(errc::dtype_mismatch, "dtype", to_string(own.dtype()),
                   to_string(values.dtype), remedy);
  }
  const auto in_words = [](subbyte storage) {
    return storage == subbyte::padded ? "elements of a byte each" : "packed elements";
  };
  const subbyte storage = detail::storage_of(flags);
  if (own.dtype().bits < 8 && storage != own.element().storage) {
    detail::refuse(errc::dtype_mismatch, "flags", in_words(own.element().storage),
                   in_words(storage), remedy);
  }
  for (std::size_t r = 0; r < own.ndim(); ++r) {
    if (values.shape[r] != own.shape()[r]) {
      detail::refuse(errc::extent_mismatch, detail::indexed("shape", r),
                     detail::digits(own.shape()[r]), detail::digits(values.shape[r]), remedy);
    }
  }
  return structure;
}

void check_writable(const tensor& own) {
  if (own.readonly()) {
    detail::refuse(errc::read_only, "flags", "writable memory", "read-only memory",
                   "copy the array, or read only");
  }
  if (!own.proof().structure().unique) {
    detail::refuse(errc::overlapping, "strides", "elements that do not overlap",
                   "strides that do not prove it", "copy the array to a compact one first");
  }
}

constexpr const char* copy_from_doc =
    "Copy values in host memory into this tensor's memory, whatever its strides.\n\n"
    "Waits for `sycl_queue` and `queue` first, and is complete when it returns. Memory between\n"
    "the elements is not written; elements of fewer than 8 bits are written with the bytes\n"
    "around them.\n\n"
    "Parameters\n----------\n"
    "host\n"
    "    Values of the tensor's shape and dtype: an object with ``__dlpack__`` in host memory,\n"
    "    with ``__array_interface__``, or with a buffer. They may lie in the tensor's memory.\n"
    "queue\n"
    "    Another queue that works on the memory, made from its root device alone.\n\n"
    "Raises\n------\n"
    "ConversionError\n"
    "    If the tensor is read-only, its elements overlap, or the values have another shape or\n"
    "    dtype; nothing is written then.\n"
    "TypeError\n"
    "    If `host` is no array, or `queue` no queue.";

/// DLPackTensor.copy_from
void copy_from(nb::handle_t<tensor> self, nb::handle host, nb::handle queue) {
  const tensor& own = ready_tensor(self);
  check_process();
  const nb::object kept = nb::borrow(self);
  const copy_source to = source_of(own);
  check_writable(own);
  std::optional<sycl::queue> also;
  if (!queue.is_none()) {
    also = to_queue(queue);
    device_for_queue(to.described.data, to.structure.empty, to.described.device,
                     own.proof().context(), *also);
  }
  const exportable read = make_values_exportable(host, own.element());
  import_request request;
  request.anywhere = true;
  const producer_tensor offered = ask_producer(read.array, request);
  const nb::ft_object_guard alone(offered.capsule);
  const capsule_content content = read_capsule(offered.capsule);
  const content_view view = view_of(content);
  DLTensor values = *view.described;
  std::uint64_t flags = view.flags;
  if (values.device.device_type != kDLCPU) {
    detail::refuse(errc::device_type_unsupported, "device.device_type", "kDLCPU (1)",
                   detail::device_type_name(values.device.device_type),
                   "pass values on the host, for example host.numpy() or dpnp.asnumpy(host)");
  }
  if (read.element) {
    values.dtype = read.element->dtype;
    flags |= read.element->flags();
  }
  const tensor_structure structure = check_values(values, flags, own);
  std::vector<std::int64_t> arrays;
  values = filled(values, arrays);
  const tensor::owner_type owner = take(offered, content);  // while other threads run
  write_to_usm({values, structure, flags, std::nullopt, std::nullopt}, to, also);
}

}  // namespace

void add_copy_from(tensor_class& made) {
  made.def("copy_from", &copy_from, nb::arg("host").none(), nb::kw_only(),
           nb::arg("queue") = nb::none(),
           nb::sig("def copy_from(self, host: typing.Any, *, "
                   "queue: SyclQueue | None = None) -> None"),
           copy_from_doc);
}

nb::object import_managed(managed_tensor managed, std::optional<sycl::queue> queue) {
  const DLManagedTensorVersioned& content = *managed;
  const usm_allocation proof = validate(content);
  return make_tensor(content.dl_tensor, proof, content.flags, std::move(managed),
                     std::move(queue));
}

void register_from_dlpack(guarded_module& module) {
  module.def("from_dlpack", &from_dlpack, nb::arg("x").none(), nb::arg("device").none(),
             nb::arg("copy").none(), nb::arg("usm_type").none(), nb::arg("order").none(),
             nb::sig("def from_dlpack(x: typing.Any, device: typing.Any, copy: typing.Any, "
                     "usm_type: typing.Any, order: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
