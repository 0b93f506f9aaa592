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
    unsigned type = 0;  // CUmemorytype; 0 for memory that CUDA does not know
    unsigned is_managed = 0;
    int ordinal = -1;
    allocation found;
    if (!ask(pointer, {2, 8, 9}, {&type, &is_managed, &ordinal}) || type == 0) {
      return found;
    }
    found.kind = is_managed != 0 ? sycl::usm::alloc::shared
                 : type == 1     ? sycl::usm::alloc::host
                                 : sycl::usm::alloc::device;
    if (is_on_one_device(found.kind)) {
      found.device_id = find_id(ordinals, ordinal, -1);
      found.device = device_proof::backend;
      // A GPU that ONEAPI_DEVICE_SELECTOR hides.
      found = found.device_id < 0 ? allocation{} : found;
    }
    return found;
  }

  allocation_range range(const void* first, std::uintptr_t /*lowest*/,
                         sycl::usm::alloc /*kind*/) const noexcept override {
    std::uintptr_t base = 0;
    std::size_t size = 0;
    if (!ask(first, {11, 12}, {&base, &size}) || size == 0) {
      return {};
    }
    return {base, size, bounds_proof::allocation};
  }

 private:
  /// Asks for `CUpointer_attribute`s: 2 is MEMORY_TYPE, 8 IS_MANAGED, 9 DEVICE_ORDINAL, 11
  /// RANGE_START_ADDR, 12 RANGE_SIZE, 18 MAPPING_SIZE, 19 MAPPING_BASE_ADDR.
  template <std::size_t Count>
  bool ask(const void* pointer, int (&&attributes)[Count], void* (&&values)[Count]) const {
    return get_attributes(Count, attributes, values,
                          reinterpret_cast<std::uintptr_t>(pointer)) == 0;
  }
};

}  // namespace usm_dlpack::detail
