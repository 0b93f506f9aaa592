// SPDX-License-Identifier: Apache-2.0
//
// Exports a view of no elements by OpenCL's handles, which nothing is linked for.
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

int main() {
  const Kokkos::mdspan<float, Kokkos::extents<int, 0>> empty;
  const auto context = usm_dlpack::opencl_context(sycl::queue());
  const auto exported = usm_dlpack::to_dlpack_tensor(empty, context.get());
  return usm_dlpack::validate(exported.get()).device_id();
}
