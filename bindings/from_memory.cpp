// SPDX-License-Identifier: Apache-2.0
//
// The arguments and the interface say which view is meant; then it is proved: well formed, in
// the context and on the device that the object names, and within the object's bytes.
#include "from_memory.hpp"

#include "array_interface.hpp"
#include "process.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace usm_dlpack::python {
namespace {

/// A view of an object's memory, as the arguments and the interface describe it.
struct wanted_view {
  std::uintptr_t first = 0;
  integers shape;
  std::optional<integers> strides;
  element_type element;
};

/// The shape of all bytes behind `byte_offset` in elements of another width: one dimension.
integers reinterpreted_shape(const array_interface& base, std::int64_t bits,
                             nb::handle byte_offset) {
  if (!base.is_compact()) {
    refuse_argument(PyExc_ValueError, "shape", "one, since the array is not compact", "None",
                    "pass shape and strides of the elements that are meant");
  }
  constexpr wide_int enough = wide_int{1} << 120;
  wide_int all = base.bits;
  for (const std::int64_t extent : base.shape.values) {
    all = __builtin_mul_overflow(all, extent, &all) ? enough : std::min(all, enough);
  }
  all = (all + 7) / 8;
  const wide_int bytes = all - to_wide(byte_offset);
  if (bytes < 0) {
    refuse_argument(PyExc_ValueError, "byte_offset",
                    "at most " + std::string(detail::digits(all)) + ", the bytes of the array",
                    text_of(byte_offset), "correct byte_offset");
  }
  if (bytes * 8 % bits != 0) {
    refuse_argument(PyExc_ValueError, "shape",
                    "a whole number of elements of " + std::to_string(bits) + " bits",
                    std::string(detail::digits(bytes)) + " bytes behind byte_offset",
                    "pass shape");
  }
  // In Python's integers, since an offset may be of any size.
  const nb::object all_bits = (from_wide(all) - byte_offset) * nb::int_(8);
  integers made;
  made.append(checked(PyNumber_FloorDivide(all_bits.ptr(), nb::int_(bits).ptr())));
  return made;
}

/// What the arguments and the interface together mean.
/// @throws nb::python_error ValueError or TypeError
wanted_view read_view(const array_interface& base, nb::handle shape, nb::handle dtype,
                      nb::handle strides, nb::handle byte_offset) {
  base.shape.check("shape", 0);
  const nb::object offset = read_integer("byte_offset", byte_offset);
  const wide_int bytes = to_wide(offset);
  wanted_view view;
  view.element = dtype.is_none() ? base.element : read_dtype(dtype);
  const bool renewed = !shape.is_none() || !dtype.is_none() || bytes != 0;
  if (!strides.is_none() && shape.is_none() && renewed) {
    refuse_argument(PyExc_ValueError, "shape", "one, since strides are given", "None",
                    "pass both");
  }
  if (!shape.is_none()) {
    view.shape = read_integers("shape", shape);
  } else if (view.element.bits() != base.bits || bytes != 0) {
    view.shape = reinterpreted_shape(base, view.element.bits(), offset);
  } else {
    view.shape = base.shape;
    view.strides = base.strides;
  }
  if (!strides.is_none()) {
    view.strides = read_integers("strides", strides);
  }
  const std::size_t ndim = view.shape.values.size();
  if (view.strides && view.strides->values.size() != ndim) {
    refuse_argument(PyExc_ValueError, "strides",
                    std::to_string(ndim) + ", one for each dimension",
                    std::to_string(view.strides->values.size()), "correct shape or strides");
  }
  view.shape.check("shape", 0);
  if (view.strides) {
    view.strides->check("strides", std::numeric_limits<std::int64_t>::min());
  }
  const wide_int first = base.first() + bytes;
  if (first < 0 || first >= wide_int{1} << 64) {
    refuse_argument(PyExc_ValueError, "byte_offset", "an address after it",
                    text_of(from_wide(base.first()) + offset), "correct byte_offset");
  }
  view.first = static_cast<std::uintptr_t>(first);
  return view;
}

/// Refuses a view that reaches out of its object; an empty one may begin at the end.
void check_within(const tensor_structure& view, const byte_range& object) {
  const auto [begin, end] = object;
  const auto bytes = [&] {
    return " within the " + detail::digits(object.second - object.first) +
           " bytes of the object";
  };
  if (view.first < begin || view.first > end || (view.first == end && !view.empty)) {
    detail::refuse(errc::out_of_bounds, "byte_offset", "a first element" + bytes(),
                   "one at byte " + detail::byte_place(view.first, begin),
                   "correct byte_offset");
  }
  if (!view.empty && (view.lowest < begin || view.nbytes > end - view.lowest)) {
    const std::uintptr_t last = view.lowest + view.nbytes - 1;
    detail::refuse(errc::out_of_bounds, "shape", "a view" + bytes(),
                   "one of bytes " + detail::byte_place(view.lowest, begin) + " to " +
                       detail::byte_place(last, begin),
                   "correct shape, strides or byte_offset");
  }
}

/// Refuses an array whose offset leads out of the allocation of the address that it names, as
/// far as the backend tells. A chunk is known from that address on.
void check_offset(std::uintptr_t first, std::uintptr_t origin, DLDevice device) {
  DLTensor named{};
  named.data = reinterpret_cast<void*>(origin);
  named.device = device;
  named.dtype = {kDLUInt, 8, 1};
  const usm_allocation proof = validate(named);
  const bool is_out = first < proof.base() ? proof.bounds_proved() != bounds_proof::chunk
                                           : first - proof.base() >= proof.size();
  if (proof.size() != 0 && is_out) {
    detail::refuse(errc::out_of_bounds, "byte_offset",
                   "a first element within the allocation of the object's address",
                   "one at byte " + detail::byte_place(first, origin) + " from that address",
                   "correct the offset in the object's array interface");
  }
}

/// Refuses a queue of another context or root device than the memory's. By comparing: the
/// Level Zero driver knows a pointer in each context of its platform.
/// @param context a default context, which knows the memory
DLDevice find_device(const void* pointer, bool empty, DLDevice device,
                     const sycl::context& context, const sycl::queue& queue) {
  check_queue(queue);
  if (!empty && queue.get_context() != context) {
    detail::refuse_queue(detail::digits(device.device_id), device_id(queue.get_device()));
  }
  return detail::export_device(pointer, empty, queue);
}

/// The context that knows the memory, and the queue that works on it, if one is known.
struct memory_place {
  sycl::context context;
  std::optional<sycl::queue> queue;
};

memory_place find_place(const array_interface& base) {
  if (base.own != nullptr) {
    const tensor& own = *base.own;
    return {own.proof().context(), own.queue_knows_memory() ? own.queue() : std::nullopt};
  }
  const nb::object place = resolve_syclobj(base.syclobj);
  const sycl::queue* queue = find_queue(place);
  return queue != nullptr ? memory_place{queue->get_context(), *queue}
                          : memory_place{to_context(place), std::nullopt};
}

}  // namespace

nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue) {
  const array_interface base = read_array_interface(obj);
  wanted_view view = read_view(base, shape, dtype, strides, byte_offset);
  const byte_range bytes = bytes_behind(obj, base);
  DLManagedTensorVersioned shown{};
  shown.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  shown.flags = (base.readonly ? flag::read_only : 0) |
                (view.element.storage == subbyte::padded ? flag::is_subbyte_type_padded : 0);
  DLTensor& described = shown.dl_tensor;
  described.data = reinterpret_cast<void*>(view.first);
  described.ndim = static_cast<std::int32_t>(view.shape.values.size());
  described.shape = view.shape.values.data();
  described.strides = view.strides ? view.strides->values.data() : nullptr;
  described.dtype = view.element.dtype;
  memory_place place = find_place(base);
  check_process();
  const tensor_structure structure = check_structure(described, view.element.storage);
  const bool empty = structure.empty;
  // What the object itself names is looked up: shape and offset may lead out of it.
  const auto* pointer = reinterpret_cast<const void*>(empty ? structure.first : base.data);
  described.device = detail::export_device(pointer, empty, place.context);
  if (!queue.is_none()) {
    place.queue = to_queue(queue);
    described.device =
        find_device(pointer, empty, described.device, place.context, *place.queue);
  }
  check_within(structure, bytes);
  if (!empty && structure.first != base.data) {
    check_offset(structure.first, base.data, described.device);
  }
  const usm_allocation proof = validate(shown);
  nb::object made = make_tensor(described, proof, shown.flags);
  tensor& filled = *nb::inst_ptr<tensor>(made);
  filled.own(base.own == nullptr ? nb::borrow(obj) : base.own->owner_for_others(obj));
  filled.know(std::move(place.queue));
  return made;
}

void register_from_memory(nb::module_& module) {
  module.def("to_dlpack_tensor", &to_dlpack_tensor, nb::arg("obj").none(),
             nb::arg("shape").none(), nb::arg("dtype").none(), nb::arg("strides").none(),
             nb::arg("byte_offset").none(), nb::arg("queue").none(),
             nb::sig("def to_dlpack_tensor(obj: typing.Any, shape: typing.Any, "
                     "dtype: typing.Any, strides: typing.Any, byte_offset: typing.Any, "
                     "queue: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
