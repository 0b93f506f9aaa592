// SPDX-License-Identifier: Apache-2.0
//
// Finds the allocation that a pointer points into, in one default context or in all of them,
// by the queries of backends/. A new query of a driver belongs in backends/.
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
  return with_runtime_errors("data", [&] {
    allocation memory = entry.queries->find(pointer);
    if (memory.part && memory.device_id < 0) {
      memory.device_id = device_id(*memory.part);
      if (root_device(memory.device_id) == *memory.part) {
        memory.part.reset();
      }
    }
    if (entry.device_count == 1 && memory.kind != sycl::usm::alloc::unknown) {
      memory.device_id = memory.device_id < 0 ? entry.first_device : memory.device_id;
      if (memory.device == device_proof::runtime) {
        memory.device = device_proof::only_device;
      }
    }
    return memory;
  });
}

/// Memory as the default context of a platform knows it.
struct located_memory {
  const platform_entry* entry;
  allocation memory;

  /// The id of the memory's root device; for host USM, of the platform's first device.
  std::int32_t device_id() const noexcept {
    return memory.device_id < 0 ? entry->first_device : memory.device_id;
  }

  /// Whether the memory is on a root device. Host USM is on every one of its platform.
  bool is_on(std::int32_t id) const noexcept {
    return memory.device_id < 0 ? entry == &device_table::get().platform_of(id)
                                : memory.device_id == id;
  }
};

/// The memory at a pointer, one entry for each platform that knows it, by device id. There may
/// be several, because drivers choose addresses independently. Omits platforms whose query
/// fails.
inline std::vector<located_memory> locate(const void* pointer) {
  std::vector<located_memory> candidates;
  for (const platform_entry& entry : device_table::get().platforms) {
    if (!entry.context) {
      continue;
    }
    try {
      const allocation memory = find_allocation(pointer, entry);
      if (memory.kind != sycl::usm::alloc::unknown) {
        candidates.push_back({&entry, memory});
      }
    } catch (const conversion_error&) {
    }
  }
  return candidates;
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

inline std::string ids_of(const std::vector<located_memory>& candidates) {
  std::string ids;
  for (const located_memory& candidate : candidates) {
    add_alternative(ids, std::to_string(candidate.device_id()));
  }
  return ids;
}

}  // namespace detail
}  // namespace usm_dlpack
