// SPDX-License-Identifier: Apache-2.0
//
// The extension of docs/how-to/cmake.md.
#include <nanobind/nanobind.h>

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

NB_MODULE(mine, m) {
  usm_dlpack::load_package();
  using vector = usm_dlpack::device_mdspan<Kokkos::mdspan<float, Kokkos::dextents<int, 1>>>;
  m.def("size", [](vector x) { return x.extent(0); });
}
