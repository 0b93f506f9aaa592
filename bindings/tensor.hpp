// SPDX-License-Identifier: Apache-2.0
//
// Python's DLPackTensor: a proved description of USM, with the owner of the memory.
#pragma once

#include "capsule.hpp"
#include "copies.hpp"
#include "dtypes.hpp"
#include "guarded.hpp"

#include <usm_dlpack/python/proved_tensor.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <memory>
#include <optional>

namespace usm_dlpack::python {

class memory_users;

using detail::proved_tensor;

/// The content of a DLPackTensor: a tensor whose memory was proved when it was made. The proof
/// is valid as long as the owner lives. Not copied and not moved, because it is stored in its
/// Python object.
class tensor {
 public:
  /// @param users of the tensor's memory, if this is a tensor of another one
  tensor(proved_tensor content, std::shared_ptr<memory_users> users);
  ~tensor();
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;

  /// @throws conversion_error if the tensor was released
  const proved_tensor& get() const;

  // These also work for a released tensor.
  const usm_allocation& proof() const noexcept { return content_.proof; }
  const std::optional<sycl::queue>& queue() const noexcept { return content_.queue; }
  element_type element() const noexcept {
    return {content_.described.dtype, content_.storage()};
  }
  bool readonly() const noexcept { return content_.readonly(); }
  std::size_t ndim() const noexcept { return content_.ndim(); }
  const std::int64_t* shape() const noexcept { return content_.described.shape; }
  const std::int64_t* strides() const noexcept { return content_.described.strides; }
  std::int64_t size() const noexcept;
  /// Bytes of the elements, gaps not counted; the bits of packed elements are rounded up to
  /// bytes.
  std::int64_t nbytes() const noexcept;

  /// Whether the queue is of the memory's context. The queue of an import may be of another
  /// context.
  bool queue_knows_memory() const {
    return queue() && queue()->get_context() == proof().context();
  }
  /// The queues that use the memory; never null.
  const std::shared_ptr<memory_users>& users() const noexcept { return users_; }
  /// The Python owner, or null.
  PyObject* python_owner() const noexcept;
  /// The owner for another tensor of the same memory: the Python owner, or else `self`. So a
  /// tensor of a tensor does not make a chain that grows.
  /// @param self the Python object of this tensor
  nb::object owner_for_others(nb::handle self) const noexcept {
    return nb::borrow(python_owner() == nullptr ? self : nb::handle(python_owner()));
  }
  /// Drops the owner; the tensor has no memory then. The destructor and the garbage collector
  /// call it. Memory of this package is freed after the work of the tensor's queue. In a child
  /// made by fork() nothing is freed, because the memory belongs to the parent.
  void release() noexcept;

 private:
  proved_tensor content_;
  std::shared_ptr<memory_users> users_;
  bool is_released_ = false;
};

using tensor_class = guarded_class<tensor>;
void register_tensor(guarded_module& module);

/// The content of a DLPackTensor.
/// @throws conversion_error `tensor_released` for one that `__new__` made without content
const tensor& ready_tensor(nb::handle self);

/// Whether an object is a DLPackTensor, even one without content.
bool has_tensor_type(nb::handle object) noexcept;

/// Whether an object is a DLPackTensor with content.
bool is_tensor(nb::handle object) noexcept;

/// Makes a DLPackTensor. @param users of its memory, if it is a tensor of another one
nb::object make_tensor(proved_tensor content, std::shared_ptr<memory_users> users = nullptr);

/// Waits for the other queues that use the tensor's memory: those of tensors of it and of
/// consumers, and dpctl's if a consumer named none.
/// @throws conversion_error `runtime_error`
void wait_for_users(const tensor& used);

/// Notes for a producer's tensor that dpctl's queue may work on it, if the producer named
/// none.
void suppose_dpctl(const tensor& foreign);

/// Waits for what may use a producer's memory besides the queue that it names. If it names
/// none, this includes dpctl's queue, on which the arrays of dpnp are.
/// @throws conversion_error `runtime_error`
void wait_for_producer(const proved_tensor& foreign);

/// Orders a consumer's queue behind the tensor's, and behind dpctl's if a consumer named none.
/// @throws conversion_error `runtime_error`
void hand_over(const tensor& used, const sycl::queue& consumer);

/// Waits for all queues that use the tensor's memory. @throws conversion_error `runtime_error`
void wait_for_all(const tensor& used);

/// Gives a proved tensor its owner. CUDA memory is kept until the queues that use it are done.
/// @param from the device as the producer names it
/// @param take returns the owner, and throws nothing; if this function throws, it was not
/// called
template <class Take>
void own_memory(proved_tensor& proved, const DLDevice& from, const Take& take) {
  if (!detail::is_cuda(from.device_type)) {
    proved.owner = take();
    return;
  }
  queue_wait waiting;
  cuda_memory memory(new detail::tensor_owner, std::move(waiting));
  detail::tensor_owner& owner = *memory;
  managed_tensor kept = to_managed_tensor(proved.described, std::move(memory), proved.flags);
  owner = take();
  proved.owner = std::move(kept);
}

/// Proves a managed tensor, and takes it over. Its deleter runs also if it is refused.
/// @throws conversion_error as `validate`
proved_tensor prove(managed_tensor managed, std::optional<sycl::queue> queue);

/// Proves a producer's tensor in USM. If it is in host memory, checks only its structure.
/// Nothing owns it yet.
/// @param host_element the element type in host memory, if it is not the one that the tensor
///        names
/// @throws conversion_error as `validate`
proved_tensor prove_content(const capsule_content& content,
                            const std::optional<element_type>& host_element);

/// The queue of the DLPackTensor from which a capsule was made without a copy; nothing for
/// other capsules.
std::optional<sycl::queue> queue_behind(const capsule_content& content);

/// Waits for the out-of-order queues of living tensors and of memory of this package. Called
/// when the interpreter ends, because the OpenCL CPU driver aborts a process that ends while
/// such a queue works (intel-opencl-rt 2026.2). In-order queues do not need this.
void wait_for_out_of_order_work();

}  // namespace usm_dlpack::python
