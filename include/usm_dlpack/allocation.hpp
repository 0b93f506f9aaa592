// SPDX-License-Identifier: Apache-2.0
//
// What the runtime and the backend know of a pointer in a default context: USM kind, true
// device, base and size. On OpenCL the backend itself is asked, because the SYCL query of the
// device names the first device of the context whatever the memory's (unified-runtime,
// adapters/opencl/usm.cpp) and none tells base and size. The backend's library is found at run
// time; nothing is linked.
#pragma once

#include <usm_dlpack/level_zero_query.hpp>
#include <usm_dlpack/opencl_query.hpp>

#include <sycl/sycl.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace usm_dlpack {

/// The name of a USM kind, as in `sycl::usm::alloc` and in Python's `usm_type`.
constexpr const char* to_string(sycl::usm::alloc kind) noexcept {
  switch (kind) {
    case sycl::usm::alloc::host: return "host";
    case sycl::usm::alloc::device: return "device";
    case sycl::usm::alloc::shared: return "shared";
    default: return "unknown";
  }
}

/// How it is known on which root device the memory is.
enum class device_proof {
  backend,      ///< the backend named it
  only_device,  ///< the context has no other root device
  runtime,  ///< the SYCL query named it, which with several root devices may be the wrong one
  none,     ///< host USM, or no memory: it belongs to no single device
};

namespace detail {

/// What is known of the allocation that a pointer points into.
struct allocation {
  sycl::usm::alloc kind = sycl::usm::alloc::unknown;  ///< unknown: no USM of the context
  std::int32_t device_id = -1;       ///< id of the true device's root; -1: cannot be told
  std::optional<sycl::device> part;  ///< the true device, where it is a sub-device
  device_proof device = device_proof::none;
};

/// Base and size in bytes of an allocation; size 0 where the backend does not tell.
struct allocation_range {
  std::uintptr_t base = 0;
  std::size_t size = 0;
};

/// The native side of the device table: one entry a platform, found once; `get_native` costs
/// microseconds. A platform whose handles cannot be had is asked through SYCL instead.
struct native_platform {
  opencl_platform opencl;
  level_zero_platform level_zero;
};

struct native_table {
  std::vector<native_platform> platforms;

  static const native_table& get() {
    static const native_table& table = *new native_table;
    return table;
  }

 private:
  native_table() : platforms(device_table::get().platforms.size()) {
    const device_table& devices = device_table::get();
    for (std::size_t place = 0; place < platforms.size(); ++place) {
      try {
        platforms[place] = {make_opencl_platform(devices, place),
                            make_level_zero_platform(devices.platforms[place])};
      } catch (const sycl::exception&) {  // as it was made: without handles
      }
    }
  }
};

inline const native_platform& native_of(const platform_entry& entry) {
  const auto place = &entry - device_table::get().platforms.data();
  return native_table::get().platforms[static_cast<std::size_t>(place)];
}

inline allocation find_by_opencl(const void* pointer, const opencl_platform& native) {
  allocation found;
  cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
  if (!native.get(pointer, CL_MEM_ALLOC_TYPE_INTEL, type)) {
    return found;
  }
  found.kind = kind_of(type);
  cl_device_id device = nullptr;
  if ((found.kind != sycl::usm::alloc::device && found.kind != sycl::usm::alloc::shared) ||
      !native.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device)) {
    return found;
  }
  found.device_id = root_id_of(native, device);
  found.device = found.device_id < 0 ? device_proof::none : device_proof::backend;
  if (found.device_id >= 0 &&
      native.devices[static_cast<std::size_t>(found.device_id)] != device) {
    found.part = sycl::make_device<sycl::backend::opencl>(device);
  }
  return found;
}

