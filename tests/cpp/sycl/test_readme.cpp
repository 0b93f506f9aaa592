// SPDX-License-Identifier: Apache-2.0
//
// The README's C++ example, run. The text between the two marks is the README's, which
// tests/python/test_readme.py compares.
#include <gtest/gtest.h>

// README begins
#include <mdspan/mdspan.hpp>  // or std::mdspan, or cuda::std::mdspan
#include <usm_dlpack/usm_dlpack.hpp>

// A consumer: after `validate`, the tensor's bytes are USM of the device that it names.
std::uint64_t bytes_of(const DLTensor& tensor) {
  const usm_dlpack::usm_allocation proof = usm_dlpack::validate(tensor);
  return proof.structure().nbytes;
}

// A producer: the wrapper owns shape and strides, the memory stays the caller's.
std::uint64_t round_trip(sycl::queue& queue) {
  float* memory = sycl::malloc_device<float>(24, queue);
  const Kokkos::mdspan<float, Kokkos::dextents<int, 2>> view(memory, 4, 6);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, queue);
  const std::uint64_t bytes = bytes_of(wrapper.get());
  sycl::free(memory, queue);
  return bytes;
}
// README ends

TEST(Readme, ExampleExportsAndImportsTheBytesOfTheView) {
  sycl::queue queue{usm_dlpack::root_device(0)};
  EXPECT_EQ(round_trip(queue), 96U);
}
