// SPDX-License-Identifier: Apache-2.0
//
// What OpenCL code has for tests: contexts, queues, sub-devices and USM that SYCL did not
// make, and the reference counts of all of them.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>

#include "usm_memory.hpp"

namespace usm_dlpack_test {

using detail::ask_opencl;

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

inline cl_uint references_of(cl_device_id device) {
  return ask_opencl<cl_uint>(device, CL_DEVICE_REFERENCE_COUNT);
}
inline cl_uint references_of(cl_context context) {
  return ask_opencl<cl_uint>(context, CL_CONTEXT_REFERENCE_COUNT);
}
inline cl_uint references_of(cl_command_queue queue) {
  return ask_opencl<cl_uint>(queue, CL_QUEUE_REFERENCE_COUNT);
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

/// The first of a root device's parts, made by OpenCL code, which keeps it: the SYCL runtime
/// keeps those that it is shown.
inline cl_device_id native_sub_device(int device_id = 0) {
  const std::array<cl_device_partition_property, 3> equally{CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  std::array<cl_device_id, 64> parts{};
  cl_uint count = 0;
  expect_success(opencl_function<decltype(clCreateSubDevices)>("clCreateSubDevices")(
      native_root(device_id), equally.data(), 64, parts.data(), &count));
  return parts[0];
}

inline opencl_handle<cl_context> native_context(const std::vector<cl_device_id>& devices) {
  cl_int status = CL_SUCCESS;
  const cl_context made = opencl_function<decltype(clCreateContext)>("clCreateContext")(
      nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr,
      &status);
  expect_success(status);
  return opencl_handle<cl_context>(made);
}

inline constexpr cl_command_queue_properties in_order = 0;
inline constexpr cl_command_queue_properties out_of_order =
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

inline opencl_handle<cl_command_queue> native_queue(cl_context context, cl_device_id device,
                                                    cl_command_queue_properties order) {
  const std::array<cl_queue_properties, 3> properties{CL_QUEUE_PROPERTIES, order, 0};
  cl_int status = CL_SUCCESS;
  const cl_command_queue made = opencl_function<decltype(clCreateCommandQueueWithProperties)>(
      "clCreateCommandQueueWithProperties")(context, device, properties.data(), &status);
  expect_success(status);
  return opencl_handle<cl_command_queue>(made);
}

/// Device USM that OpenCL code allocated: 24 floats.
inline std::shared_ptr<float> native_floats(cl_context context, cl_device_id device) {
  const auto find_extension =
      opencl_function<decltype(clGetExtensionFunctionAddressForPlatform)>(
          "clGetExtensionFunctionAddressForPlatform");
  const auto platform = ask_opencl<cl_platform_id>(device, CL_DEVICE_PLATFORM);
  const auto allocate = reinterpret_cast<clDeviceMemAllocINTEL_fn>(
      find_extension(platform, "clDeviceMemAllocINTEL"));
  const auto free = reinterpret_cast<clMemBlockingFreeINTEL_fn>(
      find_extension(platform, "clMemBlockingFreeINTEL"));
  cl_int status = CL_SUCCESS;
  void* const made = allocate(context, device, nullptr, 24 * sizeof(float), 0, &status);
  expect_success(status);
  return {static_cast<float*>(made), [=](float* memory) { free(context, memory); }};
}

/// In a process where ONEAPI_DEVICE_SELECTOR hides one of two devices: that one's handle.
inline cl_device_id hidden_native_root() {
  std::array<cl_platform_id, 2> platforms{};
  expect_success(opencl_function<decltype(clGetPlatformIDs)>("clGetPlatformIDs")(
      2, platforms.data(), nullptr));
  for (const cl_platform_id platform : platforms) {
    cl_device_id device = nullptr;
    expect_success(opencl_function<decltype(clGetDeviceIDs)>("clGetDeviceIDs")(
        platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    if (device != native_root()) {
      return device;
    }
  }
  throw std::runtime_error("no device is hidden");
}

}  // namespace usm_dlpack_test
