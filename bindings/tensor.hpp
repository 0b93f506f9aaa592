// SPDX-License-Identifier: Apache-2.0
//
// Python's DLPackTensor: a proved description of USM and its owner.
#pragma once

#include "dtypes.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <variant>

namespace usm_dlpack::python {

class memory_users;

/// A tensor whose memory was proved when it was made; the proof is valid as long as the owner.
/// Neither copied nor moved: it is stored in its Python object.
class tensor {
 public:
  /// The owner of the memory: a Python object, or the managed tensor of a producer.
  using owner_type = std::variant<nb::object, managed_tensor, legacy_managed_tensor>;

  /// Copies shape and strides (null ones filled).
  /// @pre `proof` is the result of `validate` for `described`
  tensor(const DLTensor& described, const usm_allocation& proof, std::uint64_t flags);
  ~tensor();
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;

  /// Takes the owner. Call it when nothing can fail any more.
  void own(owner_type owner) noexcept;
  /// Remembers the queue that may still work on the memory.
  void set_queue(std::optional<sycl::queue> queue);
  /// The queue that the tensor was made from or with, if any.
  const std::optional<sycl::queue>& queue() const noexcept { return queue_; }
  /// Whether the queue is of the memory's context; an import may be for a queue of another.
  bool queue_knows_memory() const noexcept { return queue_knows_memory_; }
  /// The queues that use the memory, if this package allocated it, or null.
  const std::shared_ptr<memory_users>& users() const noexcept { return users_; }
  /// The Python owner, or null.
  PyObject* python_owner() const noexcept;
  /// The owner for another tensor of the memory: the Python owner, so that chains of tensors
  /// do not grow, or else `self`.
  /// @param self the Python object of this tensor
  nb::object owner_for_others(nb::handle self) const noexcept {
    return nb::borrow(python_owner() == nullptr ? self : nb::handle(python_owner()));
  }
  /// Drops the owner; the tensor describes nothing any more. For the cyclic garbage collector.
  /// Memory of this package then waits for the tensor's queue. In a child made by fork()
  /// nothing is freed, because the memory is the parent's.
  void release() noexcept;

  /// A DLTensor with `byte_offset` 0 and strides, valid as long as this object.
  /// @throws conversion_error if the tensor was released
  const DLTensor& get() const;

  const usm_allocation& proof() const noexcept { return proof_; }
  DLDataType dtype() const noexcept { return described_.dtype; }
  element_type element() const noexcept { return {dtype(), detail::storage_of(flags_)}; }
  std::uint64_t flags() const noexcept { return flags_; }
  bool readonly() const noexcept { return (flags_ & flag::read_only) != 0; }
  std::size_t ndim() const noexcept { return static_cast<std::size_t>(described_.ndim); }
  const std::int64_t* shape() const noexcept { return described_.shape; }
  const std::int64_t* strides() const noexcept { return described_.strides; }
  std::int64_t size() const noexcept { return size_; }
  /// Bytes of the elements without gaps; packed elements of fewer than 8 bits are rounded up.
  std::int64_t nbytes() const noexcept;

 private:
  usm_allocation proof_;
  owner_type owner_;
  std::optional<sycl::queue> queue_;
  std::shared_ptr<memory_users> users_;
  std::unique_ptr<std::int64_t[]> arrays_;
  DLTensor described_{};
  std::uint64_t flags_;
  std::int64_t size_ = 1;
  bool released_ = false;
  bool queue_knows_memory_ = false;
};

/// The content of a DLPackTensor.
/// @throws conversion_error `tensor_released` for one that `__new__` made without content
const tensor& ready_tensor(nb::handle self);

/// Whether an object is a DLPackTensor, even without content.
bool has_tensor_type(nb::handle object) noexcept;

/// Whether an object is a DLPackTensor with content.
bool is_tensor(nb::handle object) noexcept;

/// Makes a DLPackTensor.
nb::object make_tensor(const DLTensor& described, const usm_allocation& proof,
                       std::uint64_t flags, tensor::owner_type owner,
                       std::optional<sycl::queue> queue);

/// Waits for the out-of-order queues of living tensors and of memory of this package. For the
/// end of the interpreter, which keeps memory and queues: the OpenCL CPU driver aborts a
/// process that ends while such a queue works (intel-opencl-rt 2026.2). In-order queues do not
/// need it.
void wait_for_out_of_order_work();

}  // namespace usm_dlpack::python
