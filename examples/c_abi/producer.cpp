// SPDX-License-Identifier: Apache-2.0
//
// The producer: has matrices in shared USM and hands them to the library, first lent, then
// given.
#include "matrix_sums.h"

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

namespace {

using extents = Kokkos::dextents<int, 2>;
using matrix = Kokkos::mdspan<float, extents>;
using shared_matrix = usm_dlpack::shared_mdspan<matrix>;

void print(const char* name, int status, double sum) {
  std::printf("%s: status %d, sum %g\n", name, status, sum);
}

void lend(sycl::queue& queue) {
  float* memory = sycl::malloc_shared<float>(24, queue);
  const std::vector<float> values(24, 1.5f);
  queue.copy(values.data(), memory, 24).wait();  // the library waits for nothing
  const matrix view(memory, 4, 6);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, queue);  // owns shape and strides
  const DLTensor tensor = wrapper.get();                           // points into the wrapper
  double sum = 0;
  const int status = sums_add(&tensor, &sum);
  print("lent", status, sum);
  sycl::free(memory, queue);  // after the call nobody uses it
}

const float* give(sycl::queue& queue) {
  usm_dlpack::usm_array<shared_matrix> array(queue, extents(4, 6));
  const float* memory = array.data();
  const std::vector<float> values(24, 2.0f);
  queue.copy(values.data(), array.data(), 24).wait();
  usm_dlpack::managed_tensor tensor = usm_dlpack::to_managed_tensor(std::move(array));
  if (sums_keep(tensor.get()) == SUMS_OK) {
    static_cast<void>(tensor.release());  // the library's now; otherwise it is freed here
  }
  return memory;
}

void give_and_read(sycl::queue& queue) {
  const float* memory = give(queue);
  double sum = 0;
  const int status = sums_add_kept(&sum);
  print("given", status, sum);
  sums_drop();
  const auto kind = sycl::get_pointer_type(memory, queue.get_context());
  std::printf("dropped: %s\n", kind == sycl::usm::alloc::unknown ? "freed" : "still there");
}

void be_refused(sycl::queue& queue) {
  using row = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
  usm_dlpack::usm_array<row> array(queue, Kokkos::dextents<int, 1>(6),
                                   sycl::usm::alloc::shared);
  usm_dlpack::managed_tensor tensor = usm_dlpack::to_managed_tensor(std::move(array));
  print("of rank 1", sums_keep(tensor.get()), 0);  // not taken: freed here
  try {
    float on_the_stack[24];
    static_cast<void>(usm_dlpack::to_dlpack_tensor(matrix(on_the_stack, 4, 6), queue));
  } catch (const usm_dlpack::conversion_error& error) {
    std::printf("%s\n", error.what());
  }
}

}  // namespace

int main() try {
  sycl::queue queue(usm_dlpack::root_device(0));
  lend(queue);
  give_and_read(queue);
  be_refused(queue);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
