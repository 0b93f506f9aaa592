// SPDX-License-Identifier: Apache-2.0
//
// What Level Zero reports about memory and SYCL does not: base and size of the driver's
// allocation. SYCL may cut several allocations from it, by libumf, which knows their ends.
#pragma once

#include <usm_dlpack/sycl/backends/backend.hpp>

#include <array>
#include <atomic>
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

/// The pools that SYCL may cut memory from: libumf, if the SYCL runtime has loaded it.
struct memory_pools {
  // `umfPoolByPtr`, `umfPoolMallocUsableSize`
  int (*pool_of)(const void*, void**) = nullptr;
  int (*usable_size)(void*, const void*, std::size_t*) = nullptr;

  enum class answer { size, not_of_a_pool, none };

  /// Finds the bytes from an address to the end of its chunk in a pool; for an allocation that
  /// was not cut up, its whole size, whatever the address.
  answer find_size(std::uintptr_t address, std::size_t& bytes) const noexcept {
    if (pool_of == nullptr || usable_size == nullptr) {
      return answer::none;
    }
    const auto* pointer = reinterpret_cast<const void*>(address);
    void* pool = nullptr;
    if (pool_of(pointer, &pool) != 0 || pool == nullptr) {
      return answer::not_of_a_pool;
    }
    return usable_size(pool, pointer, &bytes) == 0 ? answer::size : answer::none;
  }
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
  memory_pools pools;

  /// @returns null if the functions of Level Zero are not found
  static std::shared_ptr<const backend_queries> make(const queried_platform& of) {
    constexpr const char* library = "libze_loader.so.1";
    constexpr auto backend = sycl::backend::ext_oneapi_level_zero;
    const auto made = std::make_shared<level_zero_queries>(of.context);
    if (!find_function(library, "zeMemGetAllocProperties", made->get_properties) ||
        !find_function(library, "zeMemGetAddressRange", made->get_range)) {
      return nullptr;
    }
    find_function(library, "zeVirtualMemGetAccessAttribute", made->get_access);
    made->native = sycl::get_native<backend>(of.context);
    made->devices = native_devices<backend>(of.roots);
    find_function("libumf.so.1", "umfPoolByPtr", made->pools.pool_of);
    find_function("libumf.so.1", "umfPoolMallocUsableSize", made->pools.usable_size);
    return made;
  }

  /// One query reports the device too.
  sycl::usm::alloc find_kind(const void* pointer) const override { return find(pointer).kind; }

  allocation find(const void* pointer) const override {
    allocation found;
    const auto [kind, device] = find_place(pointer);
    found.kind = kind;
    if (is_on_one_device(found.kind) && device != nullptr) {
      found.device = device_proof::backend;
      found.device_id = find_id(devices, device);
      if (found.device_id < 0) {
        found.part = sycl::make_device<sycl::backend::ext_oneapi_level_zero>(device);
      }
    }
    return found;
  }

  allocation_range range(const tensor_structure& view,
                         sycl::usm::alloc kind) const noexcept override {
    using answer = memory_pools::answer;
    const std::uintptr_t lowest = view.lowest;
    allocation_range block = find_block(reinterpret_cast<const void*>(view.first));
    if (block.proof == bounds_proof::both_ends) {
      return block;
    }
    if (!block.contains(view)) {
      const allocation_range mapped = find_mapped(view);
      if (mapped.size != 0) {
        return mapped;
      }
    }
    // For a pointer one byte into a chunk, libumf returns the size minus 1; for uncut memory,
    // the whole size. Far inside a large chunk, at `lowest`, it also answers as if uncut.
    const std::size_t skipped = block.size > 1 ? 1 : 0;
    std::size_t usable = 0;
    const answer reported = pools.find_size(block.base + skipped, usable);
    if ((reported == answer::size && usable == block.size) ||
        (reported == answer::none && is_unpooled(kind))) {
      block.proof = bounds_proof::allocation;
    }
    const bool inside = lowest >= block.base && lowest - block.base < block.size;
    if (reported != answer::size || block.proof == bounds_proof::allocation || !inside) {
      return block;
    }
    const std::size_t left = block.size - (lowest - block.base);
    if (usable == block.size - skipped) {  // one chunk is the whole block
      usable = left;
    } else if (pools.find_size(lowest, usable) != answer::size || usable == 0 ||
               usable > left) {
      return block;
    }
    return {lowest, usable, bounds_proof::chunk};
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
  std::pair<sycl::usm::alloc, ze_device_handle_t> find_place(
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
    const auto place = find_place(reinterpret_cast<const void*>(view.first));
    const allocation_range pieces = join_pieces(view, [&](const void* pointer) {
      return find_place(pointer) == place ? find_block(pointer) : allocation_range{};
    });
    const auto* base = reinterpret_cast<const void*>(pieces.base);
    int access = 0;
    std::size_t reserved = 0;
    const bool is_one_reservation =
        get_access != nullptr &&
        get_access(native, base, pieces.size, &access, &reserved) == 0;
    return is_one_reservation ? pieces : allocation_range{};
  }

  /// Whether SYCL gives each of the driver's allocations of a kind whole to one caller. Tested
  /// once, with one byte, the size that is most likely pooled. SYCL pools shared USM only if
  /// devices only read it.
  bool is_unpooled(sycl::usm::alloc kind) const noexcept {
    std::atomic<pooling>& state = pooling_->at(static_cast<std::size_t>(kind));
    if (state == pooling::not_tested) {
      bool whole = false;
      try {
        sycl::property_list properties;
        if (kind == sycl::usm::alloc::shared) {
          properties = {sycl::ext::oneapi::property::usm::device_read_only()};
        }
        void* const byte = sycl::malloc(1, sycl_context.get_devices().front(), sycl_context,
                                        kind, properties);
        whole = byte != nullptr && find_block(byte).size == 1;
        sycl::free(byte, sycl_context);
      } catch (const sycl::exception&) {  // no such memory: counts as pooled
      }
      state = whole ? pooling::unpooled : pooling::pooled;
    }
    return state == pooling::unpooled;
  }

  enum class pooling { not_tested, pooled, unpooled };
  /// By USM kind; copies share it.
  std::shared_ptr<std::array<std::atomic<pooling>, 4>> pooling_ =
      std::make_shared<std::array<std::atomic<pooling>, 4>>();
};

}  // namespace usm_dlpack::detail
