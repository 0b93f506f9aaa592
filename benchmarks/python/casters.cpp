// SPDX-License-Identifier: Apache-2.0
//
// The same functions three times: with the casters of nanobind.hpp, with nb::ndarray, and with
// the capsule code that an author writes by hand. They take an array, a queue, or return an
// array, and do nothing else.
#include "casters.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind/views.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

namespace nb = nanobind;

namespace {

using view = Kokkos::mdspan<float, Kokkos::dextents<std::int64_t, 2>>;
using device_view = usm_dlpack::device_mdspan<view>;
/// A parameter that refuses each float array once before it takes it.
using integers_or_floats = std::variant<
    usm_dlpack::device_mdspan<Kokkos::mdspan<std::int32_t, Kokkos::dextents<std::int64_t, 2>>>,
    device_view>;
using ndarray = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::oneapi>;

/// What capsule code by hand does at the least: it asks for the capsule, looks for a tensor of
/// its dtype, rank and device type, and reads shape and strides. Nothing of the memory is
/// proved.
view view_by_hand(nb::handle array, nb::object& capsule) {
  nb::dict keywords;
  keywords["max_version"] = nb::make_tuple(1, 3);
  capsule = array.attr("__dlpack__")(**keywords);
  auto* managed = static_cast<DLManagedTensorVersioned*>(
      PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
  if (managed == nullptr) {
    throw nb::python_error();
  }
  const DLTensor& tensor = managed->dl_tensor;
  if (managed->version.major != 1 || (managed->flags & 1U) != 0 ||
      tensor.device.device_type != kDLOneAPI || tensor.ndim != 2 ||
      tensor.dtype.code != kDLFloat || tensor.dtype.bits != 32 || tensor.dtype.lanes != 1 ||
      tensor.strides[1] != 1 || tensor.strides[0] != tensor.shape[1]) {
    throw std::invalid_argument("not a compact float32 matrix in USM");
  }
  return view(
      reinterpret_cast<float*>(static_cast<unsigned char*>(tensor.data) + tensor.byte_offset),
      tensor.shape[0], tensor.shape[1]);
}

/// The same, and the proof: USM of the default context, of the kind and the device that are
/// named.
view proved_by_hand(nb::handle array, nb::object& capsule) {
  const view made = view_by_hand(array, capsule);
  auto* managed = static_cast<DLManagedTensorVersioned*>(
      PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
  const auto devices = sycl::device::get_devices();
  const auto& device =
      devices.at(static_cast<std::size_t>(managed->dl_tensor.device.device_id));
  const sycl::context context = device.get_platform().khr_get_default_context();
  const float* last = made.data_handle() + made.size() - 1;
  for (const float* end : {static_cast<const float*>(made.data_handle()), last}) {
    if (sycl::get_pointer_type(end, context) != sycl::usm::alloc::device ||
        sycl::get_pointer_device(end, context) != device) {
      throw std::invalid_argument("not device USM of that device");
    }
  }
  return made;
}

sycl::queue* queue_by_hand(nb::handle queue, nb::object& capsule) {
  capsule = queue.attr("_get_capsule")();
  return static_cast<sycl::queue*>(PyCapsule_GetPointer(capsule.ptr(), "SyclQueueRef"));
}

/// Memory that the arrays of all three ways share, so that no allocation is measured.
struct memory {
  explicit memory(sycl::queue on)
      : queue(std::move(on)),
        data(sycl::malloc_device<float>(16, queue),
             [q = queue](float* p) { sycl::free(p, q); }) {}
  sycl::queue queue;
  std::shared_ptr<float> data;
};

/// An array by hand: a managed tensor, its arrays, its deleter, and a capsule of it.
struct made_by_hand {
  DLManagedTensorVersioned managed{};
  std::int64_t shape[2] = {4, 4};
  std::int64_t strides[2] = {4, 1};
  std::shared_ptr<float> owner;
};

nb::object capsule_by_hand(const memory& m) {
  auto* made = new made_by_hand;
  made->owner = m.data;
  made->managed.version = {1, 3};
  made->managed.manager_ctx = made;
  made->managed.deleter = [](DLManagedTensorVersioned* self) {
    delete static_cast<made_by_hand*>(self->manager_ctx);
  };
  made->managed.dl_tensor = {m.data.get(), {kDLOneAPI, 0}, 2, {kDLFloat, 32, 1},
                             made->shape,  made->strides,  0};
  return nb::steal(PyCapsule_New(&made->managed, "dltensor_versioned", [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
      auto* owned = static_cast<DLManagedTensorVersioned*>(
          PyCapsule_GetPointer(capsule, "dltensor_versioned"));
      owned->deleter(owned);
    }
  }));
}

usm_dlpack::owned_view<view> owned(const memory& m) {
  return {view(m.data.get(), 4, 4), m.queue, m.data};
}

}  // namespace

void register_casters(nb::module_& module) {
  module.def("view", [](view x) { return x.extent(0); });
  module.def("device_view", [](device_view x) { return x.extent(0); });
  module.def("variants",
             [](const std::vector<integers_or_floats>& arrays) { return arrays.size(); });
  module.def("ndarray", [](const ndarray& x) { return x.shape(0); });
  module.def("view_by_hand", [](nb::handle x) {
    nb::object capsule;
    return view_by_hand(x, capsule).extent(0);
  });
  module.def("proved_by_hand", [](nb::handle x) {
    nb::object capsule;
    return proved_by_hand(x, capsule).extent(0);
  });
  module.def("queue", [](const sycl::queue& q) { return q.is_in_order(); });
  module.def("queue_by_hand", [](nb::handle q) {
    nb::object capsule;
    return queue_by_hand(q, capsule)->is_in_order();
  });
  nb::class_<memory>(module, "Memory").def(nb::init<sycl::queue>());
  module.def("make_owned", &owned);
  module.def("make_ndarray", [](const memory& m) {
    const std::size_t shape[2] = {4, 4};
    const nb::capsule owner(new std::shared_ptr<float>(m.data), [](void* p) noexcept {
      delete static_cast<std::shared_ptr<float>*>(p);
    });
    return nb::ndarray<float, nb::array_api, nb::device::oneapi>(m.data.get(), 2, shape,
                                                                 owner);
  });
  module.def("make_capsule", &capsule_by_hand);
}
