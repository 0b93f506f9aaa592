// SPDX-License-Identifier: Apache-2.0
//
// A program that launches a kernel of OpenCL C, and one of SPIR-V from the file of its
// argument, as docs/how-to/opencl.md shows. A test of test_guide_examples.py builds and runs
// it.
#include <CL/cl.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

template <class Element>
using shared_row =
    usm_dlpack::shared_mdspan<Kokkos::mdspan<Element, Kokkos::dextents<std::int64_t, 1>>>;

sycl::kernel opencl_kernel(const sycl::queue& queue, const std::string& code, const char* name,
                           bool is_spirv) {
  const auto context = usm_dlpack::opencl_context(queue.get_context());
  const auto device = usm_dlpack::opencl_device(queue.get_device());
  const char* text = code.data();
  const std::size_t size = code.size();
  const cl_program program =
      is_spirv ? clCreateProgramWithIL(context.get(), text, size, nullptr)
               : clCreateProgramWithSource(context.get(), 1, &text, &size, nullptr);
  const cl_device_id id = device.get();
  clBuildProgram(program, 1, &id, "", nullptr, nullptr);
  const cl_kernel kernel = clCreateKernel(program, name, nullptr);
  if (kernel == nullptr) {  // clGetProgramBuildInfo has the compiler's log
    throw std::runtime_error("no kernel " + std::string(name));
  }
  const auto result = sycl::make_kernel<sycl::backend::opencl>(kernel, queue.get_context());
  clReleaseKernel(kernel);  // `result` has a reference of its own
  clReleaseProgram(program);
  return result;
}

void scale(sycl::queue& queue, shared_row<float> x, float factor) {
  static const sycl::kernel kernel = opencl_kernel(
      queue, "kernel void scale(global float* x, float f) { x[get_global_id(0)] *= f; }",
      "scale", false);
  usm_dlpack::ordered_section work(queue, x);  // checks the queue; waits at the end
  queue.submit([&](sycl::handler& handler) {
    handler.set_args(x.data_handle(), factor);  // in the order of its parameters
    handler.parallel_for(sycl::range<1>(x.size()), kernel);
  });
}

int main(int, char** arguments) {
  sycl::queue queue(usm_dlpack::root_device(0));
  const usm_dlpack::usm_array<shared_row<float>> x(queue,
                                                   Kokkos::dextents<std::int64_t, 1>(3));
  for (int i = 0; i < 3; ++i) {
    x.data()[i] = static_cast<float>(i);
  }
  scale(queue, x.view(), 2);
  std::printf("%g %g %g\n", x.data()[0], x.data()[1], x.data()[2]);

  std::ifstream file(arguments[1], std::ios::binary);
  const std::string spirv(std::istreambuf_iterator<char>(file), {});
  const sycl::kernel add = opencl_kernel(queue, spirv, "add", true);
  const usm_dlpack::usm_array<shared_row<int>> a(queue, Kokkos::dextents<std::int64_t, 1>(2));
  a.data()[0] = a.data()[1] = 21;
  {
    usm_dlpack::ordered_section work(queue, a);
    queue.submit([&](sycl::handler& handler) {
      handler.set_args(a.data(), a.data(), a.data());
      handler.parallel_for(sycl::range<1>(2), add);
    });
  }
  std::printf("%d %d\n", a.data()[0], a.data()[1]);
}
