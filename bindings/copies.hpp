// SPDX-License-Identifier: Apache-2.0
//
// Copies of tensors, in USM or in host memory: each waits for the producer's known work, and
// is complete when it is returned. Each element of a copy has its own place: positive strides
// are kept where elements neither overlap nor have gaps, otherwise the copy is compact, in
// row-major order.
#pragma once

#include "capsule.hpp"
#include "memory_users.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace usm_dlpack::python {

/// What is copied: a proved tensor, or a well-formed one in host memory.
struct copy_source {
  DLTensor described;          ///< `data` is the first element, `byte_offset` 0
  tensor_structure structure;  ///< the bytes that it spans
  std::uint64_t flags;         ///< of which the padding of small elements is kept
  /// The queue that may still work on the memory.
  std::optional<sycl::queue> pending;
  /// Not set for host memory, which the host reads.
  std::optional<usm_allocation> proof;
};

/// Memory that a copy lives in. USM is freed after the work that its queues have got, without
/// the GIL: the work may need it, and so may whoever lets it go on. Where that cannot be, the
/// memory is left alone for good rather than freed under a kernel: if a queue cannot say that
/// it is done, and while the interpreter finishes.
class copy_memory {
 public:
  copy_memory() noexcept = default;
  explicit copy_memory(void* host) noexcept : address_(host) {}
  /// USM, at a null address if there is none.
  copy_memory(std::uint64_t nbytes, const sycl::device& device, const sycl::context& context,
              sycl::usm::alloc kind);
  copy_memory(copy_memory&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)),
        context_(std::move(other.context_)),
        users_(std::move(other.users_)) {}
  copy_memory& operator=(copy_memory&&) = delete;
  ~copy_memory();

  void* get() const noexcept { return address_; }

  /// The queues that work on USM; null for host memory.
  const std::shared_ptr<memory_users>& users() const noexcept { return users_; }

 private:
  void free() noexcept;

  void* address_ = nullptr;
  std::optional<sycl::context> context_;  ///< of USM
  std::shared_ptr<memory_users> users_;
};

/// USM of a kind (device USM for an unknown one) in the default context of a root device,
/// aligned to 256 bytes; of one byte at least, so that its address is live. None if there is
/// no memory.
/// @param field that a failure of the runtime is told of
/// @throws conversion_error as `root_device`
copy_memory find_usm(const char* field, std::uint64_t nbytes, std::int32_t device_id,
                     sycl::usm::alloc kind);

/// USM for a copy, as of `find_usm`.
/// @throws conversion_error `copy_needed` if there is no memory, and as `root_device`
copy_memory allocate_usm(std::uint64_t nbytes, std::int32_t device_id, sycl::usm::alloc kind);

/// A copy and its description, whose shape is the source's: used while that is there.
struct tensor_copy {
  DLTensor described;
  std::uint64_t flags;
  copy_memory memory;
  std::vector<std::int64_t> strides;  ///< `described.strides`, where they are not the source's
};

/// Copies to memory of `allocate_usm`. @throws conversion_error as that
tensor_copy copy_to_usm(const copy_source& source, std::int32_t device_id,
                        sycl::usm::alloc kind);

/// Copies to host memory, aligned to 256 bytes.
tensor_copy copy_to_host(const copy_source& source);

/// Writes the elements to host memory, compact and in row-major order.
/// @pre `to` has room for all of them; elements of fewer than 8 bits are padded
void write_compact(const copy_source& source, void* to);

}  // namespace usm_dlpack::python
