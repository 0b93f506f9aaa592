// SPDX-License-Identifier: Apache-2.0
#include "host_view.hpp"
#include "dtypes.hpp"
#include "process.hpp"
#include "queues.hpp"

namespace usm_dlpack::python {
namespace {

/// Keeps a DLPackTensor alive.
struct host_view {
  python_reference owner;

  nb::handle object() const noexcept { return owner.get(); }
  /// @throws conversion_error `tensor_released`
  const proved_tensor& get() const { return nb::inst_ptr<tensor>(object())->get(); }
};

// There is no function `clear`: that of the tensor breaks each cycle.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    Py_VISIT(nb::inst_ptr<host_view>(self)->owner.get());
  }
  return 0;
}

nb::object export_capsule(const host_view& self, nb::handle stream, nb::handle max_version,
                          nb::handle dl_device, nb::handle copy) {
  static_cast<void>(self.get());
  const nb::object there = dl_device.is_none() ? nb::make_tuple(static_cast<int>(kDLCPU), 0)
                                               : nb::borrow(dl_device);
  return self.object().attr("__dlpack__")(
      nb::arg("stream") = stream, nb::arg("max_version") = max_version,
      nb::arg("dl_device") = there, nb::arg("copy") = copy);
}

nb::dict array_interface(const host_view& self) {
  const proved_tensor& own = self.get();
  const std::string typestr = to_typestr(own.described.dtype, "__array_interface__");
  const std::int64_t itemsize = own.described.dtype.bits / 8;
  nb::list strides;
  for (std::size_t r = 0; r < own.ndim(); ++r) {
    // Unsigned, because an extent of 1 may have any stride, and the product may wrap.
    strides.append(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(own.described.strides[r]) *
                                  static_cast<std::uint64_t>(itemsize)));
  }
  nb::dict made;
  made["data"] =
      nb::make_tuple(reinterpret_cast<std::uintptr_t>(own.described.data), own.readonly());
  made["shape"] = self.object().attr("shape");
  made["strides"] = nb::tuple(strides);
  made["typestr"] = typestr;
  made["version"] = 3;
  return made;
}

[[noreturn]] void refuse_array(const host_view& self, nb::handle, nb::handle) {
  detail::refuse(errc::dtype_unsupported, "dtype", "one that NumPy has a type string for",
                 nb::str(nb::object(self.object().attr("dtype"))).c_str(),
                 "copy the values with numpy(), or use __dlpack__");
}

}  // namespace

nb::object make_host_view(nb::handle_t<tensor> self) {
  check_process();
  python_reference kept(self.inc_ref().ptr());  // while other threads run
  const proved_tensor& own = ready_tensor(self).get();
  if (own.proof.usm_type() == sycl::usm::alloc::device) {
    detail::refuse(errc::usm_type_not_accepted, "data", "host USM or shared USM", "device USM",
                   "copy the values with numpy(), or to shared USM with from_dlpack(x, "
                   "usm_type=\"shared\")");
  }
  if (own.queue) {
    wait_for(*own.queue);
  }
  return nb::cast(host_view{std::move(kept)});
}

void register_host_view(guarded_module& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                {0, nullptr}};
  guarded_class<host_view>(
      module, "HostView", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
      nb::sig("@typing.final\nclass HostView(object)"),
      "A tensor's memory as an array of the host, without a copy; it keeps the "
      "memory alive.\n\n"
      "Made by `DLPackTensor.host_view`. A read-only tensor's view is "
      "read-only.")
      .def("__dlpack__", &export_capsule, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: typing.Any | None = None, "
                   "max_version: tuple[int, int] | None = None, "
                   "dl_device: tuple[int, int] | None = None, "
                   "copy: bool | None = None) -> typing.Any"),
           "Export as a capsule of kDLCPU, after waiting for the tensor's ``sycl_queue``.")
      .def(
          "__dlpack_device__",
          [](const host_view&) { return nb::make_tuple(static_cast<int>(kDLCPU), 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"), "`(1, 0)`: kDLCPU.")
      .def_prop_ro(
          "__array_interface__", &array_interface,
          nb::sig("def __array_interface__(self) -> dict[str, typing.Any]"),
          "NumPy's description of the memory; an AttributeError for a dtype that NumPy "
          "lacks.")
      .def("__array__", &refuse_array, nb::arg("dtype") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any | None = None, "
                   "copy: bool | None = None) -> numpy.typing.NDArray[typing.Any]"),
           "Refuse: NumPy comes here only if it lacks the dtype.");
}

}  // namespace usm_dlpack::python
