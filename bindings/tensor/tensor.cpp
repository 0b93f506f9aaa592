// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.hpp"
#include "memory/copies.hpp"
#include "memory/frees.hpp"
#include "module.hpp"
#include "order/process.hpp"
#include "order/queues.hpp"
#include "tensor/library_views.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace usm_dlpack::python {
namespace {

using detail::tensor_owner;

/// An item in a list of owners that are to be dropped.
struct waiting_owner {
  tensor_owner owner;
  waiting_owner* next;
};

/// Drops an owner. The owner may hold the last reference to a tensor, which then drops its own
/// owner, and so on, if an array was exported and imported many times. To limit the stack,
/// owners beyond a certain depth are put in a list, which the thread's outermost call drops.
void drop_owner(tensor_owner owner) noexcept {
  constexpr int deepest = 16;
  // Without destructors, because a thread may drop tensors while it ends.
  thread_local int depth = 0;
  thread_local waiting_owner* first = nullptr;
  if (depth >= deepest) {
    if (auto* waiting = new (std::nothrow) waiting_owner{std::move(owner), first}) {
      first = waiting;
      return;
    }
  }
  ++depth;
  owner = detail::python_object();
  while (depth == 1 && first != nullptr) {
    const std::unique_ptr<waiting_owner> taken(std::exchange(first, first->next));
    taken->owner = detail::python_object();
  }
  --depth;
}

/// The owner of a managed tensor, if this module made it with this type of owner, or else
/// null.
template <class Owner, class Managed>
const Owner* find_owner(const Managed& managed) noexcept {
  using block = detail::managed_block<Managed, Owner>;
  return managed.deleter == &block::destroy
             ? &static_cast<const block*>(managed.manager_ctx)->owner
             : nullptr;
}

/// The list behind a managed tensor that this module made, or null.
template <class Managed>
std::shared_ptr<queue_list> list_behind_managed(const Managed& managed) noexcept {
  if (const auto* copied = find_owner<copy_memory>(managed)) {
    return copied->get_deleter().queues;
  }
  if (const auto* of_cuda = find_owner<cuda_memory>(managed)) {
    return of_cuda->get_deleter().queues;
  }
  const auto* exported = find_owner<exported_tensor>(managed);
  return exported != nullptr ? nb::inst_ptr<tensor>(exported->tensor.get())->queues()
                             : nullptr;
}

}  // namespace

std::shared_ptr<queue_list> list_behind(const capsule_content& content) noexcept {
  return std::visit([](const auto* managed) { return list_behind_managed(*managed); },
                    content.managed());
}

std::shared_ptr<queue_list> list_behind(const tensor_owner& owner) noexcept {
  return std::visit(
      [](const auto& kind) -> std::shared_ptr<queue_list> {
        if constexpr (std::is_same_v<decltype(kind), const detail::python_object&>) {
          const nb::handle object(kind.get());
          return object.is_valid() && is_tensor(object)
                     ? nb::inst_ptr<tensor>(object)->queues()
                     : nullptr;
        } else {
          return list_behind_managed(*kind);
        }
      },
      owner);
}

std::optional<sycl::queue> queue_behind(const capsule_content& content) {
  return std::visit(
      [](const auto* managed) -> std::optional<sycl::queue> {
        const auto* exported = find_owner<exported_tensor>(*managed);
        if (exported == nullptr) {
          return std::nullopt;
        }
        const tensor& source = *nb::inst_ptr<tensor>(exported->tensor.get());
        const bool is_usable =
            exported->consumer != nullptr &&
            exported->consumer->get_context() == source.proof().context() &&
            device_id(exported->consumer->get_device()) == source.proof().device_id();
        return is_usable ? *exported->consumer : source.queue();
      },
      content.managed());
}

