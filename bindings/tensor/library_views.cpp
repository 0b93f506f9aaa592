// SPDX-License-Identifier: Apache-2.0
#include "tensor/library_views.hpp"
#include "arguments/dtypes.hpp"
#include "module.hpp"
#include "order/cuda_streams.hpp"
#include "order/process.hpp"
#include "order/queues.hpp"

namespace usm_dlpack::python {
namespace {

/// Keeps a DLPackTensor alive.
struct library_view {
  python_reference owner;

  nb::handle object() const noexcept { return owner.get(); }
  /// @throws conversion_error `tensor_released`
  const proved_tensor& get() const { return nb::inst_ptr<tensor>(object())->get(); }
};

struct host_view : library_view {
  static DLDevice device(const proved_tensor&) noexcept { return {kDLCPU, 0}; }
};
struct cuda_view : library_view {
  static DLDevice device(const proved_tensor& own) {
    return cuda_device(own.proof.device_id());
  }
};

// There is no function `clear`: that of the tensor breaks each cycle.
template <class View>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    Py_VISIT(nb::inst_ptr<View>(self)->owner.get());
  }
  return 0;
}

template <class View>
nb::object device_of(const View& self) {
  const DLDevice device = View::device(self.get());
  return nb::make_tuple(static_cast<int>(device.device_type), device.device_id);
}

template <class View>
nb::object export_capsule(const View& self, nb::handle stream, nb::handle max_version,
                          nb::handle dl_device, nb::handle copy) {
  const nb::object own = device_of(self);
  const nb::object asked = dl_device.is_none() ? own : nb::borrow(dl_device);
  // The stream of a consumer of CUDA orders nothing elsewhere. There the host waits.
  const bool fits = std::is_same_v<View, host_view> || asked.equal(own);
  return export_dlpack(nb::handle_t<tensor>(self.object()),
                       fits ? stream : nb::handle(Py_None), max_version, asked, copy);
}

/// What the array interfaces of NumPy and of CUDA have in common.
nb::dict array_interface(const library_view& self, const char* name) {
  const proved_tensor& own = self.get();
  const std::string typestr = to_typestr(own.described.dtype, name);
  const std::int64_t itemsize = own.described.dtype.bits / 8;
  nb::list strides;
  for (std::size_t r = 0; r < own.ndim(); ++r) {
    // Unsigned, because an extent of 1 may have any stride, and the product may wrap.
    strides.append(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(own.described.strides[r]) *
                                  static_cast<std::uint64_t>(itemsize)));
  }
  nb::dict interface;
  interface["data"] =
      nb::make_tuple(reinterpret_cast<std::uintptr_t>(own.described.data), own.readonly());
  interface["shape"] = self.object().attr("shape");
  interface["strides"] = nb::tuple(strides);
  interface["typestr"] = typestr;
  interface["version"] = 3;
  return interface;
}

nb::dict numpy_interface(const host_view& self) {
  return array_interface(self, "__array_interface__");
}

nb::dict cuda_interface(const cuda_view& self) {
  check_process();
  nb::dict interface = array_interface(self, "__cuda_array_interface__");
  order_stream_behind(*nb::inst_ptr<tensor>(self.object()), legacy_stream);
  interface["stream"] = reinterpret_cast<std::uintptr_t>(legacy_stream);
  return interface;
}

[[noreturn]] void refuse_array(const host_view& self, nb::handle, nb::handle) {
  detail::refuse(errc::dtype_unsupported, "dtype", "one that NumPy has a type string for",
                 nb::str(nb::object(self.object().attr("dtype"))).c_str(),
                 find_numpy_dtype(nb::inst_ptr<tensor>(self.object())->element()).is_valid()
                     ? "copy the values with numpy(), or use __dlpack__"
                     : "use __dlpack__");
}

template <class View>
guarded_class<View> register_view(guarded_module& module, const char* name,
                                  const char* signature, const char* doc,
                                  const char* export_doc, const char* device_doc) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse<View>)},
                                {0, nullptr}};
  guarded_class<View> view_class(module, name, nb::is_final(), nb::is_weak_referenceable(),
                                 nb::type_slots(slots), nb::sig(signature), doc);
  view_class
      .def("__dlpack__", &export_capsule<View>, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(), nb::sig(dlpack_signature), export_doc)
      .def("__dlpack_device__", &device_of<View>,
           nb::sig("def __dlpack_device__(self) -> tuple[int, int]"), device_doc);
  return view_class;
}

}  // namespace

nb::object make_host_view(nb::handle_t<tensor> self) {
  check_process();
  python_reference owner(self.inc_ref().ptr());  // while other threads run
  const proved_tensor& own = ready_tensor(self).get();
  if (own.proof.usm_type() == sycl::usm::alloc::device) {
    const bool of_numpy = find_numpy_dtype(ready_tensor(self).element()).is_valid();
    detail::refuse(errc::usm_type_not_accepted, "data", "host USM or shared USM", "device USM",
                   of_numpy ? "copy the values with numpy(), or to shared USM with "
                              "from_dlpack(x, usm_type=\"shared\")"
                            : "copy the values to shared USM with from_dlpack(x, "
                              "usm_type=\"shared\")");
  }
  wait_for(*nb::inst_ptr<tensor>(self));
  return nb::cast(host_view{{std::move(owner)}});
}

nb::object make_cuda_view(nb::handle_t<tensor> self) {
  check_process();
  static_cast<void>(cuda_view::device(ready_tensor(self).get()));
  return nb::cast(cuda_view{{python_reference(self.inc_ref().ptr())}});
}

void register_library_views(guarded_module& module) {
  register_view<host_view>(
      module, "HostView", "@typing.final\nclass HostView(object)",
      "A tensor's memory as an array of the host, without a copy; it keeps the "
      "memory alive.\n\n"
      "Made by `DLPackTensor.host_view`. A read-only tensor's view is "
      "read-only.",
      "Export as a capsule of kDLCPU, after waiting as the tensor's ``wait`` does.",
      "`(1, 0)`: kDLCPU.")
      .def_prop_ro("__array_interface__", &numpy_interface,
                   nb::sig("def __array_interface__(self) -> dict[str, typing.Any]"),
                   "NumPy's description of the memory. Raises AttributeError for a dtype that "
                   "NumPy lacks.")
      .def("__array__", &refuse_array, nb::arg("dtype") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any | None = None, "
                   "copy: bool | None = None) -> numpy.typing.NDArray[typing.Any]"),
           "Refuse: NumPy comes here only if it lacks the dtype.");
  register_view<cuda_view>(
      module, "CudaView", "@typing.final\nclass CudaView(object)",
      "A tensor's memory as a CUDA array, without a copy; it keeps the memory alive.\n\n"
      "Made by `DLPackTensor.cuda_view`, for PyTorch, CuPy, JAX and others.",
      "Export as a capsule of kDLCUDA. `stream` is the consumer's CUDA stream: 1, 2, a handle,\n"
      "or None for the legacy default stream. Its later work waits for the work on the tensor,\n"
      "and the host does not. -1: nobody waits.",
      "`(2, ordinal)`: kDLCUDA, and the GPU's number in CUDA.")
      .def_prop_ro(
          "__cuda_array_interface__", &cuda_interface,
          nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"),
          "The CUDA Array Interface, version 3. It names CUDA's legacy default stream; reading it\n"
          "orders this stream behind the work on the tensor. Raises AttributeError for a\n"
          "dtype that NumPy lacks.");
}

}  // namespace usm_dlpack::python
