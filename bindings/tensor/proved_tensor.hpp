// SPDX-License-Identifier: Apache-2.0
//
// A tensor with its proof and its owner: what the package reads, imports, copies and exports.
// Holds data only: what uses a proof is elsewhere.
#pragma once

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace usm_dlpack::detail {

/// Keeps the memory of a tensor alive: a Python object, or the managed tensor of a producer.
/// A null object keeps nothing.
using tensor_owner = std::variant<python_object, managed_tensor, legacy_managed_tensor>;

/// A tensor in USM that was proved, or one in host memory whose structure was checked.
/// Movable, not copyable. @pre the GIL is held where one is destroyed
struct proved_tensor {
  DLTensor described{};                    ///< with strides and `byte_offset` 0
  std::uint64_t flags = 0;                 ///< bits of `flag`
  usm_allocation proof;                    ///< its `data()` and `structure()` are the tensor's
  std::optional<sycl::queue> queue;        ///< may still work on the memory
  tensor_owner owner;                      ///< null while a capsule owns the memory
  std::unique_ptr<std::int64_t[]> arrays;  ///< shape and strides, to which `described` points

  proved_tensor() = default;

  /// Copies shape and strides (null ones filled).
  /// @param proof_of_tensor the proof of `tensor`
  proved_tensor(const DLTensor& tensor, std::uint64_t tensor_flags,
                const usm_allocation& proof_of_tensor)
      : flags(tensor_flags),
        proof(proof_of_tensor),
        arrays(new std::int64_t[2 * static_cast<std::size_t>(tensor.ndim)]) {
    detail::write_tensor(tensor, arrays.get(), described);
    described.data = proof.data();
    described.byte_offset = 0;
  }

  const tensor_structure& structure() const noexcept { return proof.structure(); }
  bool is_on_host() const noexcept { return described.device.device_type == kDLCPU; }
  bool readonly() const noexcept { return (flags & flag::read_only) != 0; }
  subbyte storage() const noexcept { return detail::storage_of(flags); }
  std::size_t ndim() const noexcept { return static_cast<std::size_t>(described.ndim); }
};

}  // namespace usm_dlpack::detail