tensor::tensor(proved_tensor content, std::shared_ptr<queue_list> list,
               const std::optional<sycl::queue>& producer)
    : content_(std::move(content)),
      queues_(list != nullptr ? std::move(list) : list_behind(content_.owner)) {
  if (queues_ == nullptr) {
    queues_ = std::make_shared<queue_list>();
  }
  content_.described.device = {kDLOneAPI, proof().device_id()};
  if (!content_.queue) {
    content_.queue = package_queue(proof().device_id());
  }
  if (producer) {
    producer_ = queues_->add(*producer);
  }
  own_ = queues_->add(queue());
}

nb::object tensor::queue_object() const {
  if (!queue_object_.is_valid()) {
    queue_object_ = to_dpctl(queue());
  }
  return queue_object_;
}

void tensor::add_package_queue() const {
  if (package_queue_ == nullptr) {
    package_queue_ = queues_->add(package_queue(proof().device_id()));
  }
}

tensor::~tensor() { release(); }

std::int64_t tensor::size() const noexcept {
  std::int64_t size = 1;
  for (std::size_t r = 0; r < ndim(); ++r) {
    // Limited, because a broadcast view may have more than INT64_MAX elements.
    if (__builtin_mul_overflow(size, shape()[r], &size)) {
      size = std::numeric_limits<std::int64_t>::max();
    }
  }
  return size;
}

PyObject* tensor::python_owner() const noexcept {
  const auto* object = std::get_if<detail::python_object>(&content_.owner);
  return object == nullptr ? nullptr : object->get();
}

void tensor::release() noexcept {
  const nb::error_scope keep;  // a deleter may run during an exception
  is_released_ = true;
  tensor_owner gone = std::exchange(content_.owner, detail::python_object());
  const interpreter_gate gate;
  if (process_is_forked() || !gate.open()) {
    // Never dropped: in a child of fork() the runtime would wait forever for threads of the
    // parent, and an owner's Python code would end this thread when the interpreter finishes.
    new (std::nothrow) tensor_owner(std::move(gone));
    new (std::nothrow) std::shared_ptr<queue_list>(queues_);
    return;
  }
  drop_owner(std::move(gone));
}

const proved_tensor& tensor::get() const {
  if (is_released_) {
    detail::refuse(errc::tensor_released, "data", "memory that an owner keeps alive",
                   "none: the tensor was part of a cycle that was collected",
                   "keep a reference to the tensor outside the cycle");
  }
  return content_;
}

std::int64_t tensor::nbytes() const noexcept {
  const std::int64_t bits = element().bits();
  std::int64_t all = 0;
  if (__builtin_mul_overflow(size(), bits, &all) || __builtin_add_overflow(all, 7, &all)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return all / 8;
}

namespace {

nb::tuple to_tuple(const std::int64_t* values, std::size_t count) {
  return nb::tuple(nb::cast(std::vector(values, values + count)));
}

int traverse_tensor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    Py_VISIT(nb::inst_ptr<tensor>(self)->python_owner());
  }
  return 0;
}

int clear_tensor(PyObject* self) {
  if (nb::inst_ready(self)) {
    nb::inst_ptr<tensor>(self)->release();
  }
  return 0;
}

nb::tuple shape_tuple(const tensor& self) { return to_tuple(self.shape(), self.ndim()); }
nb::tuple strides_tuple(const tensor& self) { return to_tuple(self.strides(), self.ndim()); }

nb::tuple device_tuple(const tensor& self) {
  return nb::make_tuple(static_cast<int>(kDLOneAPI), self.proof().device_id());
}

// `data` is the address of the first element, `offset` is 0, and strides are in elements. A
// consumer names no queue here, so this waits. The consumer works on the queue in `syclobj`.
// In place of the package's that is dpctl's, because dpnp refuses to mix queues. If it were a
// context, dpctl would make a queue that nobody knows.
nb::object sycl_array_interface(nb::handle_t<tensor> object) {
  check_process();
  const tensor& self = ready_tensor(object);
  const DLTensor& described = self.get().described;
  wait_for(self);
  const std::int32_t device_id = self.proof().device_id();
  const bool names_own = self.queue_knows_memory() && self.queue() != package_queue(device_id);
  nb::dict interface;
  interface["data"] =
      nb::make_tuple(reinterpret_cast<std::uintptr_t>(described.data), self.readonly());
  interface["shape"] = shape_tuple(self);
  interface["strides"] = strides_tuple(self);
  interface["typestr"] = to_typestr(described.dtype, "__sycl_usm_array_interface__");
  interface["offset"] = 0;
  interface["version"] = 1;
  interface["syclobj"] = names_own ? self.queue_object() : dpctl_queue_object(device_id);
  return interface;
}

