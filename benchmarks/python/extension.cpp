// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark needs from C++: nanobind's own exchange of arrays, the backend's queries
// that an import makes, alone, and a consumer of the C exchange API.
#include "casters.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <chrono>
#include <cstdint>

namespace nb = nanobind;

namespace {

using array = nb::ndarray<nb::device::oneapi>;

/// Nanoseconds a call, of the fastest of some rounds.
template <class Function>
double fastest(Function&& function) {
  constexpr int rounds = 400;
  constexpr int calls = 300;
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) {
      function();
    }
    const std::chrono::duration<double, std::nano> spent =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / calls);
  }
  return best;
}

/// The queries without which nothing is proved: kind and device, base and size.
double time_queries(std::uintptr_t address, std::int32_t device_id) {
  const auto& entry = usm_dlpack::detail::device_table::get().platform_of(device_id);
  const auto* pointer = reinterpret_cast<const void*>(address);
  std::uintptr_t sum = 0;
  const double spent = fastest([&] {
    const auto found = usm_dlpack::detail::find_allocation(pointer, entry);
    sum += static_cast<std::uintptr_t>(found.device_id);
    sum += usm_dlpack::detail::find_range(pointer, address, found.kind, entry).base;
  });
  return sum == 0 ? -1 : spent;
}

const DLPackExchangeAPI& api_of(nb::handle object) {
  const nb::object capsule = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())))
                                 .attr("__dlpack_c_exchange_api__");
  void* table = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  if (table == nullptr) {
    throw nb::python_error();
  }
  return *static_cast<const DLPackExchangeAPI*>(table);
}

double time_borrow(nb::handle object) {
  const DLPackExchangeAPI& api = api_of(object);
  DLTensor borrowed{};
  return fastest([&] {
    if (api.dltensor_from_py_object_no_sync(object.ptr(), &borrowed) != 0) {
      throw nb::python_error();
    }
  });
}

double time_managed(nb::handle object) {
  const DLPackExchangeAPI& api = api_of(object);
  return fastest([&] {
    DLManagedTensorVersioned* managed = nullptr;
    if (api.managed_tensor_from_py_object_no_sync(object.ptr(), &managed) != 0) {
      throw nb::python_error();
    }
    managed->deleter(managed);
  });
}

}  // namespace

NB_MODULE(exchange_peers, module) {
  module.def("take", [](const array& taken) { return taken.ndim(); });
  module.def("keep", [](array kept) { return kept; }, nb::rv_policy::reference);
  module.def("nothing", [](nb::handle) {});
  module.def("time_queries", &time_queries);
  module.def("time_borrow", &time_borrow);
  module.def("time_managed", &time_managed);
  register_casters(module);
}
