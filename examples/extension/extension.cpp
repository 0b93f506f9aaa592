// SPDX-License-Identifier: Apache-2.0
//
// A kernel, and the functions that Python calls: usm_dlpack takes arrays of any library as
// views, proves them, and refuses what does not fit.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using usm_dlpack::owned_view;

// What an array is proved to be: two dimensions in C order, in device USM.
template <class Element>
using grid =
    usm_dlpack::device_mdspan<Kokkos::mdspan<Element, Kokkos::dextents<std::int64_t, 2>>>;

// The SYCL runtime builds it when it is first launched, in a few seconds.
const usm_dlpack::kernel_source kernels(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  // The five-point stencil, with zeros around x.
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<2>))
  void laplacian(const float* x, float* out, long rows, long columns) {
    const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
    const long i = item.get_global_id(0), j = item.get_global_id(1);
    if (j >= columns) { return; }
    const float* here = x + i * columns + j;
    const float above = i > 0 ? here[-columns] : 0, below = i + 1 < rows ? here[columns] : 0;
    const float left = j > 0 ? here[-1] : 0, right = j + 1 < columns ? here[1] : 0;
    out[i * columns + j] = above + below + left + right - 4 * *here;
  }
)");

// Into an array.
void laplacian_into(sycl::queue& queue, const owned_view<grid<const float>>& x,
                    const owned_view<grid<float>>& out) {
  const auto from = x.view();
  const auto to = out.view();
  if (from.extents() != to.extents()) {
    throw std::invalid_argument("laplacian: out: expected the shape of x, found another");
  }
  if (from.data_handle() < to.data_handle() + to.size() &&
      to.data_handle() < from.data_handle() + from.size()) {  // the kernel reads neighbours
    throw std::invalid_argument("laplacian: out: expected memory apart from x, found shared");
  }
  kernels.launch(queue, "laplacian", from.extents(), x, out, from.extent(0), from.extent(1));
}

// To a new array on the queue of x.
usm_dlpack::usm_array<grid<float>> laplacian(const owned_view<grid<const float>>& x) {
  const auto extents = x.view().extents();
  usm_dlpack::usm_array<grid<float>> out(x.queue(), extents);
  kernels.launch(x.queue(), "laplacian", extents, x, out, extents.extent(0),
                 extents.extent(1));
  return out;
}

}  // namespace

NB_MODULE(grid_kernels, m) {
  usm_dlpack::load_package();
  // Other Python threads run while the kernels are built.
  using unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def("laplacian", &laplacian_into, "queue"_a, "x"_a, "out"_a, unlocked());
  m.def("laplacian", &laplacian, "x"_a, unlocked());
}
