// SPDX-License-Identifier: Apache-2.0
//
// The kernels: SYCL free functions over views. The SYCL runtime compiles this file.
#include "views.hpp"

#include <sycl/sycl.hpp>

#include <cstdint>

namespace syclexp = sycl::ext::oneapi::experimental;
using namespace grid_kernels;

namespace {

using std::int64_t;

template <int Dimensions>
sycl::nd_item<Dimensions> work_item() {
  return sycl::ext::oneapi::this_work_item::get_nd_item<Dimensions>();
}

/// Index of this work-item in one dimension, with the sign that extents have.
template <int Dimensions>
int64_t place(int dimension) {
  return static_cast<int64_t>(work_item<Dimensions>().get_global_id(dimension));
}

/// The five-point stencil, with zeros around x.
template <class Element>
void laplacian_here(const input<Element, 2>& x, const output<Element, 2>& out) {
  const int64_t rows = x.extent(0), columns = x.extent(1);
  const int64_t i = place<2>(0), j = place<2>(1);
  if (j >= columns) {
    return;
  }
  const Element above = i > 0 ? x(i - 1, j) : 0, below = i + 1 < rows ? x(i + 1, j) : 0;
  const Element left = j > 0 ? x(i, j - 1) : 0, right = j + 1 < columns ? x(i, j + 1) : 0;
  out(i, j) = above + below + left + right - 4 * x(i, j);
}

}  // namespace

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
    (syclexp::nd_range_kernel<2>)) void laplacian_float32(input<float, 2> x,
                                                          output<float, 2> out) {
  laplacian_here(x, out);
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
    (syclexp::nd_range_kernel<2>)) void laplacian_int32(input<std::int32_t, 2> x,
                                                        output<std::int32_t, 2> out) {
  laplacian_here(x, out);
}

// For one work-group: each work-item adds every n-th element, and the group adds their sums.
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>)) void total_float32(
    input<float, 1> x, scalar<float> sum) {
  const auto group = work_item<1>().get_group();
  float mine = 0;
  for (int64_t i = place<1>(0); i < x.extent(0); i += group.get_local_linear_range()) {
    mine += x(i);
  }
  const float all = sycl::reduce_over_group(group, mine, sycl::plus<float>());
  if (group.leader()) {
    sum() = all;
  }
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(
    (syclexp::nd_range_kernel<3>)) void matmul_float32(input<float, 3> a, input<float, 3> b,
                                                       output<float, 3> product) {
  const int64_t batch = place<3>(0), row = place<3>(1), column = place<3>(2);
  if (column >= product.extent(2)) {
    return;
  }
  float sum = 0;
  for (int64_t k = 0; k < a.extent(2); ++k) {
    sum += a(batch, row, k) * b(batch, k, column);
  }
  product(batch, row, column) = sum;
}
