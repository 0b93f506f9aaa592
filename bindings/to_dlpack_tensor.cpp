// SPDX-License-Identifier: Apache-2.0
//
// The array interface and the arguments describe a view, which is then proved: well formed, in
// the context and on the device that the object names, and within the object's bytes.
#include "module.hpp"

namespace usm_dlpack::python {
namespace {

/// Begin and end of an object's bytes.
using byte_range = std::pair<std::uintptr_t, std::uintptr_t>;

/// A view of an object's memory, as Python's `read_view` returns it.
struct memory_view {
  std::uintptr_t data = 0;  ///< the address that the object names
  byte_range bytes;
  std::uintptr_t first = 0;
  std::vector<std::int64_t> shape;
  std::optional<std::vector<std::int64_t>> strides;
  element_type element;
  bool readonly = false;
  nb::object syclobj;  ///< a queue or context of dpctl or its capsule; None of a DLPackTensor
};

bool is_dpctl_memory(nb::handle object) {
  // No lock: an import lets other threads run, which would wait for it with the GIL held.
  static std::atomic<PyObject*> kept{nullptr};
  if (kept == nullptr) {
    const nb::object memory = nb::module_::import_("dpctl.memory");
    kept = nb::make_tuple(memory.attr("MemoryUSMDevice"), memory.attr("MemoryUSMHost"),
                          memory.attr("MemoryUSMShared"))
               .release()
               .ptr();
  }
  const nb::handle kinds(kept.load());
  return object.type().is(kinds[0]) || object.type().is(kinds[1]) ||
         object.type().is(kinds[2]);
}

/// Reads a tuple of ints that can be extents; false for anything else.
bool read_extents(nb::handle shape, std::vector<std::int64_t>& extents) {
  return PyTuple_CheckExact(shape.ptr()) != 0 && nb::try_cast(shape, extents, false) &&
         std::all_of(extents.begin(), extents.end(),
                     [](std::int64_t extent) { return extent >= 0; });
}

/// Finds a common dtype; nothing for others.
std::optional<element_type> find_common(nb::handle dtype) {
  const nb::object found = checked_unless(
      PyExc_Exception, PyObject_GetItem(python_function("common_dtypes").ptr(), dtype.ptr()));
  return found.is_valid() ? std::optional(to_element(nb::cast<element_parts>(found)))
                          : std::nullopt;
}

/// Reads a DLPackTensor without arguments.
memory_view read_tensor(nb::handle object) {
  const tensor& own = ready_tensor(object);
  const DLTensor described = own.get();
  const tensor_structure& spanned = own.proof().structure();
  const auto data = reinterpret_cast<std::uintptr_t>(described.data);
  const std::size_t ndim = own.ndim();
  return {data,
          {spanned.lowest, spanned.lowest + spanned.nbytes},
          data,
          {own.shape(), own.shape() + ndim},
          std::vector(own.strides(), own.strides() + ndim),
          own.element(),
          own.readonly(),
          nb::none()};
}

/// Reads dpctl's memory with common arguments; nothing for others.
std::optional<memory_view> read_memory(nb::handle object, nb::handle shape, nb::handle dtype) {
  memory_view view;
  view.element.dtype = {kDLUInt, 8, 1};
  if (!dtype.is_none()) {
    const std::optional<element_type> found = find_common(dtype);
    if (!found) {
      return std::nullopt;
    }
    view.element = *found;
  }
  const nb::object interface = object.attr("__sycl_usm_array_interface__");
  view.data = view.first = nb::cast<std::uintptr_t>(interface["data"][0]);
  const auto nbytes = nb::cast<std::int64_t>(interface["shape"][0]);
  view.bytes = {view.data, view.data + static_cast<std::uintptr_t>(nbytes)};
  view.syclobj = interface["syclobj"];
  const std::int64_t width = view.element.bits() / 8;
  if (shape.is_none() && nbytes % width == 0) {
    view.shape.push_back(nbytes / width);
    return view;
  }
  return read_extents(shape, view.shape) ? std::optional(std::move(view)) : std::nullopt;
}

/// Reads by Python what is not common, and refuses what makes no sense.
/// @throws nb::python_error as the object, or TypeError or ValueError
memory_view read_any(nb::handle object, nb::handle shape, nb::handle dtype, nb::handle strides,
                     nb::handle byte_offset) {
  using parts = std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t,
                           std::vector<std::int64_t>, std::optional<std::vector<std::int64_t>>,
                           element_parts, bool, nb::object>;
  memory_view view;
  element_parts element;
  std::tie(view.data, view.bytes.first, view.bytes.second, view.first, view.shape,
           view.strides, element, view.readonly, view.syclobj) =
      nb::cast<parts>(call_python("read_view", object, shape, dtype, strides, byte_offset));
  view.element = to_element(element);
  return view;
}

memory_view read_view(nb::handle object, nb::handle shape, nb::handle dtype,
                      nb::handle strides, nb::handle byte_offset) {
  static PyObject* const zero = PyLong_FromLong(0);  // CPython has one object of it
  if (strides.is_none() && byte_offset.is(zero)) {
    if (shape.is_none() && dtype.is_none() && has_tensor_type(object)) {
      return read_tensor(object);
    }
    if (is_dpctl_memory(object)) {
      if (auto view = read_memory(object, shape, dtype)) {
        return *std::move(view);
      }
    }
  }
  return read_any(object, shape, dtype, strides, byte_offset);
}

/// Refuses a view that exceeds its object; an empty view may begin at the end.
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

/// Refuses an array whose offset leads out of the allocation at its address, as far as the
/// backend reports it. A chunk is known only from that address on.
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

/// The context of the memory, and the queue that works on it, if known.
struct sycl_place {
  sycl::context context;
  std::optional<sycl::queue> queue;
};

sycl_place find_sycl_place(nb::handle obj, const memory_view& view) {
  if (has_tensor_type(obj)) {
    const tensor& own = *nb::inst_ptr<tensor>(obj);
    return {own.proof().context(), own.queue()};
  }
  std::optional<sycl::queue> queue = find_queue(view.syclobj);
  const sycl::context context = queue ? queue->get_context() : to_context(view.syclobj);
  return {context, std::move(queue)};
}

}  // namespace

DLDevice device_for_queue(const void* pointer, bool empty, DLDevice device,
                          const sycl::context& context, const sycl::queue& queue) {
  check_queue(queue);
  if (!empty && queue.get_context() != context) {
    detail::refuse_queue(detail::digits(device.device_id), device_id(queue.get_device()));
  }
  return detail::export_device(pointer, empty, queue);
}

nb::object to_dlpack_tensor(nb::handle obj, nb::handle shape, nb::handle dtype,
                            nb::handle strides, nb::handle byte_offset, nb::handle queue) {
  memory_view view = read_view(obj, shape, dtype, strides, byte_offset);
  const std::uint64_t flags =
      (view.readonly ? flag::read_only : 0) |
      (view.element.storage == subbyte::padded ? flag::is_subbyte_type_padded : 0);
  DLTensor described{};
  described.data = reinterpret_cast<void*>(view.first);
  described.ndim = static_cast<std::int32_t>(view.shape.size());
  described.shape = view.shape.data();
  described.strides = view.strides ? view.strides->data() : nullptr;
  described.dtype = view.element.dtype;
  check_process();
  const tensor_structure structure = check_structure(described, view.element.storage);
  sycl_place place = find_sycl_place(obj, view);
  const bool empty = structure.empty;
  // Looks up the object's own address: shape and offset may lead out of the object.
  const auto* pointer = reinterpret_cast<const void*>(empty ? structure.first : view.data);
  described.device = detail::export_device(pointer, empty, place.context,
                                           detail::device_table::get().find(place.context),
                                           sycl::usm::alloc::unknown, -1);
  if (!queue.is_none()) {
    place.queue = to_queue(queue);
    described.device =
        device_for_queue(pointer, empty, described.device, place.context, *place.queue);
  }
  check_within(structure, view.bytes);
  if (!empty && structure.first != view.data) {
    check_offset(structure.first, view.data, described.device);
  }
  const usm_allocation proof = detail::import_tensor(described, {}, view.element.storage);
  nb::object owner = has_tensor_type(obj) ? nb::inst_ptr<tensor>(obj)->owner_for_others(obj)
                                          : nb::borrow(obj);
  return make_tensor(described, proof, flags, std::move(owner), std::move(place.queue));
}

void register_to_dlpack_tensor(nb::module_& module) {
  module.def("to_dlpack_tensor", &to_dlpack_tensor, nb::arg("obj").none(),
             nb::arg("shape").none(), nb::arg("dtype").none(), nb::arg("strides").none(),
             nb::arg("byte_offset").none(), nb::arg("queue").none(),
             nb::sig("def to_dlpack_tensor(obj: typing.Any, shape: typing.Any, "
                     "dtype: typing.Any, strides: typing.Any, byte_offset: typing.Any, "
                     "queue: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
