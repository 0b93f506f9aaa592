// SPDX-License-Identifier: Apache-2.0
//
// Producer in OpenCL: the export protocol for USM that was allocated by clDeviceMemAllocINTEL
// and its like, by the handles that OpenCL code has. No handle is retained or released.
//
// A consumer finds the memory by a device id, hence only in the default context of a platform:
// allocate in the handle that `opencl_context(default_context(device_id))` gives.
#pragma once

#include <usm_dlpack/opencl_interop.hpp>
#include <usm_dlpack/usm_export.hpp>

#include <sycl/sycl.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// Where OpenCL code says that memory is.
struct opencl_place {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  bool of_any_device = false;  ///< the device is not given
};

/// The first rule of the export protocol: the context knows the pointer.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_opencl_pointer(const void* pointer) {
  if (pointer == nullptr) {
    refuse(errc::data_null, "data", "the address of USM", "null",
           "check that the allocation succeeded: clDeviceMemAllocINTEL and its like return "
           "null where it fails");
  }
  refuse_pointer("the given context",
                 "check that it is USM and not freed, and pass the context that it was "
                 "allocated in");
}

/// The second rule: the context is the default context of its platform.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_opencl_context(const void* pointer,
                                                                         bool empty,
                                                                         cl_context context) {
  const std::vector<cl_device_id> devices = devices_of(context);
  const opencl_root root = find_root(devices.front());
  std::string platform = "a platform in sycl::platform::get_platforms()";
  if (root.native != nullptr) {
    opencl_platform asked = *root.native;
    asked.context = context;
    cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
    if (asked.query != nullptr) {
      asked.get(pointer, CL_MEM_ALLOC_TYPE_INTEL, type);
    }
    allocation found;
    found.kind = kind_of(type);
    if (found.kind == sycl::usm::alloc::unknown && !empty) {
      refuse_opencl_pointer(pointer);
    }
    platform = "the platform \"" +
               ask_runtime("context",
                           [&] {
                             return device_table::get()
                                 .platform_of(root.id)
                                 .platform.template get_info<sycl::info::platform::name>();
                           }) +
               "\"";
  }
  refuse(errc::context_not_default, "context", "the default context of " + platform,
         "another one, of " + std::to_string(devices.size()) + " device(s)",
         "allocate in the cl_context of usm_dlpack::default_context, or copy to such memory");
}

inline std::string name_of(cl_device_id device, const opencl_root& root) {
  return (is_root(device, root) ? "device " : "a sub-device of device ") + digits(root.id);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_opencl_device(
    const std::string& expected, const std::string& found) {
  refuse(errc::device_mismatch, "device", expected, found,
         "pass the device that the memory was allocated for, or none");
}

/// The last rule: the device that is given is the one that the memory truly is on, or its
/// root. Host USM and what is unknown, for which OpenCL names no device, go with each device
/// of the platform.
inline void check_device(const void* pointer, const platform_entry& entry, cl_device_id device,
                         const opencl_root& root) {
  const opencl_platform& native = entry.opencl;
  cl_device_id true_device = nullptr;
  if (native.query != nullptr) {
    native.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, true_device);
  }
  const opencl_root true_root{&native, root_id_of(native, true_device)};
  if (true_root.id < 0) {
    if (&device_table::get().platform_of(root.id) != &entry) {
      refuse_opencl_device("a device of the given context", name_of(device, root));
    }
  } else if (device != true_device && !is_root(device, true_root)) {
    const std::string expected = name_of(true_device, true_root);
    const std::string named = name_of(device, root);
    refuse_opencl_device(expected + ", where the memory is",
                         named == expected ? "another " + named.substr(2) : named);
  }
}

/// Export protocol for memory of a given OpenCL context, and of a device of it.
inline DLDevice export_device(const void* pointer, bool empty, const opencl_place& place,
                              sycl::usm::alloc kind) {
  const platform_entry* entry = find_platform(place.context);
  if (entry == nullptr) {
    static_cast<void>(devices_of(place.context));
  }
  opencl_root root;
  if (!place.of_any_device) {
    root = root_with_id(place.device, "device");
  }
  if (entry == nullptr) {
    refuse_opencl_context(pointer, empty, place.context);
  }
  const memory_place found = find_place(pointer, *entry, kind);
  if (!found.known && !empty) {
    refuse_opencl_pointer(pointer);
  }
  if (!place.of_any_device) {
    check_device(pointer, *entry, place.device, root);
  }
  return export_device(found, *entry, root.id);
}

}  // namespace detail

/// Describes a view of USM of an OpenCL context as a DLTensor, by the export protocol, as
/// `to_dlpack_tensor(view, const sycl::context&)` does: the context knows the pointer, it is
/// the default context of its platform, and the id is that of the true device's root. Host USM
/// gets the id of the platform's first device. Neither retains nor releases the context.
///
/// A `cl_command_queue` is exported with as `sycl_queue(queue)`. May be called by several
/// threads at once, and waits for nothing.
/// @pre `context` is null or a valid handle
/// @throws conversion_error of the first broken rule (docs/checks.md, "opencl")
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] auto to_dlpack_tensor(const View& view, cl_context context)
    -> dlpack_tensor<View::rank()> {
  return detail::export_view(view, detail::opencl_place{context, nullptr, true});
}

/// The same, where the memory is on a given device: `device` is the one that it was allocated
/// for, or the root of that. Host USM, which is on no device, gets the id of its root; also an
/// empty view whose pointer is unknown. Neither retains nor releases the handles.
/// @pre each handle is null or valid
/// @throws conversion_error also `device_without_id`, `device_failed`, `device_mismatch`
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] auto to_dlpack_tensor(const View& view, cl_context context, cl_device_id device)
    -> dlpack_tensor<View::rank()> {
  return detail::export_view(view, detail::opencl_place{context, device, false});
}

}  // namespace usm_dlpack
