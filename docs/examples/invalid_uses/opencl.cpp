// SPDX-License-Identifier: Apache-2.0
//
// Invalid uses of OpenCL's handles. Those of `hidden_device` need a root device that
// ONEAPI_DEVICE_SELECTOR hides, those of `no_opencl` a process without OpenCL.
#include "print_refusals.hpp"

#include <dlfcn.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <array>
#include <vector>

namespace {

using vector = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
using usm_dlpack::default_context;
using usm_dlpack::opencl_context;
using usm_dlpack::opencl_device;
using usm_dlpack::root_device;
using usm_dlpack::to_dlpack_tensor;

/// A function of the OpenCL library, which a program that uses OpenCL itself would link.
template <class Function>
Function* opencl_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen("libOpenCL.so.1", RTLD_LAZY), name));
}

/// All devices that OpenCL has, whatever SYCL lists.
std::vector<cl_device_id> opencl_devices() {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint count = 0;
  opencl_function<decltype(clGetPlatformIDs)>("clGetPlatformIDs")(16, platforms.data(),
                                                                  &count);
  std::vector<cl_device_id> all;
  for (cl_uint i = 0; i < count; ++i) {
    cl_device_id device = nullptr;
    const auto get = opencl_function<decltype(clGetDeviceIDs)>("clGetDeviceIDs");
    if (get(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, nullptr) == CL_SUCCESS) {
      all.push_back(device);
    }
  }
  return all;
}

const use null_context("null_context", [] {
  std::array<float, 12> elements{};
  static_cast<void>(to_dlpack_tensor(vector(elements.data(), 12), cl_context{nullptr}));
});

const use memory_unknown_to_the_context("memory_unknown_to_the_context", [] {
  std::array<float, 12> elements{};
  const auto context = opencl_context(default_context(0));
  static_cast<void>(to_dlpack_tensor(vector(elements.data(), 12), context.get()));
});

const use null_memory("null_memory", [] {
  const auto context = opencl_context(default_context(0));
  static_cast<void>(to_dlpack_tensor(vector(nullptr, 12), context.get()));
});

const use context_of_your_own("context_of_your_own", [] {
  const sycl::context own(root_device(0));
  float* elements = sycl::malloc_device<float>(12, root_device(0), own);
  static_cast<void>(to_dlpack_tensor(vector(elements, 12), opencl_context(own).get()));
});

const use sub_device_that_the_memory_is_not_on("sub_device_that_the_memory_is_not_on", [] {
  constexpr auto equally = sycl::info::partition_property::partition_equally;
  const auto part = root_device(0).create_sub_devices<equally>(1).front();
  float* elements = sycl::malloc_device<float>(12, root_device(0), default_context(0));
  const vector view(elements, 12);
  const auto context = opencl_context(default_context(0));
  static_cast<void>(to_dlpack_tensor(view, context.get(), opencl_device(part).get()));
});

const in_process with_one_hidden("hidden_device");

const use device_that_sycl_does_not_list("device_that_sycl_does_not_list", [] {
  // ONEAPI_DEVICE_SELECTOR=opencl:1 hides the first of two OpenCL devices.
  const cl_device_id hidden = opencl_devices().front();
  usm_dlpack::device_id(sycl::make_device<sycl::backend::opencl>(hidden));
});

const in_process without("no_opencl");

const use handles_without_opencl("handles_without_opencl", [] {
  // ONEAPI_DEVICE_SELECTOR=level_zero:*: SYCL has loaded no OpenCL.
  static_cast<void>(usm_dlpack::sycl_device(nullptr));
});

}  // namespace
