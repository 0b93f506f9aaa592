// SPDX-License-Identifier: Apache-2.0
//
// What OpenCL itself knows of a pointer, because the SYCL query of the device names the first
// device of the context whatever the memory's (unified-runtime, adapters/opencl/usm.cpp), and
// none tells base and size. The library is found at run time; nothing is linked.
#pragma once

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl_config.hpp>

#include <CL/cl_ext.h>  // after SYCL's, which says which OpenCL it wants
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace usm_dlpack::detail {

/// The OpenCL objects behind a platform's default context, and the query that SYCL lacks. The
/// handles are retained for the life of the process, like the device table.
struct opencl_platform {
  cl_context context = nullptr;
  clGetMemAllocInfoINTEL_fn query = nullptr;  ///< null: not OpenCL, or an OpenCL without USM
  std::vector<cl_device_id> devices;  ///< by device id; null for those of other platforms
  std::size_t first_device = 0;       ///< the lowest id of those that are not null
  decltype(&clGetDeviceInfo) device_info = nullptr;

  /// Base address and size in bytes of the allocation that holds `pointer`; false if unknown.
  bool get_range(const void* pointer, std::uintptr_t& base, std::size_t& size) const noexcept {
    void* start = nullptr;
    const bool known = get(pointer, CL_MEM_ALLOC_BASE_PTR_INTEL, start) &&
                       get(pointer, CL_MEM_ALLOC_SIZE_INTEL, size);
    base = reinterpret_cast<std::uintptr_t>(start);
    return known;
  }

  template <class Value>
  bool get(const void* pointer, cl_mem_info_intel what, Value& value) const noexcept {
    return query(context, pointer, what, sizeof(Value), &value, nullptr) == CL_SUCCESS;
  }
};

/// Finds the query through the OpenCL loader that the SYCL runtime has loaded already.
/// @param context its default context
/// @param roots its root devices that work, by device id; null for all others
/// @pre the platform is of the backend opencl
inline opencl_platform make_opencl_platform(const sycl::platform& platform,
                                            const sycl::context& context,
                                            const std::vector<const sycl::device*>& roots) {
  opencl_platform made;
  void* loader = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (loader == nullptr) {
    return made;
  }
  const auto find = reinterpret_cast<decltype(&clGetExtensionFunctionAddressForPlatform)>(
      dlsym(loader, "clGetExtensionFunctionAddressForPlatform"));
  made.device_info =
      reinterpret_cast<decltype(&clGetDeviceInfo)>(dlsym(loader, "clGetDeviceInfo"));
  if (find == nullptr || made.device_info == nullptr) {
    return made;
  }
  made.context = sycl::get_native<sycl::backend::opencl>(context);
  made.devices = std::vector<cl_device_id>(roots.size());
  for (std::size_t id = roots.size(); id-- != 0;) {
    if (roots[id] != nullptr) {
      made.devices[id] = sycl::get_native<sycl::backend::opencl>(*roots[id]);
      made.first_device = id;
    }
  }
  const auto native = sycl::get_native<sycl::backend::opencl>(platform);
  made.query =
      reinterpret_cast<clGetMemAllocInfoINTEL_fn>(find(native, "clGetMemAllocInfoINTEL"));
  return made;
}

constexpr sycl::usm::alloc kind_of(cl_unified_shared_memory_type_intel type) noexcept {
  switch (type) {
    case CL_MEM_TYPE_HOST_INTEL: return sycl::usm::alloc::host;
    case CL_MEM_TYPE_DEVICE_INTEL: return sycl::usm::alloc::device;
    case CL_MEM_TYPE_SHARED_INTEL: return sycl::usm::alloc::shared;
    default: return sycl::usm::alloc::unknown;
  }
}

/// The id of the root that an OpenCL device is, or is a part of.
inline std::int32_t root_id_of(const opencl_platform& native, cl_device_id device) noexcept {
  while (device != nullptr) {
    for (std::size_t id = native.first_device; id < native.devices.size(); ++id) {
      if (native.devices[id] == device) {
        return static_cast<std::int32_t>(id);
      }
    }
    cl_device_id parent = nullptr;
    native.device_info(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, nullptr);
    device = parent;
  }
  return -1;
}

}  // namespace usm_dlpack::detail
