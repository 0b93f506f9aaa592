// SPDX-License-Identifier: Apache-2.0
//
// What OpenCL reports about memory and SYCL does not: base and size, and the true device. SYCL
// reports the first device of the context (unified-runtime, adapters/opencl/usm.cpp).
#pragma once

#include <usm_dlpack/sycl/backends/backend.hpp>

#include <CL/cl_ext.h>  // after SYCL, which sets the OpenCL version

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace usm_dlpack::detail {

/// The OpenCL objects of a platform's default context, and its USM query. The handles are
/// retained for the life of the process.
struct opencl_queries final : backend_queries {
  using backend_queries::backend_queries;

  cl_context native = nullptr;                ///< the default context
  clGetMemAllocInfoINTEL_fn query = nullptr;  ///< null if the platform has no USM
  std::vector<cl_device_id> devices;          ///< by device id; null for other platforms
  decltype(&clGetDeviceInfo) device_info = nullptr;

  /// @returns null if the functions of OpenCL are not found
  static std::shared_ptr<const backend_queries> make(const queried_platform& platform) {
    constexpr const char* library = "libOpenCL.so.1";
    const auto queries = std::make_shared<opencl_queries>(platform.context);
    decltype(&clGetExtensionFunctionAddressForPlatform) find_extension = nullptr;
    if (!find_function(library, "clGetExtensionFunctionAddressForPlatform", find_extension) ||
        !find_function(library, "clGetDeviceInfo", queries->device_info)) {
      return nullptr;
    }
    queries->native = sycl::get_native<sycl::backend::opencl>(platform.context);
    queries->devices = native_devices<sycl::backend::opencl>(platform.roots);
    queries->query = reinterpret_cast<clGetMemAllocInfoINTEL_fn>(
        find_extension(sycl::get_native<sycl::backend::opencl>(platform.sycl_platform),
                       "clGetMemAllocInfoINTEL"));
    return queries;
  }

  sycl::usm::alloc find_kind(const void* pointer) const noexcept override {
    cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
    if (!get(pointer, CL_MEM_ALLOC_TYPE_INTEL, type)) {
      return sycl::usm::alloc::unknown;
    }
    switch (type) {
      case CL_MEM_TYPE_HOST_INTEL: return sycl::usm::alloc::host;
      case CL_MEM_TYPE_DEVICE_INTEL: return sycl::usm::alloc::device;
      case CL_MEM_TYPE_SHARED_INTEL: return sycl::usm::alloc::shared;
      default: return sycl::usm::alloc::unknown;
    }
  }

  allocation find(const void* pointer) const override {
    allocation memory;
    memory.kind = find_kind(pointer);
    const cl_device_id device = find_device(pointer, memory.kind);
    memory.device_id = find_root(device);
    if (memory.device_id >= 0) {
      memory.device = device_proof::backend;
      if (!is_root(device, memory.device_id)) {
        memory.part = sycl::make_device<sycl::backend::opencl>(device);
      }
    }
    return memory;
  }

  allocation_range range(const tensor_structure& view,
                         const allocation& /*memory*/) const noexcept override {
    const auto* first = reinterpret_cast<const void*>(view.first);
    void* base = nullptr;
    std::size_t size = 0;
    if (!get(first, CL_MEM_ALLOC_BASE_PTR_INTEL, base) ||
        !get(first, CL_MEM_ALLOC_SIZE_INTEL, size)) {
      return {};
    }
    return {reinterpret_cast<std::uintptr_t>(base), size, bounds_proof::allocation};
  }

 private:
  /// The device that memory of a kind is on; null for host USM, for which some drivers report
  /// a device all the same (PoCL 7.1: the first of the context).
  cl_device_id find_device(const void* pointer, sycl::usm::alloc kind) const noexcept {
    cl_device_id device = nullptr;
    if (is_on_one_device(kind)) {
      get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device);
    }
    return device;
  }

  /// The id of a device's root, or -1.
  std::int32_t find_root(cl_device_id device) const noexcept {
    std::int32_t id = -1;
    while (device != nullptr && (id = find_id(devices, device)) < 0) {
      cl_device_id parent = nullptr;
      device_info(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, nullptr);
      device = parent;
    }
    return id;
  }

  /// Whether a device is the root device with this id.
  bool is_root(cl_device_id device, std::int32_t id) const noexcept {
    return devices[static_cast<std::size_t>(id)] == device;
  }

  template <class Value>
  bool get(const void* pointer, cl_mem_info_intel what, Value& value) const noexcept {
    return query != nullptr &&
           query(native, pointer, what, sizeof(Value), &value, nullptr) == CL_SUCCESS;
  }
};

}  // namespace usm_dlpack::detail