nb::object to_numpy(nb::handle_t<tensor> object) {
  const tensor& self = ready_tensor(object);
  const char* const bytes =
      is_c_contiguous(self.get())
          ? "take the bytes with to_dlpack_tensor(x, dtype=\"uint8\").numpy()"
      : has_whole_bytes(self.get())
          ? "take the bytes with to_dlpack_tensor(from_dlpack(x, order=\"C\"), "
            "dtype=\"uint8\").numpy()"
          : unpacking_remedy;
  numpy_array copied = make_numpy_array(self.element(), shape_tuple(self), bytes);
  check_process();
  wait_for(self);
  write_compact(self.get(), copied.data);
  return std::move(copied.array);
}

void wait_for_tensor(nb::handle_t<tensor> object) {
  check_process();
  wait_for(ready_tensor(object));
}

nb::object to_dtype(const tensor& self) {
  nb::object numpy_dtype = find_numpy_dtype(self.element());
  return numpy_dtype.is_valid()
             ? numpy_dtype
             : nb::object(nb::str(dtype_name(self.element().dtype).c_str()));
}

std::string describe(const tensor& self) {
  std::string device = "?";  // in a child of fork(), which must not use the runtime
  if (!process_is_forked()) {
    const std::string name = self.proof().device().get_info<sycl::info::device::name>();
    device = nb::cast<std::string>(nb::repr(nb::str(name.c_str()).attr("strip")()));
  }
  const auto text = [](nb::handle shown) { return nb::cast<std::string>(nb::str(shown)); };
  const bool in_order = self.queue().is_in_order();
  return "DLPackTensor(shape=" + text(shape_tuple(self)) +
         ", strides=" + text(strides_tuple(self)) + ", dtype=" + text(to_dtype(self)) +
         ", usm_type='" + to_string(self.proof().usm_type()) +
         "', device=" + text(device_tuple(self)) + ", name=" + device +
         ", sycl_queue=" + (in_order ? "'in order'" : "'out of order'") +
         ", nbytes=" + std::to_string(self.nbytes()) +
         ", byte_extent=" + std::to_string(self.proof().structure().nbytes) +
         (self.readonly() ? ", read-only)" : ")");
}

[[noreturn]] void refuse_pickling(const tensor&) {
  throw nb::type_error(
      "DLPackTensor: expected an object that Python can copy or pickle, found a view of memory "
      "that belongs to this process; copy it with from_dlpack(x, copy=True), or pickle numpy()");
}

/// Without this method NumPy would make a zero-dimensional array that holds the tensor itself.
[[noreturn]] void refuse_numpy(const tensor&, nb::handle, nb::handle) {
  throw nb::type_error(
      "DLPackTensor: expected a library that takes USM, found one that needs a NumPy array; copy "
      "the values with x.numpy(), or see shared or host USM in place with "
      "numpy.asarray(x.host_view())");
}

}  // namespace

const tensor& ready_tensor(nb::handle self) {
  if (!nb::inst_ready(self)) {
    detail::refuse(errc::tensor_released, "data", "a tensor that was made by this package",
                   "one that was not initialised",
                   "use to_dlpack_tensor, from_dlpack or empty");
  }
  return *nb::inst_ptr<tensor>(self);
}

bool has_tensor_type(nb::handle object) noexcept {
  static const auto* const type = reinterpret_cast<PyTypeObject*>(nb::type<tensor>().ptr());
  return Py_TYPE(object.ptr()) == type;
}

bool is_tensor(nb::handle object) noexcept {
  return has_tensor_type(object) && nb::inst_ready(object);
}

