// SPDX-License-Identifier: Apache-2.0
//
// The C++ example of README.md, run. The text between the two marks is the README's, which
// tests/python/test_readme.py compares.
#include <gtest/gtest.h>

// README begins
#include <mdspan/mdspan.hpp>  // or std::mdspan, or cuda::std::mdspan
#include <usm_dlpack/usm_dlpack.hpp>

using matrix = Kokkos::mdspan<float, Kokkos::dextents<int, 2>>;

int rows_of_exported(float* memory, sycl::queue& queue) {  // 24 floats of USM
  const auto wrapper = usm_dlpack::to_dlpack_tensor(matrix(memory, 4, 6), queue);
  const DLTensor tensor = wrapper.get();  // for a C ABI, while `wrapper` lives
  usm_dlpack::validate(tensor);           // what a consumer does first
  return usm_dlpack::to_mdspan<matrix>(tensor).extent(0);
}
// README ends

TEST(Readme, ExampleTakesBackTheViewThatItExports) {
  sycl::queue queue{usm_dlpack::root_device(0)};
  auto* const memory = sycl::malloc_device<float>(24, queue);
  EXPECT_EQ(rows_of_exported(memory, queue), 4);
  sycl::free(memory, queue);
}
