// SPDX-License-Identifier: Apache-2.0
//
// Python's `empty`: a tensor in new memory.
#include "arguments/dtypes.hpp"
#include "arguments/places.hpp"
#include "memory/copies.hpp"
#include "module.hpp"
#include "tensor/tensor.hpp"

namespace usm_dlpack::python {
namespace {

/// The root device and the queue that `device` names. None means the device that SYCL's
/// default selector chooses, as in dpctl.
place choose_place(nb::handle device) {
  if (!device.is_none()) {
    place chosen = read_place(device);
    if (chosen.queue) {
      detail::check_default_context(*chosen.queue, "device");
    }
    return chosen;
  }
  if (detail::device_table::get().devices.empty()) {
    detail::working_device(0);  // refuses: there is no device
  }
  return {device_id(detail::with_runtime_errors("device", [] { return sycl::device(); })),
          std::nullopt};
}

/// Python's `empty`, whose docstring describes the arguments.
nb::object empty(nb::handle shape, nb::handle dtype, nb::handle device, nb::handle usm_type) {
  std::vector<std::int64_t> extents = read_integers("shape", shape, 0);
  if (find_index(dtype).is_valid()) {
    refuse_argument(nb::exception_type::type_error, "dtype",
                    "one of NumPy's or DLPack's dtypes", text_of(dtype),
                    "pass a shape of several extents as a tuple");
  }
  const element_type element = read_dtype(dtype);
  const auto kind = read_choice("usm_type", usm_type, {"host", "device", "shared"});
  constexpr sycl::usm::alloc kinds[] = {sycl::usm::alloc::host, sycl::usm::alloc::device,
                                        sycl::usm::alloc::shared};
  check_process();
  place where = choose_place(device);
  DLTensor wanted{};
  wanted.device = {kDLOneAPI, where.device_id};
  wanted.ndim = static_cast<std::int32_t>(extents.size());
  wanted.shape = extents.data();
  wanted.dtype = element.dtype;
  copy_memory memory;
  try {
    memory = allocate_usm(wanted, element.storage, kinds[kind.value_or(1)]);
  } catch (const conversion_error& refusal) {
    if (refusal.code() != errc::out_of_range) {
      throw;
    }
    detail::refuse(refusal.code(), "shape", "a tensor that the address space can hold",
                   text_of(shape), "make a smaller tensor");
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError,
                    ("shape: expected elements for which there is memory, found " +
                     text_of(shape) + "; free some, or make a smaller tensor")
                        .c_str());
    throw nb::python_error();
  }
  return make_tensor(prove(to_managed_tensor(wanted, std::move(memory), element.flags()),
                           std::move(where.queue)));
}

}  // namespace

void register_empty(guarded_module& module) {
  module.def("empty", &empty, nb::arg("shape").none(), nb::arg("dtype").none(),
             nb::arg("device").none(), nb::arg("usm_type").none(),
             nb::sig("def empty(shape: typing.Any, dtype: typing.Any, device: typing.Any, "
                     "usm_type: typing.Any) -> DLPackTensor"));
}

}  // namespace usm_dlpack::python
