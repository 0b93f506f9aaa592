// SPDX-License-Identifier: Apache-2.0
//
// Finds the allocation that a pointer points into: in one default context, or in all of them.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/sycl/backends.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/devices.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

namespace detail {

/// Finds the allocation of a pointer in the default context of a platform.
/// @pre the platform has a context
inline allocation find_allocation(const void* pointer, const platform_entry& entry) {
  return ask_runtime("data", [&] {
    allocation found = entry.queries->find(pointer);
    if (found.part && found.device_id < 0) {
      found.device_id = device_id(*found.part);
      if (root_device(found.device_id) == *found.part) {
        found.part.reset();
      }
    }
    if (entry.device_count == 1 && found.kind != sycl::usm::alloc::unknown) {
      found.device_id = found.device_id < 0 ? entry.first_device : found.device_id;
      if (found.device == device_proof::runtime) {
        found.device = device_proof::only_device;
      }
    }
    return found;
  });
}

struct located_memory {
  const platform_entry* entry;
  allocation found;

  /// The id of the memory's root device; for host USM, of the platform's first device.
  std::int32_t device_id() const noexcept {
    return found.device_id < 0 ? entry->first_device : found.device_id;
  }

  /// Whether the memory is on a root device. Host USM is on every one of its platform.
  bool is_on(std::int32_t id) const noexcept {
    return found.device_id < 0 ? entry == &device_table::get().platform_of(id)
                               : found.device_id == id;
  }
};

/// The platforms that know a pointer, by device id. There may be several, because each driver
/// chooses its addresses by itself. Leaves out platforms whose query fails.
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

inline constexpr const char* allocation_remedy =
    "check that it is USM and not freed, and allocate it with a queue of the root device "
    "alone, as sycl::queue(device) or dpctl.SyclQueue(device)";

USM_DLPACK_COLD inline void refuse_pointer(const std::string& context,
                                           std::string_view remedy) {
  refuse(errc::pointer_unknown, "data", "USM of " + context, "an allocation unknown to it",
         remedy);
}

/// Adds a name to alternatives, for messages: `0 or 1`.
inline void add_alternative(std::string& names, const std::string& name) {
  names.append(names.empty() ? "" : " or ").append(name);
}

inline std::string ids_of(const std::vector<located_memory>& places) {
  std::string ids;
  for (const located_memory& place : places) {
    add_alternative(ids, std::to_string(place.device_id()));
  }
  return ids;
}

}  // namespace detail
}  // namespace usm_dlpack