inline allocation find_by_sycl(const void* pointer, const platform_entry& entry) {
  allocation found;
  found.kind = sycl::get_pointer_type(pointer, *entry.context);
  if (found.kind != sycl::usm::alloc::device && found.kind != sycl::usm::alloc::shared) {
    return found;
  }
  const sycl::device device = sycl::get_pointer_device(pointer, *entry.context);
  found.device_id = device_id(device);
  found.device = entry.device_count == 1 ? device_proof::only_device : device_proof::runtime;
  if (device != root_device(found.device_id)) {
    found.part = device;
  }
  return found;
}

/// Asks what a pointer is in the default context of a platform. Nothing is remembered by
/// address: memory is freed and reused.
/// @pre `entry.context` is there
/// @throws conversion_error `runtime_error`
inline allocation find_allocation(const void* pointer, const platform_entry& entry) {
  const opencl_platform& native = native_of(entry).opencl;
  if (native.without_usm) {
    return {};
  }
  return ask_runtime("data", [&] {
    allocation found = native.query != nullptr ? find_by_opencl(pointer, native)
                                               : find_by_sycl(pointer, entry);
    if (found.kind != sycl::usm::alloc::unknown && found.device_id < 0 &&
        entry.device_count == 1) {
      found.device_id = entry.first_device;
    }
    return found;
  });
}

/// Where the memory of a pointer is: what an export needs of `allocation`.
struct memory_place {
  bool known = false;           ///< whether it is USM of the context
  std::int32_t device_id = -1;  ///< id of the true device's root; -1: cannot be told
};

inline memory_place place_of(const allocation& found) noexcept {
  return {found.kind != sycl::usm::alloc::unknown, found.device_id};
}

/// One query, which the backend answers with the device of device and shared USM. All else
/// (host USM, what the context does not know, a device without an id) is unknown here.
inline memory_place find_device_memory(const void* pointer,
                                       const opencl_platform& native) noexcept {
  cl_device_id device = nullptr;
  if (!native.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device) || device == nullptr) {
    return {};
  }
  const std::int32_t id = root_id_of(native, device);
  return {id >= 0, id};
}

/// The same as `find_allocation`, in one query instead of two for device and shared USM.
/// @pre `entry.context` is there
/// @throws conversion_error `runtime_error`
inline memory_place find_place(const void* pointer, const platform_entry& entry) {
  const opencl_platform& native = native_of(entry).opencl;
  if (native.query != nullptr) {
    if (const memory_place found = find_device_memory(pointer, native); found.known) {
      return found;
    }
  }
  return place_of(find_allocation(pointer, entry));
}

/// The first platform whose default context knows the pointer, and what it knows; or null.
inline const platform_entry* find_platform(const void* pointer, allocation& found) {
  for (const platform_entry& entry : device_table::get().platforms) {
    if (entry.context) {
      found = find_allocation(pointer, entry);
      if (found.kind != sycl::usm::alloc::unknown) {
        return &entry;
      }
    }
  }
  return nullptr;
}

/// The same for the place alone: one query for each platform until the one of device or shared
/// USM is found. Host USM is looked for after that.
inline const platform_entry* find_platform(const void* pointer, memory_place& found) {
  for (const platform_entry& entry : device_table::get().platforms) {
    if (entry.context) {
      const opencl_platform& native = native_of(entry).opencl;
      found = native.query != nullptr ? find_device_memory(pointer, native)
                                      : place_of(find_allocation(pointer, entry));
      if (found.known) {
        return &entry;
      }
    }
  }
  allocation other;
  const platform_entry* entry = find_platform(pointer, other);
  found = place_of(other);
  return entry;
}

/// Base and size of the allocation that holds `pointer`, where the backend tells.
inline allocation_range find_range(const void* pointer, const platform_entry& entry) noexcept {
  const native_platform& native = native_of(entry);
  allocation_range range;
  const bool known = (native.opencl.query != nullptr &&
                      native.opencl.get_range(pointer, range.base, range.size)) ||
                     (native.level_zero.query != nullptr &&
                      native.level_zero.get_range(pointer, range.base, range.size));
  return known ? range : allocation_range{};
}

}  // namespace detail
}  // namespace usm_dlpack
