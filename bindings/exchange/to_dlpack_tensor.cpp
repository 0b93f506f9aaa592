// SPDX-License-Identifier: Apache-2.0
//
// The array interface and the arguments describe a view. It is then proved that the view is
// well formed, that the memory is of the context that the object names, and that every byte
// lies within the object's bytes.
#include "exchange/to_dlpack_tensor.hpp"
#include "arguments/array_interface.hpp"
#include "arguments/places.hpp"
#include "module.hpp"
#include "order/process.hpp"
#include "tensor/tensor.hpp"

namespace usm_dlpack::python {
namespace {

/// Refuses a view that does not lie within the object's bytes. An empty view may begin at
/// their end.
void check_within(const tensor_structure& view, const byte_range& object) {
  const auto [begin, end] = object;
  const auto bytes = [&] {
    return " within the " + detail::digits(object.end - object.begin) + " bytes of the object";
  };
  if (view.first < begin || view.first > end || (view.first == end && !view.empty)) {
    detail::refuse(errc::out_of_bounds, "byte_offset", "a first element" + bytes(),
                   "one at byte " + detail::offset_text(view.first, begin),
                   "correct byte_offset");
  }
  if (!view.empty && (view.lowest < begin || view.nbytes > end - view.lowest)) {
    detail::refuse(errc::out_of_bounds, "shape", "a view" + bytes(),
                   detail::bytes_from(view.lowest, view.nbytes, begin),
                   "correct shape, strides (in elements) or byte_offset");
  }
}

/// Refuses an array whose offset leads out of the allocation at its address, as far as the
/// backend reports the allocation.
void check_offset(std::uintptr_t first, std::uintptr_t origin, DLDevice device) {
  DLTensor named{};
  named.data = reinterpret_cast<void*>(origin);
  named.device = device;
  named.dtype = {kDLUInt, 8, 1};
  const usm_allocation proof = validate(named);
  const bool is_out = first < proof.base() || first - proof.base() >= proof.size();
  if (proof.size() != 0 && is_out) {
    detail::refuse(errc::out_of_bounds, "byte_offset",
                   "a first element within the allocation of the object's address",
                   "one at byte " + detail::offset_text(first, origin) + " from that address",
                   "correct the offset in the object's array interface");
  }
}

memory_owner owner_of(nb::handle obj, const array_view& view) {
  if (has_tensor_type(obj)) {
    const tensor& own = *nb::inst_ptr<tensor>(obj);
    return {own.proof().context(), own.queue()};
  }
  return read_syclobj(view.syclobj);
}

/// The device of memory that belongs to none, as host USM, by what its object says; or -1.
std::int32_t device_named_by(nb::handle obj, const memory_owner& owner) {
  if (has_tensor_type(obj)) {
    return nb::inst_ptr<tensor>(obj)->proof().device_id();
  }
  return owner.queue ? device_id(owner.queue->get_device()) : -1;
}

}  // namespace

DLDevice device_for_queue(const void* pointer, bool empty, DLDevice device,
                          const sycl::context& context, const sycl::queue& queue) {
  check_queue(queue);
  if (!empty && queue.get_context() != context) {
    detail::refuse_queue_device(detail::digits(device.device_id),
                                device_id(queue.get_device()));
  }
  return detail::find_device_by_queue({pointer, empty}, queue);
}

proved_tensor prove_memory(nb::handle obj, nb::handle shape, nb::handle dtype,
                           nb::handle strides, nb::handle byte_offset, nb::handle queue,
                           std::optional<sycl::queue>* producer) {
  const array_view view = read_array_view(obj, shape, dtype, strides, byte_offset);
  const std::uint64_t flags = (view.readonly ? flag::read_only : 0) | view.element.flags();
  DLTensor described = describe(view);
  check_process();
  const tensor_structure structure = check_structure(described, view.element.storage);
  memory_owner owner = owner_of(obj, view);
  const bool empty = structure.empty;
  // The object's own address is looked up, because shape and offset may lead out of the
  // object.
  const auto* pointer = reinterpret_cast<const void*>(empty ? structure.first : view.data);
  described.device = detail::find_device_by_context({pointer, empty}, owner.context, -1,
                                                    device_named_by(obj, owner));
  if (producer != nullptr) {
    *producer = owner.queue;
  }
  if (!queue.is_none()) {
    owner.queue = read_queue(queue);
    described.device =
        device_for_queue(pointer, empty, described.device, owner.context, *owner.queue);
  }
  check_within(structure, view.bytes);
  if (!empty && structure.first != view.data) {
    check_offset(structure.first, view.data, described.device);
  }
  proved_tensor proved(described, flags,
                       detail::import_tensor(described, {}, view.element.storage));
  proved.queue = std::move(owner.queue);
  proved.owner = keep(has_tensor_type(obj) ? nb::inst_ptr<tensor>(obj)->owner_for_others(obj)
                                           : nb::borrow(obj));
  return proved;
}

void register_to_dlpack_tensor(guarded_module& module) {
  module.def(
      "to_dlpack_tensor",
      [](nb::handle obj, nb::handle shape, nb::handle dtype, nb::handle strides,
         nb::handle byte_offset, nb::handle queue) {
        std::optional<sycl::queue> producer;
        proved_tensor proved =
            prove_memory(obj, shape, dtype, strides, byte_offset, queue, &producer);
        auto list = is_tensor(obj) ? nb::inst_ptr<tensor>(obj)->queues() : nullptr;
        return make_tensor(std::move(proved), std::move(list), producer);
      },
      nb::arg("obj").none(), nb::arg("shape").none(), nb::arg("dtype").none(),
      nb::arg("strides").none(), nb::arg("byte_offset").none(), nb::arg("queue").none(),
      nb::sig("def to_dlpack_tensor(obj: typing.Any, shape: typing.Any, "
              "dtype: typing.Any, strides: typing.Any, byte_offset: typing.Any, "
              "queue: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