nb::object make_tensor(proved_tensor content, std::shared_ptr<queue_list> list,
                       const std::optional<sycl::queue>& producer) {
  free_finished();
  nb::object object = nb::inst_alloc(nb::type<tensor>());
  new (nb::inst_ptr<tensor>(object)) tensor(std::move(content), std::move(list), producer);
  nb::inst_mark_ready(object);
  return object;
}

void wait_for(const tensor& used) {
  used.queues()->wait();
  wait_for(dpctl_queue(used.proof().device_id()));
}

void wait_for_foreign(const proved_tensor& foreign, const std::shared_ptr<queue_list>& list) {
  if (foreign.structure().empty) {
    return;
  }
  if (list != nullptr) {
    list->wait();
  }
  if (foreign.is_on_host()) {
    return;
  }
  if (foreign.queue) {
    wait_for(*foreign.queue);
  }
  wait_for(dpctl_queue(foreign.proof.device_id()));
}

void hand_over(const tensor& used, const sycl::queue& consumer) {
  const sycl::queue& of_dpctl = dpctl_queue(used.proof().device_id());
  detail::check_executing(of_dpctl);
  used.queues()->hand_over_to(consumer);
  hand_over(of_dpctl, consumer);
}

bool is_of_cuda(const DLDevice& from, std::int32_t device_id) {
  return detail::is_cuda(from.device_type) ||
         (from.device_type == kDLCPU &&
          detail::device_table::get().platform_of(device_id).backend ==
              sycl::backend::ext_oneapi_cuda);
}

proved_tensor prove(managed_tensor managed, std::optional<sycl::queue> queue) {
  const usm_allocation proof = validate(*managed);
  proved_tensor proved(managed->dl_tensor, managed->flags, proof);
  proved.queue = std::move(queue);
  own_memory(proved, is_of_cuda(managed->dl_tensor.device, proof.device_id()),
             [&]() -> detail::tensor_owner { return std::move(managed); });
  return proved;
}

proved_tensor prove_content(const capsule_content& content,
                            const std::optional<element_type>& host_element) {
  const DLTensor& offered = content.described();
  if (offered.device.device_type != kDLCPU) {
    const usm_allocation proof =
        std::visit([](const auto* managed) { return validate(*managed); }, content.managed());
    return {offered, content.flags(), proof};
  }
  const subbyte storage = detail::storage_of(content.flags());
  proved_tensor checked(offered, content.flags(),
                        detail::import_protocol::on_host(check_structure(offered, storage)));
  if (host_element) {
    checked.described.dtype = host_element->dtype;
    checked.flags |= host_element->flags();
  }
  return checked;
}

