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

// An argument, and the queue that may still work on it.
using vector_argument = usm_dlpack::owned_view<vector>;

void submit(sycl::queue& queue, vector x, float value) {
  usm_dlpack::usm_array<usm_dlpack::host_mdspan<row>> values(queue, x.extents());
  std::fill_n(values.data(), x.size(), value);
  queue.memcpy(x.data_handle(), values.data(), values.size_bytes());
}  // waits for the copy, then frees `values`

NB_MODULE(guide_extension, m) {
  usm_dlpack::load_package();
  m.def("fill", [](sycl::queue& queue, const vector_argument& x, float value) {
    usm_dlpack::ordered_section work(queue, x);  // behind the work on `x`
    submit(queue, x.view(), value);
  });  // `work` waits: the caller may use `x` at once
  m.def("filled", [](sycl::queue& queue, int size, float value) {
    usm_dlpack::usm_array<vector> result(queue, Kokkos::dextents<int, 1>(size));
    submit(queue, result.view(), value);
    return result;  // a usm_dlpack.DLPackTensor with this queue; no copy
  });
}
// [end extension]
