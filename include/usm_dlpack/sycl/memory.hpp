// SPDX-License-Identifier: Apache-2.0
//
// What the runtime and the backend know of a pointer in a default context: USM kind, true
// device, base and size. On OpenCL and Level Zero the backend itself is asked: the SYCL query
// of the device names the first device of an OpenCL context whatever the memory's
// (unified-runtime, adapters/opencl/usm.cpp), and none tells base and size. The backend's
// library is found at run time; nothing is linked.
#pragma once

#include <usm_dlpack/sycl/devices.hpp>

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

/// How it is known that every byte of a view is memory of one owner.
enum class bounds_proof {
  allocation,  ///< exactly: the backend told base and size of SYCL's allocation
  chunk,       ///< libumf told where the chunk of SYCL's pool ends: the allocation, rounded up
  block,       ///< the driver's allocation, in which other allocations of SYCL's may be
  both_ends,   ///< the first and the last byte of the view are USM of one kind and device
  none,        ///< the tensor is empty: there was nothing to prove
};

namespace detail {

/// What is known of the allocation that a pointer points into.
struct allocation {
  sycl::usm::alloc kind = sycl::usm::alloc::unknown;  ///< unknown: no USM of the context
  std::int32_t device_id = -1;       ///< id of the true device's root; -1: cannot be told
  std::optional<sycl::device> part;  ///< the true device, where it is a sub-device
  device_proof device = device_proof::none;
};

/// The bytes within which a view must lie; none (size 0) where the backend does not tell.
struct allocation_range {
  std::uintptr_t base = 0;
  std::size_t size = 0;
  bounds_proof proof = bounds_proof::both_ends;
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

/// @pre `native.query` is there
inline void find_by_level_zero(const void* pointer, const level_zero_platform& native,
                               allocation& found) {
  ze_device_handle_t device = nullptr;
  found.kind = native.find(pointer, device);
  if ((found.kind != sycl::usm::alloc::device && found.kind != sycl::usm::alloc::shared) ||
      device == nullptr) {
    return;
  }
  found.device_id = native.find_id(device);
  found.device = device_proof::backend;
  if (found.device_id < 0) {
    found.part = sycl::make_device<sycl::backend::ext_oneapi_level_zero>(device);
    found.device_id = device_id(*found.part);
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
  if (!entry.has_usm) {
    return;
  }
  ask_runtime("data", [&] {
    if (entry.opencl.query != nullptr) {
      find_by_opencl(pointer, entry.opencl, found);
    } else if (entry.level_zero.query != nullptr) {
      find_by_level_zero(pointer, entry.level_zero, found);
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

/// Memory as the platform of a default context knows it.
struct located_memory {
  const platform_entry* entry;
  allocation found;

  /// The id of its root device; for host USM, which has none, the first of its platform.
  std::int32_t device_id() const noexcept {
    return found.device_id < 0 ? entry->first_device : found.device_id;
  }
};

/// The platforms that know a pointer, in the order of their device ids. They may be several:
/// each driver lays out the addresses of its devices by itself. One that fails knows nothing.
inline std::vector<located_memory> locate(const void* pointer) {
  std::vector<located_memory> places;
  for (const platform_entry& entry : device_table::get().platforms) {
    if (!entry.context) {
      continue;
    }
    try {
      const allocation found = find_allocation(pointer, entry);
      if (found.kind != sycl::usm::alloc::unknown) {
        places.push_back({&entry, found});
      }
    } catch (const conversion_error&) {
    }
  }
  return places;
}

/// The ids of the root devices of some memory, as a message lists them.
inline std::string ids_of(const std::vector<located_memory>& places) {
  std::string ids;
  for (const located_memory& place : places) {
    ids.append(ids.empty() ? "" : " or ").append(std::to_string(place.device_id()));
  }
  return ids;
}

/// What bounds a view of USM of a Level Zero platform.
/// @param range the driver's allocation
inline allocation_range bounds_by_level_zero(std::uintptr_t lowest, sycl::usm::alloc kind,
                                             const platform_entry& entry,
                                             allocation_range range) noexcept {
  using answer = memory_pools::answer;
  const memory_pools& pools = entry.level_zero.pools;
  range.proof = bounds_proof::block;
  // A chunk has one byte less behind its first; what was not cut has one size everywhere. Not
  // asked at `lowest`: far within a large chunk libumf answers as if it were not cut.
  const std::size_t skipped = range.size > 1 ? 1 : 0;
  std::size_t usable = 0;
  const answer told = pools.ask(range.base + skipped, usable);
  if ((told == answer::told && usable == range.size) ||
      (told == answer::none && is_unpooled(entry.level_zero, *entry.context, kind))) {
    range.proof = bounds_proof::allocation;
  }
  const bool inside = lowest >= range.base && lowest - range.base < range.size;
  if (told != answer::told || range.proof == bounds_proof::allocation || !inside) {
    return range;
  }
  const std::size_t left = range.size - (lowest - range.base);
  if (usable == range.size - skipped) {  // one chunk is the whole block
    usable = left;
  } else if (pools.ask(lowest, usable) != answer::told || usable == 0 || usable > left) {
    return range;
  }
  return {lowest, usable, bounds_proof::chunk};
}

/// What bounds a view that begins at `first` and whose lowest byte is at `lowest`.
/// @param kind of the memory at `first`
inline allocation_range find_range(const void* first, std::uintptr_t lowest,
                                   sycl::usm::alloc kind,
                                   const platform_entry& entry) noexcept {
  allocation_range range;
  if (entry.opencl.query != nullptr && entry.opencl.get_range(first, range.base, range.size)) {
    range.proof = bounds_proof::allocation;
    return range;
  }
  if (entry.level_zero.query != nullptr &&
      entry.level_zero.get_range(first, range.base, range.size)) {
    return bounds_by_level_zero(lowest, kind, entry, range);
  }
  return {};
}

}  // namespace detail
}  // namespace usm_dlpack
