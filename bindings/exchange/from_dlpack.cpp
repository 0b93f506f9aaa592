// SPDX-License-Identifier: Apache-2.0
//
// Python's `from_dlpack`: the import protocol, and copies of arrays that are elsewhere.
// Everything is proved before anything is consumed: a refused capsule still belongs to its
// producer, or to who passed it. An array in host memory or on another root device is copied;
// kDLCPU arrays in host or shared USM are shared.
#include "arguments/dtypes.hpp"
#include "arguments/places.hpp"
#include "exchange/capsule.hpp"
#include "exchange/producer.hpp"
#include "memory/copies.hpp"
#include "memory/frees.hpp"
#include "module.hpp"
#include "order/queues.hpp"
#include "tensor/tensor.hpp"

namespace usm_dlpack::python {
namespace {

/// The arguments of `from_dlpack`.
struct destination {
  std::optional<std::int32_t> device_id;     ///< of the wanted root device
  std::optional<sycl::usm::alloc> usm_type;  ///< the wanted kind
  bool c_order = false;                      ///< whether C order without gaps is wanted
  std::optional<element_type> element;       ///< of an array whose export has another dtype
  import_request request;
};

/// Writes the strides of C order, also for extents of 0 and 1. @pre the elements are in C
/// order
void write_c_strides(proved_tensor& proved) {
  detail::write_compact_strides(proved.described.shape, proved.described.strides,
                                proved.ndim(), false);
}

/// Refuses a copy that is needed but forbidden.
void check_copy(bool needed, const destination& wanted, const char* field,
                const char* expected, const char* found) {
  if (needed && wanted.request.copy == false) {
    detail::refuse(errc::copy_needed, field, expected, found, "allow the copy with copy=None");
  }
}

/// Marks a capsule as consumed, so that no other thread takes it while this one waits. It is
/// fresh again afterwards, unless this one took it.
class claimed_capsule {
 public:
  claimed_capsule(nb::handle capsule, const capsule_content& content) noexcept
      : capsule_(capsule), content_(content) {
    mark_capsule(capsule, content, capsule_state::consumed);
  }
  claimed_capsule(const claimed_capsule&) = delete;
  claimed_capsule& operator=(const claimed_capsule&) = delete;
  ~claimed_capsule() {
    if (!is_taken_) {
      mark_capsule(capsule_, content_, capsule_state::fresh);
    }
  }

  detail::tensor_owner take() noexcept {
    is_taken_ = true;
    return consume_capsule(capsule_, content_);
  }

