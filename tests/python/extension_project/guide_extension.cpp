// SPDX-License-Identifier: Apache-2.0
//
// The extension that docs/how-to/nanobind.md shows, after its first lines.

// [begin extension]
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

// One dimension of float32 in device USM. That is what Python's arguments are proved to be.
using vector = usm_dlpack::device_mdspan<Kokkos::mdspan<float, Kokkos::dextents<int, 1>>>;

NB_MODULE(guide_extension, m) {
  usm_dlpack::load_package();
  m.def("fill", [](sycl::queue& queue, vector x, float value) {
    usm_dlpack::check_queue(queue, x);
    return queue.fill(x.data_handle(), value, x.size());  // a dpctl.SyclEvent
  });
  usm_dlpack::explain_refusals(m, "fill");  // after the last overload
  m.def("filled", [](sycl::queue& queue, int size, float value) {
    usm_dlpack::usm_array<vector> made(queue, Kokkos::dextents<int, 1>(size));
    queue.fill(made.data(), value, static_cast<std::size_t>(size));
    return made;  // a usm_dlpack.DLPackTensor that knows the queue; no copy
  });
}
// [end extension]
