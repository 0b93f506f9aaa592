// SPDX-License-Identifier: Apache-2.0
//
// What the runtime and the backend know of a pointer in a default context: USM kind, true
// device, base and size. On OpenCL the backend itself is asked, because the SYCL query of the
// device names the first device of the context whatever the memory's (unified-runtime,
// adapters/opencl/usm.cpp) and none tells base and size. The backend's library is found at run
// time; nothing is linked.
#pragma once

#include <usm_dlpack/device.hpp>

#include <sycl/sycl.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

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

inline void find_by_opencl(const void* pointer, const opencl_platform& native,
                           allocation& found) {
  cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
  if (!native.get(pointer, CL_MEM_ALLOC_TYPE_INTEL, type)) {
    return;
  }
  found.kind = kind_of(type);
  cl_device_id device = nullptr;
  if ((found.kind != sycl::usm::alloc::device && found.kind != sycl::usm::alloc::shared) ||
      !native.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device)) {
    return;
  }
  found.device_id = root_id_of(native, device);
  found.device = found.device_id < 0 ? device_proof::none : device_proof::backend;
  if (found.device_id >= 0 &&
      native.devices[static_cast<std::size_t>(found.device_id)] != device) {
    found.part = sycl::make_device<sycl::backend::opencl>(device);
  }
}

inline void find_by_sycl(const void* pointer, const platform_entry& entry, allocation& found) {
  found.kind = sycl::get_pointer_type(pointer, *entry.context);
  if (found.kind != sycl::usm::alloc::device && found.kind != sycl::usm::alloc::shared) {
    return;
  }
  const sycl::device device = sycl::get_pointer_device(pointer, *entry.context);
  found.device_id = device_id(device);
  found.device = entry.device_count == 1 ? device_proof::only_device : device_proof::runtime;
  if (device != root_device(found.device_id)) {
    found.part = device;
  }
}

/// Asks what a pointer is in the default context of a platform. Nothing is remembered by
/// address: memory is freed and reused.
/// @pre `entry.context` is there
/// @throws conversion_error `runtime_error`
/// @param found what is known; nothing yet
inline void find_allocation(const void* pointer, const platform_entry& entry,
                            allocation& found) {
  if (entry.opencl.without_usm) {
    return;
  }
  ask_runtime("data", [&] {
    if (entry.opencl.query != nullptr) {
      find_by_opencl(pointer, entry.opencl, found);
    } else {
      find_by_sycl(pointer, entry, found);
    }
    if (found.kind != sycl::usm::alloc::unknown && found.device_id < 0 &&
        entry.device_count == 1) {
      found.device_id = entry.first_device;
    }
  });
}
inline allocation find_allocation(const void* pointer, const platform_entry& entry) {
  allocation found;
  find_allocation(pointer, entry, found);
  return found;
}

/// Where the memory of a pointer is: what an export needs of `allocation`.
struct memory_place {
  bool known = false;           ///< whether it is USM of the context
  std::int32_t device_id = -1;  ///< id of the true device's root; -1: cannot be told
};

inline memory_place place_of(const allocation& found) noexcept {
  return {found.kind != sycl::usm::alloc::unknown, found.device_id};
}

/// One query, which the backend answers with the device of device and shared USM: the id of
/// its root. -1 for all else (host USM, what the context does not know, a device without an
/// id).
/// @pre `native.query` is there
inline std::int32_t find_device_memory(const void* pointer,
                                       const opencl_platform& native) noexcept {
  cl_device_id device = nullptr;
  return native.get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device) ? root_id_of(native, device)
                                                                : -1;
}

/// The place of any USM, as `find_allocation` finds it. Out of line, because most memory that
/// is exchanged is found by one query.
[[gnu::noinline]] inline memory_place find_any_memory(const void* pointer,
                                                      const platform_entry& entry) {
  return place_of(find_allocation(pointer, entry));
}

/// The same, in one query instead of two for device and shared USM.
/// @pre `entry.context` is there
/// @throws conversion_error `runtime_error`
inline memory_place find_place(const void* pointer, const platform_entry& entry) {
  if (entry.opencl.query != nullptr) {
    if (const std::int32_t id = find_device_memory(pointer, entry.opencl); id >= 0) {
      return {true, id};
    }
  }
  return find_any_memory(pointer, entry);
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

/// A platform whose default context knows a pointer, or null, and where the memory is.
struct located_memory {
  const platform_entry* entry = nullptr;
  memory_place place;
};

/// Out of line, because it is rarely asked for.
[[gnu::cold, gnu::noinline]] inline located_memory locate_any_memory(const void* pointer) {
  allocation found;
  const platform_entry* entry = find_platform(pointer, found);
  return {entry, place_of(found)};
}

/// Asks the default context of each platform, by one query, until one names the device of the
/// memory. Host USM, which has none, is looked for after that.
/// @throws conversion_error `runtime_error`
inline located_memory locate(const void* pointer) {
  for (const platform_entry& entry : device_table::get().platforms) {
    if (entry.opencl.query != nullptr) {
      if (const std::int32_t id = find_device_memory(pointer, entry.opencl); id >= 0) {
        return {&entry, {true, id}};
      }
    } else if (entry.context) {
      if (const memory_place place = find_any_memory(pointer, entry); place.known) {
        return {&entry, place};
      }
    }
  }
  return locate_any_memory(pointer);
}

/// Base and size of the allocation that holds `pointer`, where the backend tells.
inline allocation_range find_range(const void* pointer, const platform_entry& entry) noexcept {
  allocation_range range;
  const bool known = (entry.opencl.query != nullptr &&
                      entry.opencl.get_range(pointer, range.base, range.size)) ||
                     (entry.level_zero.query != nullptr &&
                      entry.level_zero.get_range(pointer, range.base, range.size));
  return known ? range : allocation_range{};
}

}  // namespace detail
}  // namespace usm_dlpack
