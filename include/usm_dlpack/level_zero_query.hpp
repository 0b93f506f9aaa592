// SPDX-License-Identifier: Apache-2.0
//
// What Level Zero itself knows of a pointer (kind, true device, base and size), and what
// libumf knows, from whose pools SYCL cuts most memory there. Both libraries are found at run
// time, and their functions declared by hand, so that neither is needed to build or to run.
#pragma once

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl_config.hpp>

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace usm_dlpack::detail {

/// `ze_memory_allocation_properties_t`. Source: Level Zero specification 1.0, "Memory".
struct level_zero_properties {
  std::uint32_t stype = 0x17;  // ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
  void* next = nullptr;
  std::uint32_t type = 0;  // ZE_MEMORY_TYPE_UNKNOWN
  std::uint64_t id = 0;
  std::uint64_t page_size = 0;
};

constexpr sycl::usm::alloc kind_of(const level_zero_properties& properties) noexcept {
  switch (properties.type) {
    case 1: return sycl::usm::alloc::host;
    case 2: return sycl::usm::alloc::device;
    case 3: return sycl::usm::alloc::shared;
    default: return sycl::usm::alloc::unknown;
  }
}

/// libumf, if the SYCL runtime has loaded it.
struct memory_pools {
  int (*pool_of)(const void*, void**) = nullptr;  ///< `umfPoolByPtr`
  int (*usable_size)(void*, const void*,
                     std::size_t*) = nullptr;  ///< `umfPoolMallocUsableSize`

  enum class answer { told, not_of_a_pool, none };

  /// Asks for the bytes from an address to the end of the chunk that a pool cut there. Of an
  /// allocation that was not cut, that is its whole size, whatever the address within it.
  answer ask(std::uintptr_t address, std::size_t& bytes) const noexcept {
    if (usable_size == nullptr) {
      return answer::none;
    }
    const auto* pointer = reinterpret_cast<const void*>(address);
    void* pool = nullptr;
    if (pool_of(pointer, &pool) != 0 || pool == nullptr) {
      return answer::not_of_a_pool;
    }
    return usable_size(pool, pointer, &bytes) == 0 ? answer::told : answer::none;
  }
};

inline memory_pools find_memory_pools() noexcept {
  memory_pools found;
  if (void* const library = dlopen("libumf.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    found.pool_of = reinterpret_cast<decltype(found.pool_of)>(dlsym(library, "umfPoolByPtr"));
    found.usable_size = reinterpret_cast<decltype(found.usable_size)>(
        dlsym(library, "umfPoolMallocUsableSize"));
  }
  return found.pool_of == nullptr ? memory_pools{} : found;
}

/// By USM kind, whether SYCL cuts several allocations from one of the driver's.
struct pooled_kinds {
  enum state : int { not_asked, pooled, unpooled };
  std::array<std::atomic<int>, 4> states{};
};

/// The Level Zero objects behind a platform's default context, and the queries that SYCL
/// lacks.
struct level_zero_platform {
  // Each returns a ze_result_t, 0 for success.
  using properties_query = int (*)(ze_context_handle_t, const void*, level_zero_properties*,
                                   ze_device_handle_t*);
  using range_query = int (*)(ze_context_handle_t, const void*, void**, std::size_t*);

  ze_context_handle_t context = nullptr;
  properties_query query = nullptr;  ///< null: not Level Zero
  range_query range = nullptr;       ///< null: not Level Zero
  std::vector<ze_device_handle_t>
      devices;  ///< by device id; null for those of other platforms
  memory_pools pools;
  std::shared_ptr<pooled_kinds> kinds;

  /// Kind and true device of USM; the kind is unknown for all else. The driver answers for the
  /// memory of each context of its platform.
  sycl::usm::alloc find(const void* pointer, ze_device_handle_t& device) const noexcept {
    level_zero_properties properties;
    const bool answered = query(context, pointer, &properties, &device) == 0;
    return answered ? kind_of(properties) : sycl::usm::alloc::unknown;
  }

  /// Base address and size in bytes of the driver's allocation, from which SYCL may have cut
  /// many; false if unknown.
  bool get_range(const void* pointer, std::uintptr_t& base, std::size_t& size) const noexcept {
    void* start = nullptr;
    const bool known = range(context, pointer, &start, &size) == 0;
    base = reinterpret_cast<std::uintptr_t>(start);
    return known;
  }

  /// The id of a root device, or -1.
  std::int32_t find_id(ze_device_handle_t device) const noexcept {
    for (std::size_t id = 0; id < devices.size(); ++id) {
      if (device != nullptr && devices[id] == device) {
        return static_cast<std::int32_t>(id);
      }
    }
    return -1;
  }
};

/// Whether SYCL gives each of the driver's allocations of a kind to one caller whole. Found
/// out once, with one byte: a pool takes the smallest allocations first. Of shared USM it
/// takes what the device only reads.
/// @param context the default one
inline bool is_unpooled(const level_zero_platform& native, const sycl::context& context,
                        sycl::usm::alloc kind) noexcept {
  std::atomic<int>& state = native.kinds->states[static_cast<std::size_t>(kind)];
  if (state == pooled_kinds::not_asked) {
    bool whole = false;
    try {
      sycl::property_list properties;
      if (kind == sycl::usm::alloc::shared) {
        properties = {sycl::ext::oneapi::property::usm::device_read_only()};
      }
      void* const byte =
          sycl::malloc(1, context.get_devices().front(), context, kind, properties);
      std::uintptr_t base = 0;
      std::size_t size = 0;
      whole = byte != nullptr && native.get_range(byte, base, size) && size == 1;
      sycl::free(byte, context);
    } catch (const sycl::exception&) {  // no such memory: nothing is claimed of it
    }
    state = whole ? pooled_kinds::unpooled : pooled_kinds::pooled;
  }
  return state == pooled_kinds::unpooled;
}

/// Finds the queries through the libraries that the SYCL runtime has loaded already.
/// @param context its default context
/// @param roots its root devices that work, by device id; null for all others
/// @pre the context is of the backend ext_oneapi_level_zero
inline level_zero_platform make_level_zero_platform(
    const sycl::context& context, const std::vector<const sycl::device*>& roots) {
  level_zero_platform made;
  void* const loader = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (loader == nullptr) {
    return made;
  }
  const auto query = reinterpret_cast<level_zero_platform::properties_query>(
      dlsym(loader, "zeMemGetAllocProperties"));
  made.range = reinterpret_cast<level_zero_platform::range_query>(
      dlsym(loader, "zeMemGetAddressRange"));
  if (query == nullptr || made.range == nullptr) {
    return {};
  }
  made.context = sycl::get_native<sycl::backend::ext_oneapi_level_zero>(context);
  made.devices = std::vector<ze_device_handle_t>(roots.size());
  for (std::size_t id = 0; id < roots.size(); ++id) {
    if (roots[id] != nullptr) {
      made.devices[id] = sycl::get_native<sycl::backend::ext_oneapi_level_zero>(*roots[id]);
    }
  }
  made.pools = find_memory_pools();
  made.kinds = std::make_shared<pooled_kinds>();
  made.query = query;
  return made;
}

}  // namespace usm_dlpack::detail
