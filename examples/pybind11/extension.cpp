// SPDX-License-Identifier: Apache-2.0
//
// Functions that Python calls with arrays of any library: usm_dlpack takes them as views,
// proves them, and refuses what does not fit.
#include <pybind11/pybind11.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/pybind11.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>

namespace py = pybind11;
using namespace py::literals;

namespace {

using usm_dlpack::owned_view;

template <class Element, int Rank>
using device_array =
    usm_dlpack::device_mdspan<Kokkos::mdspan<Element, Kokkos::dextents<std::int64_t, Rank>>>;

// The SYCL runtime builds it when it is first needed, in a few seconds.
const usm_dlpack::kernel_source kernels(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void row_sums(const float* x, float* out, long rows, long columns) {
    const long i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
    if (i >= rows) { return; }
    out[i] = 0;
    for (long j = 0; j < columns; ++j) { out[i] += x[i * columns + j]; }
  }
)");

// To a new array on the queue of x.
usm_dlpack::usm_array<device_array<float, 1>> row_sums(
    const owned_view<device_array<const float, 2>>& x) {
  const auto shape = x.view().extents();
  usm_dlpack::usm_array<device_array<float, 1>> out(
      x.queue(), Kokkos::dextents<std::int64_t, 1>(shape.extent(0)));
  kernels.launch(x.queue(), "row_sums", shape.extent(0), x, out, shape.extent(0),
                 shape.extent(1));
  return out;
}  // the kernel is done: the caller may write to x at once

}  // namespace

PYBIND11_MODULE(row_sums, m) {
  usm_dlpack::load_package();
  // Other Python threads run while the kernel is built.
  m.def("row_sums", &row_sums, "x"_a, py::call_guard<py::gil_scoped_release>());
}
