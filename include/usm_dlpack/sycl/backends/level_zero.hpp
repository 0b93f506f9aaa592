// SPDX-License-Identifier: Apache-2.0
//
// What Level Zero reports about memory and SYCL does not: base and size of the driver's
// allocation, from which SYCL may cut several allocations.
#pragma once

#include <usm_dlpack/sycl/backends/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
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

/// The Level Zero objects of a platform's default context, and the queries of its memory. The
/// driver knows the memory of every context of its platform.
struct level_zero_queries final : backend_queries {
  using backend_queries::backend_queries;

  // All return a ze_result_t, 0 for success.
  using properties_query = int (*)(ze_context_handle_t, const void*, level_zero_properties*,
                                   ze_device_handle_t*);
  using range_query = int (*)(ze_context_handle_t, const void*, void**, std::size_t*);
  using access_query = int (*)(ze_context_handle_t, const void*, std::size_t, int*,
                               std::size_t*);

  ze_context_handle_t native = nullptr;  ///< the default context
  properties_query get_properties = nullptr;
  range_query get_range = nullptr;
  access_query get_access = nullptr;        ///< of virtual memory; may be null
  std::vector<ze_device_handle_t> devices;  ///< by device id; null for other platforms

  /// @returns null if the functions of Level Zero are not found
  static std::shared_ptr<const backend_queries> make(const queried_platform& platform) {
    constexpr const char* library = "libze_loader.so.1";
    constexpr auto backend = sycl::backend::ext_oneapi_level_zero;
    const auto queries = std::make_shared<level_zero_queries>(platform.context);
    if (!find_function(library, "zeMemGetAllocProperties", queries->get_properties) ||
        !find_function(library, "zeMemGetAddressRange", queries->get_range)) {
      return nullptr;
    }
    find_function(library, "zeVirtualMemGetAccessAttribute", queries->get_access);
    queries->native = sycl::get_native<backend>(platform.context);
    queries->devices = native_devices<backend>(platform.roots);
    return queries;
  }

  /// One query reports the device too.
  sycl::usm::alloc find_kind(const void* pointer) const override { return find(pointer).kind; }

  allocation find(const void* pointer) const override {
    allocation memory;
    const auto [kind, device] = find_kind_and_device(pointer);
    memory.kind = kind;
    if (is_on_one_device(memory.kind) && device != nullptr) {
      memory.device = device_proof::backend;
      memory.device_id = find_id(devices, device);
      if (memory.device_id < 0) {
        memory.part = sycl::make_device<sycl::backend::ext_oneapi_level_zero>(device);
      }
    }
    return memory;
  }

  allocation_range range(const tensor_structure& view,
                         const allocation& /*memory*/) const noexcept override {
    const allocation_range block = find_block(reinterpret_cast<const void*>(view.first));
    if (block.proof == bounds_proof::both_ends || block.contains(view)) {
      return block;
    }
    const allocation_range mapped = find_mapped(view);
    return mapped.size != 0 ? mapped : block;
  }

 private:
  static constexpr sycl::usm::alloc kind_of(std::uint32_t type) noexcept {
    switch (type) {
      case 1: return sycl::usm::alloc::host;
      case 2: return sycl::usm::alloc::device;
      case 3: return sycl::usm::alloc::shared;
      default: return sycl::usm::alloc::unknown;
    }
  }

  /// The USM kind of memory, and the driver's handle of its device.
  std::pair<sycl::usm::alloc, ze_device_handle_t> find_kind_and_device(
      const void* pointer) const noexcept {
    level_zero_properties properties;
    ze_device_handle_t device = nullptr;
    if (get_properties(native, pointer, &properties, &device) != 0) {
      return {sycl::usm::alloc::unknown, nullptr};
    }
    return {kind_of(properties.type), device};
  }

  /// The driver's allocation, which SYCL may have cut up, or a piece of mapped memory.
  allocation_range find_block(const void* pointer) const noexcept {
    void* base = nullptr;
    std::size_t size = 0;
    if (get_range(native, pointer, &base, &size) != 0) {
      return {};
    }
    return {reinterpret_cast<std::uintptr_t>(base), size, bounds_proof::block};
  }

  /// The pieces of memory, mapped in one reservation of virtual memory, that a view lies in:
  /// PyTorch grows its segments so. Size 0 for allocations, even adjacent ones.
  allocation_range find_mapped(const tensor_structure& view) const noexcept {
    const auto memory = find_kind_and_device(reinterpret_cast<const void*>(view.first));
    const allocation_range pieces = join_pieces(view, [&](const void* pointer) {
      return find_kind_and_device(pointer) == memory ? find_block(pointer)
                                                     : allocation_range{};
    });
    const auto* base = reinterpret_cast<const void*>(pieces.base);
    int access = 0;
    std::size_t reserved = 0;
    const bool is_one_reservation =
        get_access != nullptr &&
        get_access(native, base, pieces.size, &access, &reserved) == 0;
    return is_one_reservation ? pieces : allocation_range{};
  }
};

}  // namespace usm_dlpack::detail