void register_tensor(guarded_module& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_tensor)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear_tensor)},
                                {0, nullptr}};
  tensor_class tensor_type(
      module, "DLPackTensor", nb::is_weak_referenceable(), nb::is_final(),
      nb::type_slots(slots), nb::sig("@typing.final\nclass DLPackTensor(object)"),
      "A view of USM that was proved when it was made, and keeps it alive.\n\n"
      "Made by `to_dlpack_tensor`, `from_dlpack` and `empty`, not by the class itself. It computes\n"
      "nothing and has no items: use ``dpnp.from_dlpack(x)``, which does not copy, `numpy`, which\n"
      "copies, or `host_view`.");
  tensor_type.def(
      "__init__",
      [](nb::handle_t<tensor>, const nb::args&, const nb::kwargs&) {
        throw nb::type_error(
            "DLPackTensor: expected a tensor made from memory or an array, found a call of the "
            "class; use to_dlpack_tensor, from_dlpack or empty");
      },
      nb::sig("def __init__(self, _: typing.NoReturn, /) -> None"),
      "Refuse: `to_dlpack_tensor` and `from_dlpack` make tensors.");
  add_memory_properties(tensor_type)
      .def_prop_ro("shape", &shape_tuple, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "Extents, in elements.")
      .def_prop_ro("strides", &strides_tuple, nb::sig("def strides(self) -> tuple[int, ...]"),
                   "Distances between neighbours, in elements.")
      .def_prop_ro("ndim", &tensor::ndim, "Number of dimensions.")
      .def_prop_ro("size", &tensor::size, "Number of elements.")
      .def_prop_ro("nbytes", &tensor::nbytes, "Bytes of the elements, gaps not counted.")
      .def_prop_ro(
          "byte_extent", [](const tensor& self) { return self.proof().structure().nbytes; },
          "Bytes from the lowest element to the end of the highest, gaps counted.")
      .def_prop_ro("dtype", &to_dtype,
                   nb::sig("def dtype(self) -> numpy.dtype[typing.Any] | str"),
                   "The dtype of NumPy or ml_dtypes, or else DLPack's name of the dtype.")
      .def_prop_ro(
          "sycl_queue", [](const tensor& self) { return self.queue_object(); },
          nb::sig("def sycl_queue(self) -> SyclQueue"),
          "The tensor's queue, behind which `__dlpack__` orders the consumer. It is the queue that\n"
          "was asked for, or the producer's, or this package's in-order queue of the device.")
      .def_prop_ro("device", &device_tuple, nb::sig("def device(self) -> tuple[int, int]"),
                   "`(14, device_id)`: kDLOneAPI and the id of the root device.")
      .def_prop_ro(
          "__sycl_usm_array_interface__", &sycl_array_interface,
          nb::sig("def __sycl_usm_array_interface__(self) -> dict[str, typing.Any]"),
          "The dictionary by which dpctl and dpnp take the memory. Reading it waits as `wait`\n"
          "does.")
      .def("__dlpack_device__", &device_tuple,
           nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
           "`(14, device_id)`, as DLPack wants it.")
      .def(
          "wait", &wait_for_tensor, nb::sig("def wait(self) -> None"),
          "Wait for `sycl_queue`, for the queues that producers and consumers of the memory named,\n"
          "and for dpctl's queue of the device, where consumers that name none work, without the\n"
          "GIL. Raises ConversionError if the runtime reports an error, or a queue records a graph.")
      .def("numpy", &to_numpy, nb::sig("def numpy(self) -> numpy.typing.NDArray[typing.Any]"),
           "Wait as `wait` does, and copy the values to a new NumPy array, compact and\n"
           "writable. Raises ConversionError for a dtype that NumPy does not have.\n\n"
           "It always copies, so it takes no ``copy=False``. NumPy sees host and shared USM\n"
           "without a copy by ``numpy.asarray(x.host_view())``.")
      .def(
          "host_view", &make_host_view, nb::sig("def host_view(self) -> HostView"),
          "Wait as `wait` does, and return an object by which NumPy and other CPU libraries\n"
          "see the memory without a copy. Raises ConversionError for device USM, which the host\n"
          "cannot read.\n\n"
          "Nothing waits for work that starts later. The view keeps the memory alive.")
      .def(
          "cuda_view", &make_cuda_view, nb::sig("def cuda_view(self) -> CudaView"),
          "Return an object by which CUDA libraries see the memory without a copy: PyTorch,\n"
          "CuPy, JAX and others. Their stream is ordered behind the work that `wait` waits for. Raises\n"
          "ConversionError for a device of another backend than CUDA.\n\n"
          "Later work on `sycl_queue` does not wait for the consumer's stream. The view keeps\n"
          "the memory alive.")
      .def("__array__", &refuse_numpy, nb::arg("dtype") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any | None = None, "
                   "copy: bool | None = None) -> typing.NoReturn"),
           "Refuse: to copy the values to NumPy, call `numpy`.")
      .def("__reduce__", &refuse_pickling, nb::sig("def __reduce__(self) -> typing.NoReturn"),
           "Refuse: the memory belongs to this process.")
      .def("__repr__", &describe, nb::sig("def __repr__(self) -> str"));
  add_dlpack_method(tensor_type);
  add_copy_from(tensor_type);
}

}  // namespace usm_dlpack::python
