// SPDX-License-Identifier: Apache-2.0
//
// Python's DLPackTensor: a proved description of USM, with the owner of the memory. A new
// property goes in `register_tensor`.
#pragma once

#include "arguments/dtypes.hpp"
#include "exchange/capsule.hpp"
#include "memory/copies.hpp"
#include "order/guarded.hpp"
#include "tensor/proved_tensor.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <memory>
#include <optional>

namespace usm_dlpack::python {

using detail::proved_tensor;

/// The content of a DLPackTensor: a tensor whose memory was proved when it was made. The proof
/// is valid as long as the owner lives. Not copied and not moved, because it is stored in its
/// Python object.
class tensor {
 public:
  /// @param content if it has no queue, the tensor gets the package's
  /// @param list of the tensor that this one is made of, if any; else that of the owner, or
  /// new
  /// @param producer the queue that a producer works on, if the content has another one
  /// @throws conversion_error as `queue_list::add`
  tensor(proved_tensor content, std::shared_ptr<queue_list> list,
         const std::optional<sycl::queue>& producer);
  ~tensor();
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;

  /// @throws conversion_error if the tensor was released
  const proved_tensor& get() const;

  // These also work for a released tensor.
  const usm_allocation& proof() const noexcept { return content_.proof; }
  /// The tensor's queue: the one that was asked for, its producer's, or the package's.
  const sycl::queue& queue() const noexcept { return *content_.queue; }
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
  bool queue_knows_memory() const { return queue().get_context() == proof().context(); }
  /// The queues that use the memory, `queue()` among them; never null.
  const std::shared_ptr<queue_list>& queues() const noexcept { return queues_; }
  /// `queue()` as an object of dpctl, which is made once. @pre the GIL is held
  nb::object queue_object() const;
  /// Adds the package's queue to the list, for consumers of the C exchange API.
  void add_package_queue() const;
  /// The Python owner, or null.
  PyObject* python_owner() const noexcept;
  /// The owner for another tensor of the same memory: the Python owner, or else `self`. So a
  /// tensor of a tensor does not make a chain that grows.
  /// @param self the Python object of this tensor
  nb::object owner_for_others(nb::handle self) const noexcept {
    return nb::borrow(python_owner() == nullptr ? self : nb::handle(python_owner()));
  }
  /// Drops the owner; the tensor has no memory then. The destructor and the garbage collector
  /// call it. Memory of this package is freed after the work of its list. In a child
  /// made by fork() nothing is freed, because the memory belongs to the parent.
  void release() noexcept;

 private:
  proved_tensor content_;
  std::shared_ptr<queue_list> queues_;
  queue_holder own_, producer_;
  mutable queue_holder package_queue_;
  mutable nb::object queue_object_;
  bool is_released_ = false;
};

using tensor_class = guarded_class<tensor>;

/// The content of a DLPackTensor.
/// @throws conversion_error `tensor_released` for one that `__new__` made without content
const tensor& ready_tensor(nb::handle self);

/// Whether an object is a DLPackTensor, even one without content.
bool has_tensor_type(nb::handle object) noexcept;

/// Whether an object is a DLPackTensor with content.
bool is_tensor(nb::handle object) noexcept;

/// Makes a DLPackTensor. The arguments are those of `tensor`.
nb::object make_tensor(proved_tensor content, std::shared_ptr<queue_list> list = nullptr,
                       const std::optional<sycl::queue>& producer = std::nullopt);

/// The owner of the managed tensors that a DLPackTensor exports.
struct exported_tensor {
  python_reference tensor;
  queue_holder consumer;  ///< of the queue that the consumer named; null for none
};

/// The list of the memory of an owner or a capsule, or null for memory that is not of this
/// package.
std::shared_ptr<queue_list> list_behind(const detail::tensor_owner& owner) noexcept;
std::shared_ptr<queue_list> list_behind(const capsule_content& content) noexcept;

/// Waits for all work on the memory of a tensor: its queues and dpctl's.
/// @throws conversion_error as the wait for a queue
void wait_for(const tensor& used);

/// Waits for all work on the memory of a producer's array.
/// @param list of its memory; null if that is not of this package
/// @throws conversion_error as the wait for a queue
void wait_for_foreign(const proved_tensor& foreign, const std::shared_ptr<queue_list>& list);

/// Orders a consumer's queue behind the work on a tensor: on its queues and on dpctl's.
/// @throws conversion_error as `hand_over`
void hand_over(const tensor& used, const sycl::queue& consumer);

/// Whether memory in USM is of a CUDA library, which may also name its pinned memory kDLCPU.
/// @param from the device as the producer names it
/// @param device_id of the root device
bool is_of_cuda(const DLDevice& from, std::int32_t device_id);

/// Gives a proved tensor its owner. CUDA memory is kept until the queues that use it are done.
/// @param of_cuda what `is_of_cuda` returns
/// @param take returns the owner, and throws nothing; if this function throws, it was not
/// called
template <class Take>
void own_memory(proved_tensor& proved, bool of_cuda, const Take& take) {
  if (!of_cuda) {
    proved.owner = take();
    return;
  }
  drop_after_work waiting;
  cuda_memory memory(new detail::tensor_owner, std::move(waiting));
  detail::tensor_owner& owner = *memory;
  managed_tensor managed =
      to_managed_tensor(proved.described, std::move(memory), proved.flags);
  owner = take();
  proved.owner = std::move(managed);
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

/// The queue of a capsule of a DLPackTensor: the one that the consumer named, if it is of the
/// memory's context, or else the tensor's. Nothing for other capsules.
std::optional<sycl::queue> queue_behind(const capsule_content& content);

/// Makes a managed tensor that keeps a DLPackTensor alive.
/// @pre `self` is a DLPackTensor
managed_tensor export_managed(nb::handle self);

/// `DLPackTensor.__dlpack__`: exports the memory itself, a copy on a root device, or memory
/// that the host can read.
/// @throws conversion_error, and never a TypeError, which consumers take to mean that the
///         producer is old
/// @throws nb::value_error for an unusable `stream`
nb::object export_dlpack(nb::handle_t<tensor> self, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, nb::handle copy);

/// The signature of every `__dlpack__` of this package.
inline constexpr const char* dlpack_signature =
    "def __dlpack__(self, *, stream: typing.Any | None = None, "
    "max_version: tuple[int, int] | None = None, "
    "dl_device: tuple[int, int] | None = None, "
    "copy: bool | None = None) -> typing.Any";

}  // namespace usm_dlpack::python