 private:
  nb::handle capsule_;
  const capsule_content& content_;
  bool is_taken_ = false;
};

/// Copies a producer's tensor.
/// @param source has no owner yet
nb::object import_copy_of(const proved_tensor& source, nb::handle capsule,
                          const capsule_content& content, const destination& wanted) {
  const std::int32_t id = wanted.device_id ? *wanted.device_id : source.proof.device_id();
  const sycl::usm::alloc kind = wanted.usm_type.value_or(source.proof.usm_type());
  std::optional<sycl::queue> queue = wanted.request.queue;
  if (!queue && source.queue && source.queue->get_context() == default_context(id) &&
      device_id(source.queue->get_device()) == id) {
    queue = source.queue;
  }
  claimed_capsule claimed(capsule, content);
  wait_for_foreign(source, list_behind(content));
  tensor_copy copied = copy_to_usm(source, id, kind, wanted.c_order);
  nb::object copy = make_tensor(
      prove(to_managed_tensor(copied.described, std::move(copied.memory), copied.flags),
            std::move(queue)));
  claimed.take();  // and drop the tensor
  return copy;
}

/// Proves a tensor of kDLCPU as one in USM, if its memory is host USM that a root device
/// reaches, or shared USM of that device: for example of a pinned pool. Memory whose bounds
/// are not known is host memory.
/// @throws conversion_error as `validate`
std::optional<proved_tensor> find_in_usm(const proved_tensor& on_host, std::int32_t id) {
  if (on_host.structure().empty) {
    return std::nullopt;
  }
  const detail::platform_entry& platform = detail::device_table::get().platform_of(id);
  const detail::located_memory there{
      &platform, detail::find_allocation(on_host.described.data, platform)};
  const sycl::usm::alloc kind = there.memory.kind;
  if ((kind != sycl::usm::alloc::host && kind != sycl::usm::alloc::shared) ||
      !there.is_on(id) ||
      platform.queries->range(on_host.structure(), there.memory).proof == bounds_proof::none) {
    return std::nullopt;
  }
  DLTensor described = on_host.described;
  described.device = {kDLOneAPI, id};
  return proved_tensor(described, on_host.flags,
                       detail::import_tensor(described, {}, on_host.storage()));
}

/// Whether a tensor is on another device, or of another USM kind, than requested.
bool is_elsewhere(const proved_tensor& proved, const destination& wanted) {
  return (wanted.device_id && *wanted.device_id != proved.proof.device_id()) ||
         (wanted.usm_type && *wanted.usm_type != proved.proof.usm_type());
}

/// Whether a tensor is not in C order as requested.
bool is_in_other_order(const proved_tensor& proved, const destination& wanted) {
  return wanted.c_order && !is_c_contiguous(proved);
}

/// Makes a DLPackTensor of a producer's tensor. Copies it if it is elsewhere or in another
/// order than requested.
nb::object import_offered(const offered_capsule& offered, const destination& wanted) {
  // This is allocated before the capsule is read, because the garbage collector may run code
  // here that takes the capsule.
  nb::object imported_tensor = nb::inst_alloc(nb::type<tensor>());
  // Without a GIL, another thread could take the capsule between the proof and the release.
  const nb::ft_object_guard alone(offered.capsule);
  const capsule_content content = read_capsule(offered.capsule);
  if (!wanted.device_id) {
    detail::id_named_by(content.described().device);  // refuses host memory
  }
  proved_tensor proved = prove_content(content, wanted.element);
  proved.queue = offered.queue;
  const bool is_for_host = proved.is_on_host();
  if (is_for_host && wanted.device_id) {
    if (std::optional<proved_tensor> shared = find_in_usm(proved, *wanted.device_id)) {
      proved = *std::move(shared);
      proved.queue = queue_behind(content);
    }
  }
  if (proved.is_on_host()) {
    check_copyable(proved, wanted.c_order);
    check_copy(!proved.structure().empty, wanted, "copy",
               "None or True for an array in host memory", "False");
    return import_copy_of(proved, offered.capsule, content, wanted);
  }
  if (proved.queue) {
    detail::check_context(proved.proof, *proved.queue);
  }
  const bool copied = (proved.flags & flag::is_copied) != 0;
  check_copy(copied, wanted, "copy", "memory of the producer, as copy=False asks",
             "a copy that it made");
  const bool elsewhere = is_elsewhere(proved, wanted);
  const bool reordered = is_in_other_order(proved, wanted);
  if (elsewhere || reordered) {
    check_copyable(proved, wanted.c_order);  // before a refusal says to allow the copy
  }
  check_copy(elsewhere && !proved.structure().empty, wanted, "copy",
             "None or True for another device or USM kind", "False");
  check_copy(reordered, wanted, "strides", "those of C order, since copy=False", "others");
  // If dpctl or dpnp copy a broadcast array, the elements of the copy overlap. Such a copy is
  // copied again.
  const bool done = copied && proved.structure().unique;
  if (elsewhere || reordered || (wanted.request.copy == true && !done)) {
    return import_copy_of(proved, offered.capsule, content, wanted);
  }
  if (wanted.c_order) {
    write_c_strides(proved);
  }
  claimed_capsule claimed(offered.capsule, content);
  if (wanted.request.queue) {
    if (is_for_host) {
      hand_over(dpctl_queue(*wanted.device_id), *wanted.request.queue);
    }
    if (const auto list = list_behind(content)) {
      list->hand_over_to(*wanted.request.queue);
    }
    proved.queue = wanted.request.queue;
  }
  own_memory(proved, is_of_cuda(content.described().device, proved.proof.device_id()),
             [&] { return claimed.take(); });
  new (nb::inst_ptr<tensor>(imported_tensor))
      tensor(std::move(proved), nullptr, offered.queue);
  nb::inst_mark_ready(imported_tensor);
  free_finished();
  return imported_tensor;
}

nb::object import_array(nb::handle x, const destination& wanted) {
  if (PyCapsule_CheckExact(x.ptr()) != 0) {
    return import_offered(offer_capsule(x, wanted.request), wanted);
  }
  nb::object imported_tensor;
  const bool through_host = wanted.device_id && wanted.request.copy != false;
  read_producer(x, wanted.request, through_host, [&](const offered_capsule& offered) {
    imported_tensor = import_offered(offered, wanted);
  });
  return imported_tensor;
}

/// Makes a new tensor of the memory of our own tensor, and proves it again. Uses no capsule,
/// because a capsule would hide the owner from the garbage collector.
nb::object share(nb::handle x, const destination& wanted) {
  const tensor& source = *nb::inst_ptr<tensor>(x);
  const proved_tensor& own = source.get();
  const std::optional<sycl::queue>& consumer = wanted.request.queue;
  proved_tensor shared(own.described, own.flags,
                       detail::import_tensor(own.described, {}, own.storage()));
  if (wanted.c_order) {
    write_c_strides(shared);
  }
  if (consumer) {
    hand_over(source, *consumer);
  }
  shared.queue = consumer ? consumer : own.queue;
  shared.owner = keep(source.owner_for_others(x));
  return make_tensor(std::move(shared), source.queues());
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
    place named = read_place(device);
    wanted.device_id = named.device_id;
    wanted.request.host = true;
    if (named.queue) {
      detail::check_default_context(*named.queue, "device");
      wanted.request.queue = std::move(named.queue);
    }
    detail::working_device(named.device_id);  // before the producer is called
  }
  if (is_tensor(x) && wanted.request.copy != true) {
    const proved_tensor& own = nb::inst_ptr<tensor>(x)->get();
    if (!is_elsewhere(own, wanted) && !is_in_other_order(own, wanted)) {
      return share(x, wanted);
    }
  }
  return import_array(array.array, wanted);
}

}  // namespace

void register_from_dlpack(guarded_module& module) {
  module.def("from_dlpack", &from_dlpack, nb::arg("x").none(), nb::arg("device").none(),
             nb::arg("copy").none(), nb::arg("usm_type").none(), nb::arg("order").none(),
             nb::sig("def from_dlpack(x: typing.Any, device: typing.Any, copy: typing.Any, "
                     "usm_type: typing.Any, order: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
