// SPDX-License-Identifier: Apache-2.0
//
// A kernel, and the functions that Python calls: usm_dlpack takes arrays of any library as
// views, proves them, and refuses what does not fit.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstddef>
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

// The SYCL runtime builds it when it is first needed, in a few seconds.
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

void launch(sycl::queue& queue, grid<const float> x, grid<float> out) {
  const sycl::kernel kernel = kernels.find(queue, "laplacian");
  const auto rows = static_cast<std::size_t>(x.extent(0));
  const auto columns = (static_cast<std::size_t>(x.extent(1)) + 63) / 64 * 64;
  queue.submit([&](sycl::handler& handler) {
    handler.set_args(x.data_handle(), out.data_handle(), x.extent(0), x.extent(1));
    handler.parallel_for(sycl::nd_range<2>({rows, columns}, {1, 64}), kernel);
  });
}

// Into an array.
void laplacian_into(sycl::queue& queue, const owned_view<grid<const float>>& x,
                    const owned_view<grid<float>>& out) {
  usm_dlpack::ordered_section work(queue, x, out);  // behind the work on x and out
  const auto from = x.view();
  const auto to = out.view();
  if (from.extents() != to.extents()) {
    throw std::invalid_argument("laplacian: out: expected the shape of x, found another");
  }
  if (from.data_handle() < to.data_handle() + to.size() &&
      to.data_handle() < from.data_handle() + from.size()) {  // the kernel reads neighbours
    throw std::invalid_argument("laplacian: out: expected memory apart from x, found shared");
  }
  launch(queue, from, to);
}  // `work` waits: the caller may use out at once

// To a new array on the queue of x.
usm_dlpack::usm_array<grid<float>> laplacian(const owned_view<grid<const float>>& x) {
  if (!x.queue()) {
    throw std::invalid_argument(
        "laplacian: x: expected an array with a sycl_queue, found one without; pass "
        "usm_dlpack.from_dlpack(x, device=dpctl.SyclQueue())");
  }
  sycl::queue queue = *x.queue();
  usm_dlpack::usm_array<grid<float>> out(queue, x.view().extents());
  usm_dlpack::ordered_section work(queue, x);
  launch(queue, x.view(), out.view());
  return out;
}  // `work` waits: the caller may write to x at once

}  // namespace

NB_MODULE(grid_kernels, m) {
  usm_dlpack::load_package();
  // Other Python threads run while the kernels are built.
  using unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def("laplacian", &laplacian_into, "queue"_a, "x"_a, "out"_a, unlocked());
  m.def("laplacian", &laplacian, "x"_a, unlocked());
}
