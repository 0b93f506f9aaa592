// SPDX-License-Identifier: Apache-2.0
//
// What OpenCL code has for tests: contexts, sub-devices and USM that SYCL did not make, and
// reference counts.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>

#include "usm_memory.hpp"

namespace usm_dlpack_test {

template <class Function>
Function* opencl_function(const char* name) {
  static_cast<void>(sycl::device::get_devices());  // loads the loader
  void* loader = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlsym(loader, name));
}

inline void expect_success(cl_int status) {
  if (status != CL_SUCCESS) {
    throw std::runtime_error("OpenCL failed with " + std::to_string(status));
  }
}

/// Queries a handle by the function of a name, such as `clGetDeviceInfo`.
template <class Value, class Native>
Value query_opencl(const char* name, Native handle, cl_uint what) {
  Value value{};
  const auto query =
      opencl_function<cl_int(Native, cl_uint, std::size_t, void*, std::size_t*)>(name);
  expect_success(query(handle, what, sizeof value, &value, nullptr));
  return value;
}

inline cl_uint references_of(cl_device_id device) {
  return query_opencl<cl_uint>("clGetDeviceInfo", device, CL_DEVICE_REFERENCE_COUNT);
}
inline cl_uint references_of(cl_context context) {
  return query_opencl<cl_uint>("clGetContextInfo", context, CL_CONTEXT_REFERENCE_COUNT);
}
inline cl_uint references_of(cl_command_queue queue) {
  return query_opencl<cl_uint>("clGetCommandQueueInfo", queue, CL_QUEUE_REFERENCE_COUNT);
}

/// The handle of a root device, which OpenCL does not count references of.
inline cl_device_id native_root(int device_id = 0) {
  return sycl::get_native<sycl::backend::opencl>(
      root_devices().at(static_cast<std::size_t>(device_id)));
}

/// The handle of the default context of a root device's platform: the device table's own.
inline cl_context native_default_context(int device_id = 0) {
  const auto* const queries = detail::opencl_of(device_table::get().platform_of(device_id));
  return queries == nullptr ? nullptr : queries->native;  // null of a broken device
}

using detail::opencl_reference;

inline opencl_reference<cl_context> native_context(const std::vector<cl_device_id>& devices) {
  cl_int status = CL_SUCCESS;
  const cl_context made = opencl_function<decltype(clCreateContext)>("clCreateContext")(
      nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr,
      &status);
  expect_success(status);
  return {made, opencl_function<decltype(clReleaseContext)>("clReleaseContext")};
}

/// Device USM that OpenCL code allocated: 24 floats.
inline std::shared_ptr<float> native_floats(cl_context context, cl_device_id device) {
  const auto find_extension =
      opencl_function<decltype(clGetExtensionFunctionAddressForPlatform)>(
          "clGetExtensionFunctionAddressForPlatform");
  const auto platform =
      query_opencl<cl_platform_id>("clGetDeviceInfo", device, CL_DEVICE_PLATFORM);
  const auto allocate = reinterpret_cast<clDeviceMemAllocINTEL_fn>(
      find_extension(platform, "clDeviceMemAllocINTEL"));
  const auto free = reinterpret_cast<clMemBlockingFreeINTEL_fn>(
      find_extension(platform, "clMemBlockingFreeINTEL"));
  cl_int status = CL_SUCCESS;
  void* const made = allocate(context, device, nullptr, 24 * sizeof(float), 0, &status);
  expect_success(status);
  return {static_cast<float*>(made), [=](float* memory) { free(context, memory); }};
}

}  // namespace usm_dlpack_test
