// SPDX-License-Identifier: Apache-2.0
//
// What CUDA reports about memory and SYCL does not: base and size, and the true device. All
// memory that CUDA knows is USM, including that of other libraries in the process.
#pragma once

#include <usm_dlpack/sycl/backends/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

namespace usm_dlpack::detail {

/// The CUDA ordinals of a platform's root devices, and CUDA's query of memory, which needs no
/// current CUDA context. Source: CUDA driver API, "Unified Addressing".
struct cuda_queries final : backend_queries {
  using backend_queries::backend_queries;

  /// `cuPointerGetAttributes`. Returns a CUresult, 0 for success.
  using attributes_query = int (*)(unsigned count, int* attributes, void** values,
                                   std::uintptr_t address);

  attributes_query get_attributes = nullptr;
  std::vector<std::int32_t> ordinals;  ///< by device id; -1 for other platforms

  /// @returns null if the function of CUDA is not found
  static std::shared_ptr<const backend_queries> make(const queried_platform& platform) {
    const auto queries = std::make_shared<cuda_queries>(platform.context);
    if (!find_function("libcuda.so.1", "cuPointerGetAttributes", queries->get_attributes)) {
      return nullptr;
    }
    for (const sycl::device* const root : platform.roots) {
      queries->ordinals.push_back(
          root == nullptr ? -1 : sycl::get_native<sycl::backend::ext_oneapi_cuda>(*root));
    }
    return queries;
  }

  std::int32_t cuda_ordinal(std::int32_t device_id) const noexcept override {
    return ordinals[static_cast<std::size_t>(device_id)];
  }

  /// One query reports the device too.
  sycl::usm::alloc find_kind(const void* pointer) const override { return find(pointer).kind; }

  allocation find(const void* pointer) const override { return find_mapped(pointer).memory; }

  /// CUDA reports each of SYCL's allocations exactly. But for memory that is mapped in pieces,
  /// it reports the whole reservation, mapped or not. A piece is smaller than that; around an
  /// allocation the mapping is at least as large.
  allocation_range range(const tensor_structure& view,
                         const allocation& memory) const noexcept override {
    if (memory.range.proof != bounds_proof::block || !memory.range.contains(view)) {
      return memory.range;
    }
    return join_pieces(view, [&](const void* pointer) {
      const mapped_memory piece = find_mapped(pointer);
      return piece.memory.kind == memory.kind && piece.memory.device_id == memory.device_id
                 ? piece.mapping
                 : allocation_range{};
    });
  }

 private:
  /// `CUpointer_attribute`. The type is a `CUmemorytype`, 1 for host and 2 for device memory,
  /// or 0 for memory that CUDA does not know.
  enum attribute : int {
    memory_type = 2,
    managed = 8,
    ordinal = 9,
    range_base = 11,
    range_size = 12,
    mapping_size = 18,
    mapping_base = 19,
  };

  /// An allocation, or a reservation of virtual memory, and the mapping at an address in it.
  struct mapped_memory {
    allocation memory;
    allocation_range mapping;
  };

  mapped_memory find_mapped(const void* pointer) const noexcept {
    unsigned type = 0;
    unsigned is_managed = 0;
    mapped_memory found;
    auto& [memory, mapping] = found;
    // clang-format off
    int attributes[] = {memory_type, managed, ordinal, range_base, range_size,
                        mapping_base, mapping_size};
    void* values[] = {&type, &is_managed, &memory.device_id, &memory.range.base,
                      &memory.range.size, &mapping.base, &mapping.size};
    // clang-format on
    if (get_attributes(std::size(attributes), attributes, values,
                       reinterpret_cast<std::uintptr_t>(pointer)) != 0 ||
        type == 0) {
      return {};
    }
    memory.kind = is_managed != 0 ? sycl::usm::alloc::shared
                  : type == 1     ? sycl::usm::alloc::host
                                  : sycl::usm::alloc::device;
    const bool has_device = is_on_one_device(memory.kind);
    memory.device_id = has_device ? find_id(ordinals, memory.device_id, -1) : -1;
    if (has_device && memory.device_id < 0) {
      return {};  // ONEAPI_DEVICE_SELECTOR may hide a GPU
    }
    memory.device = has_device ? device_proof::backend : device_proof::none;
    if (mapping.size == 0) {
      memory.range = {};
      return found;
    }
    mapping.proof = bounds_proof::block;
    memory.range.proof =
        mapping.size < memory.range.size ? bounds_proof::block : bounds_proof::allocation;
    return found;
  }
};

}  // namespace usm_dlpack::detail
