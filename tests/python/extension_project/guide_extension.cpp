// SPDX-License-Identifier: Apache-2.0
//
// The extension that docs/how-to/nanobind.md shows, after its first lines.

// [begin extension]
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <algorithm>

// One dimension of float32 in device USM: an argument from Python is proved to be that.
using row = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
using vector = usm_dlpack::device_mdspan<row>;

sycl::event fill(sycl::queue& queue, vector x, float value) {
  usm_dlpack::check_queue(queue, x);
  usm_dlpack::usm_array<usm_dlpack::host_mdspan<row>> values(queue, x.extents());
  std::fill_n(values.data(), x.size(), value);
  const sycl::event before = queue.ext_oneapi_submit_barrier();  // `queue` may be out of order
  return queue.memcpy(x.data_handle(), values.data(), values.size_bytes(), before);
}  // waits for the copy, then frees `values`

NB_MODULE(guide_extension, m) {
  usm_dlpack::load_package();
  m.def("fill", &fill);  // returns a dpctl.SyclEvent
  m.def("filled", [](sycl::queue& queue, int size, float value) {
    usm_dlpack::usm_array<vector> made(queue, Kokkos::dextents<int, 1>(size));
    fill(queue, made.view(), value);
    return made;  // a usm_dlpack.DLPackTensor that knows the queue; no copy
  });
  usm_dlpack::explain_refusals(m);  // at the end, for all functions
}
// [end extension]
