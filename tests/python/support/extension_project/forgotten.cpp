// SPDX-License-Identifier: Apache-2.0
//
// An extension whose author forgot three things: usm_dlpack/pybind11.hpp (unless it is
// included by -include), pybind11/stl.h, and load_package().
#include <pybind11/pybind11.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <vector>

using view = usm_dlpack::device_mdspan<Kokkos::mdspan<float, Kokkos::dextents<int, 1>>>;

PYBIND11_MODULE(forgotten, m) {
  m.def("size", [](const view& x) { return x.size(); });
  m.def("sizes", [](const std::vector<view>& x) { return x.size(); });
  m.def("device", [] { return sycl::device().get_info<sycl::info::device::name>(); });
}
