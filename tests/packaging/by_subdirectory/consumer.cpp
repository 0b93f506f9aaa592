// SPDX-License-Identifier: Apache-2.0
//
// Exports a view of shared USM, proves it, and takes it back; and the same by OpenCL's
// handles, which nothing is linked for.
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

int main() {
  using matrix = Kokkos::mdspan<float, Kokkos::dextents<int, 2>>;
  sycl::queue queue;
  float* memory = sycl::malloc_shared<float>(6, queue);
  const auto exported = usm_dlpack::to_dlpack_tensor(matrix(memory, 2, 3), queue);
  const bool shared =
      usm_dlpack::validate(exported.get()).usm_type() == sycl::usm::alloc::shared;
  const bool same = usm_dlpack::to_mdspan<matrix>(exported.get()).data_handle() == memory;
  const auto context = usm_dlpack::opencl_context(queue);
  const auto by_handles = usm_dlpack::to_dlpack_tensor(matrix(memory, 2, 3), context.get());
  const bool alike = by_handles.device().device_id == exported.device().device_id;
  sycl::free(memory, queue);
  return shared && same && alike ? 0 : 1;
}
