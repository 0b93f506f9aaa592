// SPDX-License-Identifier: Apache-2.0
//
// What Python's DLPackTensor holds: a proved description of USM and whatever keeps it alive.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

namespace usm_dlpack::python {

namespace nb = nanobind;

class memory_users;

/// A tensor whose memory was proved when it was made; the proof holds as long as the owner
/// does. Neither copied nor moved: it lives inside its Python object.
class tensor {
 public:
  /// What keeps the memory alive: a Python object, or the managed tensor of a producer.
  using owner_type = std::variant<nb::object, managed_tensor, legacy_managed_tensor>;

  /// Copies shape and strides (null ones filled).
  /// @pre `proof` is `validate`'s answer for `described`
  tensor(const DLTensor& described, const usm_allocation& proof, std::uint64_t flags);
  ~tensor();
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;

  /// Takes the owner when nothing can fail any more.
  void own(owner_type owner) noexcept;
  /// Remembers the queue that may still work on the memory.
  void set_queue(std::optional<sycl::queue> queue);
  /// The queue that the tensor was made from or with, if any.
  const std::optional<sycl::queue>& queue() const noexcept { return queue_; }
  /// Whether that queue is of the context that the memory belongs to: an import may have been
  /// for a queue of another one.
  bool queue_knows_memory() const noexcept { return queue_knows_memory_; }
  /// The queues that may work on the memory, if this package allocated it, or null.
  const std::shared_ptr<memory_users>& users() const noexcept { return users_; }
  /// The Python owner, or null.
  PyObject* python_owner() const noexcept;
  /// What keeps the memory alive for another tensor of it, too: the Python owner, so that a
  /// tensor of a tensor of a tensor does not keep all of them, or else `self`.
  /// @param self the Python object of this tensor
  nb::object owner_for_others(nb::handle self) const noexcept {
    return nb::borrow(python_owner() == nullptr ? self : nb::handle(python_owner()));
  }
  /// Lets the owner go: the tensor describes nothing any more. Memory of this package waits
  /// for the tensor's queue when it goes. For the cyclic garbage collector. In a child made by
  /// fork() the memory is the parent's, and is not freed.
  void release() noexcept;

  /// The DLTensor of the export profile: first element, `byte_offset` 0, strides filled. Valid
  /// as long as this object. @throws conversion_error if the tensor was released
  DLTensor get() const;

  const usm_allocation& proof() const noexcept { return proof_; }
  DLDataType dtype() const noexcept { return dtype_; }
  std::uint64_t flags() const noexcept { return flags_; }
  bool readonly() const noexcept { return (flags_ & flag::read_only) != 0; }
  std::size_t ndim() const noexcept { return ndim_; }
  const std::int64_t* shape() const noexcept { return arrays_.get(); }
  const std::int64_t* strides() const noexcept { return arrays_.get() + ndim_; }
  /// Number of elements.
  std::int64_t size() const noexcept { return size_; }
  /// Bytes of the elements, without gaps; packed elements of fewer than 8 bits rounded up.
  std::int64_t nbytes() const noexcept;

 private:
  usm_allocation proof_;
  owner_type owner_;
  std::optional<sycl::queue> queue_;
  std::shared_ptr<memory_users> users_;
  std::unique_ptr<std::int64_t[]> arrays_;
  std::size_t ndim_;
  std::uint64_t flags_;
  std::int64_t size_ = 1;
  DLDataType dtype_;
  bool released_ = false;
  bool queue_knows_memory_ = false;
};

/// Refuses a DLPackTensor that `__new__` made by itself.
/// @throws conversion_error `tensor_released`
void check_ready(nb::handle self);

/// Whether an object is a DLPackTensor, also one that `__new__` made by itself.
bool has_tensor_type(nb::handle object) noexcept;

/// Whether an object is a DLPackTensor that was made.
bool is_tensor(nb::handle object) noexcept;

/// What knows the memory as dpctl's object: the tensor's queue, if it does, or the context.
nb::object place_of(const tensor& self);

/// A DLPackTensor of a proved description, whose owner is still to be given; `get()` works.
nb::object make_tensor(const DLTensor& described, const usm_allocation& proof,
                       std::uint64_t flags);

/// Adds the class DLPackTensor to the module.
void register_tensor(nb::module_& module);

}  // namespace usm_dlpack::python
