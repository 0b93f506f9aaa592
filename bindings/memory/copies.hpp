// SPDX-License-Identifier: Apache-2.0
//
// Copies of tensors, in USM or in host memory. The caller waits for the work on the tensors
// before. A copy is complete when it is returned. Its elements do not overlap: positive
// strides are kept if the elements neither overlap nor have gaps; otherwise the copy is
// compact in C order. Packed elements are copied by whole bytes; a copy that would have to
// take them apart is refused (`dtype_unsupported`). A new way to copy must write no byte
// between the elements of its destination.
#pragma once

#include "order/queues.hpp"
#include "tensor/proved_tensor.hpp"

#include <memory>
#include <optional>

namespace usm_dlpack::python {

using detail::proved_tensor;

/// Whether the elements are in C order without gaps; strides of one element do not matter.
bool is_c_contiguous(const proved_tensor& tensor);

/// Frees the memory of a copy. USM is freed by `free_after_work`.
struct copy_free {
  std::optional<sycl::context> context;  ///< of USM; none of host memory
  std::shared_ptr<queue_list> queues;    ///< that use the USM; null for host memory
  queue_holder consumer;                 ///< of the queue that a consumer of a copy named

  void operator()(void* address) noexcept;
};
using copy_memory = std::unique_ptr<void, copy_free>;

/// Drops the owner of CUDA memory after the work of the queues that use the memory, because
/// its library orders only its own streams when it gives the memory to other work.
struct drop_after_work {
  std::shared_ptr<queue_list> queues = std::make_shared<queue_list>();

  void operator()(detail::tensor_owner* owner) noexcept;
};
using cuda_memory = std::unique_ptr<detail::tensor_owner, drop_after_work>;

/// Allocates USM (device USM for an unknown kind) in the default context of a root device,
/// aligned for every element type. Allocates at least one byte, so that the address is valid.
/// The address is null if there is no memory.
/// @param field is named in the error if the runtime fails
/// @throws conversion_error as `root_device`
copy_memory find_usm(const char* field, std::uint64_t nbytes, std::int32_t device_id,
                     sycl::usm::alloc kind);

/// Allocates USM for a tensor that is compact in C order, and makes it the tensor's `data`.
/// @param wanted has the shape, the dtype and the device; its other fields are written
/// @throws std::bad_alloc if there is no memory; conversion_error as `check_structure` and
///         `root_device`
copy_memory allocate_usm(DLTensor& wanted, subbyte storage, sycl::usm::alloc kind);

/// A copy and its description. The description borrows shape and strides of the source; the
/// strides are null for C order.
struct tensor_copy {
  DLTensor described;
  std::uint64_t flags;
  copy_memory memory;
};

/// Whether no two elements share a byte.
bool has_whole_bytes(const proved_tensor& tensor);

/// The remedy for packed elements where a copy would have to take them out of their bytes.
inline constexpr const char* unpacking_remedy =
    "have the producer unpack it to a dtype of whole bytes";

/// Refuses a tensor that cannot be copied.
/// @param c_order whether the copy is to be in C order
/// @throws conversion_error `dtype_unsupported` for packed elements that a copy would have to
///         take out of their bytes, `copy_needed` for more bytes than an object can have
void check_copyable(const proved_tensor& source, bool c_order);

/// Copies to USM.
/// @param c_order whether the copy is to be in C order
/// @throws conversion_error `copy_needed` if there is no memory, and as `root_device`
tensor_copy copy_to_usm(const proved_tensor& source, std::int32_t device_id,
                        sycl::usm::alloc kind, bool c_order);

/// Copies to host memory, aligned to 256 bytes.
tensor_copy copy_to_host(const proved_tensor& source, bool c_order);

/// Writes the elements to host memory, compact and in row-major order.
/// @pre `to` has room for all elements; elements of fewer than 8 bits are padded
void write_compact(const proved_tensor& source, void* to);

/// Copies elements from USM or host memory to USM, with any strides on either side. The memory
/// may be the same. No byte outside the elements of `to` is written. Without gaps this is one
/// copy; with gaps in device USM it is one for each run of elements that lie side by side.
/// @pre both have the same shape and dtype; the elements of `to` do not overlap
void write_to_usm(const proved_tensor& from, const proved_tensor& to);

}  // namespace usm_dlpack::python
