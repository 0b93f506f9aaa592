// SPDX-License-Identifier: Apache-2.0
//
// An extension of a user: sums a column of a matrix that another library exports, in USM that
// the host can read.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>

namespace nb = nanobind;

namespace {

using matrix =
    Kokkos::mdspan<const float, Kokkos::dextents<std::int64_t, 2>, Kokkos::layout_stride>;

float sum_of_column(nb::capsule capsule, std::int64_t column) {
  const auto& tensor =
      *static_cast<const DLManagedTensorVersioned*>(capsule.data("dltensor_versioned"));
  usm_dlpack::validate(tensor, {{sycl::usm::alloc::shared, sycl::usm::alloc::host}});
  const auto view = usm_dlpack::to_mdspan<matrix>(tensor);
  float sum = 0;
  for (std::int64_t row = 0; row < view.extent(0); ++row) {
    sum += view.data_handle()[view.mapping()(row, column)];
  }
  return sum;
}

}  // namespace

NB_MODULE(columns_of_usm, module) { module.def("sum_of_column", &sum_of_column); }
