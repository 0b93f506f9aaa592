// SPDX-License-Identifier: Apache-2.0
//
// What docs/how-to/nanobind.md shows of functions and classes that both bindings share.
#pragma once

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace guide {

using row = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
using vector = usm_dlpack::device_mdspan<row>;
using vector_argument = usm_dlpack::owned_view<vector>;

const usm_dlpack::kernel_source scales(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  template <class Element>
  void scale(Element* x, Element factor, long size) {
    const long i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
    if (i < size) { x[i] *= factor; }
  }

  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void scale_float(float* x, float factor, long size) { scale(x, factor, size); }
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void scale_double(double* x, double factor, long size) { scale(x, factor, size); }
)");

const usm_dlpack::kernel_source axpys(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  template <class Element> void axpy(Element a, const Element* x, Element* y, long size) {
    const long i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
    if (i < size) { y[i] += a * x[i]; }
  }

  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void axpy_float(float a, const float* x, float* y, long size) { axpy(a, x, y, size); }
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void axpy_double(double a, const double* x, double* y, long size) { axpy(a, x, y, size); }
)");

template <class Element>
bool axpy_if(const char* kernel, double a, const usm_dlpack::any_view& x,
             const usm_dlpack::any_view& y) {
  using extents = Kokkos::dextents<long, 1>;
  if (!usm_dlpack::same_data_type(x.dtype(), usm_dlpack::data_type_v<Element>)) {
    return false;
  }
  const auto from = x.as<Kokkos::mdspan<const Element, extents>>("x");
  const auto to = y.as<Kokkos::mdspan<Element, extents>>("y");  // refused if of another dtype
  if (from.extents() != to.extents()) {
    throw std::invalid_argument("axpy: y: expected the size of x, found another");
  }
  usm_dlpack::ordered_section work(y.queue(), x, y);  // the views have no queue
  axpys.launch(work, kernel, to.extents(), Element(a), from, to, to.extent(0));
  return true;
}

void axpy(double a, const usm_dlpack::any_view& x, const usm_dlpack::any_view& y) {
  if (!axpy_if<float>("axpy_float", a, x, y) && !axpy_if<double>("axpy_double", a, x, y)) {
    throw std::invalid_argument("axpy: x: expected float32 or float64, found " +
                                usm_dlpack::to_string(x.dtype()) + "; convert the array");
  }
}

auto facts(const usm_dlpack::any_view& x) {
  const DLDataType dtype = x.dtype();  // float32: .code is kDLFloat, .bits 32, .lanes 1
  const std::vector<std::int64_t> shape = x.shape();
  const std::vector<std::int64_t> strides = x.strides();  // in elements
  const void* const first = x.data();
  return std::make_tuple(int{dtype.code}, shape, strides,
                         reinterpret_cast<std::uintptr_t>(first));
}

}  // namespace guide
