// SPDX-License-Identifier: Apache-2.0
//
// What CUDA reports about memory and SYCL does not: base and size, and the true device. All
// memory that CUDA knows is USM: also that of other libraries in the process.
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
  static std::shared_ptr<const backend_queries> make(const queried_platform& of) {
    const auto made = std::make_shared<cuda_queries>(of.context);
    if (!find_function("libcuda.so.1", "cuPointerGetAttributes", made->get_attributes)) {
      return nullptr;
    }
    for (const sycl::device* const root : of.roots) {
      made->ordinals.push_back(
          root == nullptr ? -1 : sycl::get_native<sycl::backend::ext_oneapi_cuda>(*root));
    }
    return made;
  }

  std::int32_t cuda_ordinal(std::int32_t device_id) const noexcept override {
    return ordinals[static_cast<std::size_t>(device_id)];
  }

  /// One query reports the device too.
  sycl::usm::alloc find_kind(const void* pointer) const override { return find(pointer).kind; }

  allocation find(const void* pointer) const override {
    unsigned type = 0;
    unsigned is_managed = 0;
    allocation found;
    if (!ask(pointer, {memory_type, managed, ordinal},
             {&type, &is_managed, &found.device_id}) ||
        type == 0) {
      return {};
    }
    found.kind = is_managed != 0 ? sycl::usm::alloc::shared
                 : type == 1     ? sycl::usm::alloc::host
                                 : sycl::usm::alloc::device;
    const bool has_device = is_on_one_device(found.kind);
    found.device_id = has_device ? find_id(ordinals, found.device_id, -1) : -1;
    found.device = has_device ? device_proof::backend : device_proof::none;
    // ONEAPI_DEVICE_SELECTOR may hide a GPU.
    return has_device && found.device_id < 0 ? allocation{} : found;
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
    const allocation place = find(first);
    return join_pieces(view, [&](const void* pointer) {
      const allocation there = find(pointer);
      return there.kind == place.kind && there.device_id == place.device_id
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
  bool ask(const void* pointer, int (&&attributes)[Count],
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
    ranges found;
    if (!ask(pointer, {range_base, range_size, mapping_base, mapping_size},
             {&found.whole.base, &found.whole.size, &found.mapped.base, &found.mapped.size}) ||
        found.mapped.size == 0) {
      return {};  // unknown memory, or an older driver
    }
    found.mapped.proof = bounds_proof::block;
    found.whole.proof =
        found.mapped.size < found.whole.size ? bounds_proof::block : bounds_proof::allocation;
    return found;
  }
};

}  // namespace usm_dlpack::detail
