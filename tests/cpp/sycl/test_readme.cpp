// SPDX-License-Identifier: Apache-2.0
//
// The C++ example of README.md, run. The text between the two marks is the README's, which
// tests/python/test_readme.py compares.
#include <gtest/gtest.h>

// README begins
#include <mdspan/mdspan.hpp>  // or std::mdspan, or cuda::std::mdspan
#include <usm_dlpack/usm_dlpack.hpp>

using matrix = Kokkos::mdspan<float, Kokkos::dextents<int, 2>>;

// A consumer: after `validate`, the tensor's bytes are USM of the device that it names; after
// `to_mdspan`, they are also float32 in two dimensions of C order.
int rows_of(const DLTensor& tensor) {
  usm_dlpack::validate(tensor);
  const matrix view = usm_dlpack::to_mdspan<matrix>(tensor);
  return view.extent(0);
}

// A producer: the wrapper owns shape and strides, the memory stays the caller's.
int round_trip(sycl::queue& queue) {
  float* memory = sycl::malloc_device<float>(24, queue);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(matrix(memory, 4, 6), queue);
  const int rows = rows_of(wrapper.get());
  sycl::free(memory, queue);
  return rows;
}
// README ends

TEST(Readme, ExampleTakesBackTheViewThatItExports) {
  sycl::queue queue{usm_dlpack::root_device(0)};
  EXPECT_EQ(round_trip(queue), 4);
}
