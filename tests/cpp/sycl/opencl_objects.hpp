// SPDX-License-Identifier: Apache-2.0
//
// What OpenCL code has for tests: contexts, queues, sub-devices and USM that SYCL did not
// make, and the reference counts of all of them.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>
#include <sycl/sycl.hpp>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "usm_memory.hpp"

namespace usm_dlpack_test {

/// A function of the OpenCL loader.
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

/// A count that an object of OpenCL tells of itself.
template <class Query, class Native>
cl_uint count_of(const char* query, Native object, cl_uint what) {
  cl_uint count = 0;
  expect_success(opencl_function<Query>(query)(object, what, sizeof count, &count, nullptr));
  return count;
}

inline cl_uint references_of(cl_device_id device) {
  return count_of<decltype(clGetDeviceInfo)>("clGetDeviceInfo", device,
                                             CL_DEVICE_REFERENCE_COUNT);
}
inline cl_uint references_of(cl_context context) {
  return count_of<decltype(clGetContextInfo)>("clGetContextInfo", context,
                                              CL_CONTEXT_REFERENCE_COUNT);
}
inline cl_uint references_of(cl_command_queue queue) {
  return count_of<decltype(clGetCommandQueueInfo)>("clGetCommandQueueInfo", queue,
                                                   CL_QUEUE_REFERENCE_COUNT);
}

/// The handle of a root device, which OpenCL does not count references of.
inline cl_device_id native_root(std::size_t device_id = 0) {
  return sycl::get_native<sycl::backend::opencl>(root_devices().at(device_id));
}

/// The handle of the default context of a root device's platform: the device table's own.
inline cl_context native_default_context(std::size_t device_id = 0) {
  const auto& table = usm_dlpack::detail::device_table::get();
  return table.platforms.at(table.devices.at(device_id).platform).opencl.context;
}

/// The first of a root device's parts, made by OpenCL code, which keeps it: the SYCL runtime
/// keeps those that it is shown.
inline cl_device_id native_sub_device(std::size_t device_id = 0) {
  const std::array<cl_device_partition_property, 3> equally{CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  std::array<cl_device_id, 64> parts{};
  cl_uint count = 0;
  expect_success(opencl_function<decltype(clCreateSubDevices)>("clCreateSubDevices")(
      native_root(device_id), equally.data(), 64, parts.data(), &count));
  return parts[0];
}

/// A context that OpenCL code made, of some devices; released when this goes.
class native_context {
 public:
  explicit native_context(const std::vector<cl_device_id>& devices) {
    cl_int status = CL_SUCCESS;
    handle_ = opencl_function<decltype(clCreateContext)>("clCreateContext")(
        nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr,
        &status);
    expect_success(status);
  }
  ~native_context() {
    opencl_function<decltype(clReleaseContext)>("clReleaseContext")(handle_);
  }
  native_context(const native_context&) = delete;
  native_context& operator=(const native_context&) = delete;
  cl_context get() const noexcept { return handle_; }

 private:
  cl_context handle_ = nullptr;
};

/// A queue that OpenCL code made; released when this goes.
class native_queue {
 public:
  native_queue(cl_context context, cl_device_id device, cl_command_queue_properties order) {
    const std::array<cl_queue_properties, 3> properties{CL_QUEUE_PROPERTIES, order, 0};
    cl_int status = CL_SUCCESS;
    handle_ = opencl_function<decltype(clCreateCommandQueueWithProperties)>(
        "clCreateCommandQueueWithProperties")(context, device, properties.data(), &status);
    expect_success(status);
  }
  ~native_queue() {
    opencl_function<decltype(clReleaseCommandQueue)>("clReleaseCommandQueue")(handle_);
  }
  native_queue(const native_queue&) = delete;
  native_queue& operator=(const native_queue&) = delete;
  cl_command_queue get() const noexcept { return handle_; }

 private:
  cl_command_queue handle_ = nullptr;
};

inline constexpr cl_command_queue_properties in_order = 0;
inline constexpr cl_command_queue_properties out_of_order =
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

/// USM that OpenCL code allocated; freed when this goes.
class native_memory {
 public:
  native_memory(sycl::usm::alloc kind, std::size_t size, cl_context context,
                cl_device_id device)
      : context_(context), device_(device) {
    cl_int status = CL_SUCCESS;
    if (kind == sycl::usm::alloc::host) {
      address_ = extension<clHostMemAllocINTEL_fn>("clHostMemAllocINTEL")(context, nullptr,
                                                                          size, 0, &status);
    } else if (kind == sycl::usm::alloc::device) {
      address_ = extension<clDeviceMemAllocINTEL_fn>("clDeviceMemAllocINTEL")(
          context, device, nullptr, size, 0, &status);
    } else {
      address_ = extension<clSharedMemAllocINTEL_fn>("clSharedMemAllocINTEL")(
          context, device, nullptr, size, 0, &status);
    }
    expect_success(status);
  }
  ~native_memory() {
    extension<clMemBlockingFreeINTEL_fn>("clMemBlockingFreeINTEL")(context_, address_);
  }
  native_memory(const native_memory&) = delete;
  native_memory& operator=(const native_memory&) = delete;

  template <class Element>
  Element* as() const noexcept {
    return static_cast<Element*>(address_);
  }

  /// Writes from the host, by OpenCL, and waits.
  void write(cl_command_queue queue, const void* from, std::size_t size) const {
    expect_success(extension<clEnqueueMemcpyINTEL_fn>("clEnqueueMemcpyINTEL")(
        queue, CL_TRUE, address_, from, size, 0, nullptr, nullptr));
  }

 private:
  template <class Function>
  Function extension(const char* name) const {
    cl_platform_id platform = nullptr;
    expect_success(opencl_function<decltype(clGetDeviceInfo)>("clGetDeviceInfo")(
        device_, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr));
    return reinterpret_cast<Function>(
        opencl_function<decltype(clGetExtensionFunctionAddressForPlatform)>(
            "clGetExtensionFunctionAddressForPlatform")(platform, name));
  }

  cl_context context_;
  cl_device_id device_;
  void* address_ = nullptr;
};

/// In a process where ONEAPI_DEVICE_SELECTOR hides one of two devices: that one's handle.
inline cl_device_id hidden_native_root() {
  std::array<cl_platform_id, 8> platforms{};
  cl_uint count = 0;
  expect_success(opencl_function<decltype(clGetPlatformIDs)>("clGetPlatformIDs")(
      8, platforms.data(), &count));
  for (std::size_t place = 0; place < count; ++place) {
    cl_device_id device = nullptr;
    expect_success(opencl_function<decltype(clGetDeviceIDs)>("clGetDeviceIDs")(
        platforms.at(place), CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    if (device != native_root()) {
      return device;
    }
  }
  throw std::runtime_error("no device is hidden");
}

}  // namespace usm_dlpack_test
