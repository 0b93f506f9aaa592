// SPDX-License-Identifier: Apache-2.0
//
// What CUDA reports about memory and SYCL does not: base and size, and the true device. All
// memory that CUDA knows is USM, including that of other libraries in the process.
#pragma once

#include <usm_dlpack/sycl/backends/backend.hpp>

#include <cstddef>
#include <cstdint>
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

  allocation find(const void* pointer) const override {
    unsigned type = 0;
    unsigned is_managed = 0;
    allocation memory;
    if (!query(pointer, {memory_type, managed, ordinal},
               {&type, &is_managed, &memory.device_id}) ||
        type == 0) {
      return {};
    }
    memory.kind = is_managed != 0 ? sycl::usm::alloc::shared
                  : type == 1     ? sycl::usm::alloc::host
                                  : sycl::usm::alloc::device;
    const bool has_device = is_on_one_device(memory.kind);
    memory.device_id = has_device ? find_id(ordinals, memory.device_id, -1) : -1;
    memory.device = has_device ? device_proof::backend : device_proof::none;
    // ONEAPI_DEVICE_SELECTOR may hide a GPU.
    return has_device && memory.device_id < 0 ? allocation{} : memory;
  }

  /// CUDA reports each of SYCL's allocations exactly. But for memory that is mapped in pieces,
  /// it reports the whole reservation, mapped or not. A piece is smaller than that; around an
  /// allocation the mapping is at least as large.
  allocation_range range(const tensor_structure& view) const noexcept override {
    const auto* const first = reinterpret_cast<const void*>(view.first);
    const auto [whole, mapped] = find_ranges(first);
    if (mapped.size >= whole.size || !whole.contains(view)) {
      return whole;
    }
    const allocation memory = find(first);
    return join_pieces(view, [&](const void* pointer) {
      const allocation piece = find(pointer);
      return piece.kind == memory.kind && piece.device_id == memory.device_id
                 ? find_ranges(pointer).mapped
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

  /// @returns whether the driver knows all attributes; the values may be zero
  template <std::size_t Count>
  bool query(const void* pointer, int (&&attributes)[Count],
             void* (&&values)[Count]) const noexcept {
    return get_attributes(Count, attributes, values,
                          reinterpret_cast<std::uintptr_t>(pointer)) == 0;
  }

  /// What an address lies in: an allocation or a reservation, and a mapping.
  struct ranges {
    allocation_range whole;
    allocation_range mapped;
  };

  ranges find_ranges(const void* pointer) const noexcept {
    ranges result;
    if (!query(pointer, {range_base, range_size, mapping_base, mapping_size},
               {&result.whole.base, &result.whole.size, &result.mapped.base,
                &result.mapped.size}) ||
        result.mapped.size == 0) {
      return {};  // unknown memory, or an older driver
    }
    result.mapped.proof = bounds_proof::block;
    result.whole.proof = result.mapped.size < result.whole.size ? bounds_proof::block
                                                                : bounds_proof::allocation;
    return result;
  }
};

}  // namespace usm_dlpack::detail
