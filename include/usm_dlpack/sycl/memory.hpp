// SPDX-License-Identifier: Apache-2.0
//
// Queries a pointer in a default context: USM kind, true device, base and size. OpenCL and
// Level Zero are queried directly: SYCL reports the first device of an OpenCL context for all
// its memory (unified-runtime, adapters/opencl/usm.cpp), and never base and size. The
// backend's library is found at run time, not linked.
#pragma once

#include <usm_dlpack/sycl/devices.hpp>

#include <optional>

namespace usm_dlpack {

/// The name of a USM kind, as in Python's `usm_type`.
constexpr const char* to_string(sycl::usm::alloc kind) noexcept {
  switch (kind) {
    case sycl::usm::alloc::host: return "host";
    case sycl::usm::alloc::device: return "device";
    case sycl::usm::alloc::shared: return "shared";
    case sycl::usm::alloc::unknown: break;
  }
  return "unknown";
}

/// How the root device of the memory is known.
enum class device_proof {
  backend,      ///< the backend reports it
  only_device,  ///< the context has no other root device
  runtime,      ///< SYCL reports it, possibly wrong among several root devices
  none,         ///< host USM or no memory: there is no single device
};

/// How far it is known that a view lies in one allocation.
enum class bounds_proof {
  allocation,  ///< exactly: the backend reports base and size of SYCL's allocation
  chunk,       ///< libumf reports the end of the pool's chunk: the allocation, rounded up
  block,       ///< the driver's allocation, which may hold several of SYCL's
  both_ends,   ///< the first and the last byte of the view are USM of one kind and device
  none,        ///< the tensor is empty
};

namespace detail {

/// The allocation that a pointer points into.
struct allocation {
  sycl::usm::alloc kind = sycl::usm::alloc::unknown;  ///< unknown if not USM of the context
  std::int32_t device_id = -1;                        ///< of the root device; -1 if unknown
  std::optional<sycl::device> part;                   ///< the true device, if a sub-device
  device_proof device = device_proof::none;
};

/// The bytes in which a view must lie; size 0 if the backend does not report them.
struct allocation_range {
  std::uintptr_t base = 0;
  std::size_t size = 0;
  bounds_proof proof = bounds_proof::both_ends;
};

inline void find_by_opencl(const void* pointer, const opencl_platform& native,
                           allocation& found) {
  cl_device_id device = nullptr;
  found.kind = native.find(pointer, device);
  found.device_id = root_id_of(native, device);
  found.device = found.device_id < 0 ? device_proof::none : device_proof::backend;
  if (found.device_id >= 0 &&
      native.devices[static_cast<std::size_t>(found.device_id)] != device) {
    found.part = sycl::make_device<sycl::backend::opencl>(device);
  }
}

/// @pre `native.query` is not null
inline void find_by_level_zero(const void* pointer, const level_zero_platform& native,
                               allocation& found) {
  ze_device_handle_t device = nullptr;
  found.kind = native.find(pointer, device);
  if ((found.kind != sycl::usm::alloc::device && found.kind != sycl::usm::alloc::shared) ||
      device == nullptr) {
    return;
  }
  found.device_id = find_id(native.devices, device);
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

/// Queries a pointer in the default context of a platform. Nothing is cached by address,
/// because memory is freed and reused.
/// @pre `entry.context` is not null
inline allocation find_allocation(const void* pointer, const platform_entry& entry) {
  allocation found;
  if (!entry.has_usm) {
    return found;
  }
  ask_runtime("data", [&] {
    if (entry.opencl.query != nullptr) {
      find_by_opencl(pointer, entry.opencl, found);
    } else if (entry.level_zero.query != nullptr) {
      find_by_level_zero(pointer, entry.level_zero, found);
    } else {
      find_by_sycl(pointer, entry, found);
    }
  });
  if (found.kind != sycl::usm::alloc::unknown && found.device_id < 0 &&
      entry.device_count == 1) {
    found.device_id = entry.first_device;
  }
  return found;
}

struct located_memory {
  const platform_entry* entry;
  allocation found;

  /// The id of its root device; for host USM, the first of its platform.
  std::int32_t device_id() const noexcept {
    return found.device_id < 0 ? entry->first_device : found.device_id;
  }

  /// Whether it is on a root device; host USM is on each of its platform.
  bool is_on(std::int32_t id) const noexcept {
    return found.device_id < 0 ? entry == &device_table::get().platform_of(id)
                               : found.device_id == id;
  }
};

/// The platforms that know a pointer, by device id. They may be several, because each driver
/// lays out its own addresses. Platforms that fail are left out.
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

inline std::string ids_of(const std::vector<located_memory>& places) {
  std::string ids;
  for (const located_memory& place : places) {
    ids.append(ids.empty() ? "" : " or ").append(std::to_string(place.device_id()));
  }
  return ids;
}

/// @param range the driver's allocation
inline allocation_range bounds_by_level_zero(std::uintptr_t lowest, sycl::usm::alloc kind,
                                             const platform_entry& entry,
                                             allocation_range range) noexcept {
  using answer = memory_pools::answer;
  const memory_pools& pools = entry.pools;
  range.proof = bounds_proof::block;
  // Asked at base + 1, libumf answers the size less 1 in a chunk, and the size of uncut
  // memory. Far inside a large chunk, at `lowest`, it answers as if uncut.
  const std::size_t skipped = range.size > 1 ? 1 : 0;
  std::size_t usable = 0;
  const answer told = pools.ask(range.base + skipped, usable);
  if ((told == answer::told && usable == range.size) ||
      (told == answer::none && is_unpooled(entry, kind))) {
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

/// The bounds of a view by its first element and its lowest byte.
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
