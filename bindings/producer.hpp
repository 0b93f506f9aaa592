// SPDX-License-Identifier: Apache-2.0
//
// Exports of other libraries' arrays, by the C exchange API of their type, or by __dlpack__
// with the keywords that it takes.
#pragma once

#include "capsule.hpp"

#include <sycl/sycl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <optional>

namespace usm_dlpack::python {

/// The request of `from_dlpack` to a producer.
struct import_request {
  std::optional<bool> copy;  ///< as DLPack's keyword
  bool host = false;         ///< whether arrays in host memory are accepted
  /// For an extension: neither the device before the export, nor the queue is queried.
  bool anywhere = false;
  nb::object stream = nb::none();    ///< the consumer's queue as Python's object
  std::optional<sycl::queue> queue;  ///< the same queue
};

/// The managed tensor of a producer, still in its capsule or already ours.
class producer_tensor {
 public:
  explicit producer_tensor(nb::object capsule) noexcept : capsule_(std::move(capsule)) {}
  explicit producer_tensor(managed_tensor managed) noexcept : managed_(std::move(managed)) {}

  /// The content of the capsule or the managed tensor.
  /// @throws conversion_error `capsule_unusable`
  capsule_content content() const {
    return managed_ ? capsule_content(managed_.get()) : read_capsule(capsule_);
  }
  /// Hands over the content; consumes the capsule.
  void release(const capsule_content& content) noexcept {
    if (managed_) {
      managed_.release();
    } else {
      consume_capsule(capsule_, content);
    }
  }

  /// Undoes `release`: the capsule, or this object without a capsule, owns the content again.
  void give_back(const capsule_content& content) noexcept {
    if (capsule_.is_valid()) {
      restore_capsule(capsule_, content);
    } else {
      managed_.reset(std::get<DLManagedTensorVersioned*>(content));
    }
  }

  /// Returns the capsule, or makes one that takes over the managed tensor.
  nb::object into_capsule() {
    return managed_ ? make_capsule(std::move(managed_)) : std::move(capsule_);
  }

  /// The capsule, or an invalid object.
  const nb::object& capsule() const noexcept { return capsule_; }

  /// The queue that may still work on the memory, if the producer reports it.
  std::optional<sycl::queue> pending;

 private:
  nb::object capsule_;
  managed_tensor managed_;
};

/// Exports an array. Its work is ordered before the request's queue if the producer takes a
/// stream, or reports its own queue.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
producer_tensor ask_producer(nb::handle x, const import_request& request);

/// Refuses memory of another context, if the producer reports a queue.
/// @throws conversion_error `device_mismatch`, `context_not_default`
void check_context(const usm_allocation& proof, const producer_tensor& offered);

/// Initialises statics before threads can use them: making a tuple may run the garbage
/// collector, and with it other threads, which would wait for the static with the GIL held.
void prepare_producers();

/// Forgets the cached types. @pre the GIL is held
void forget_producers() noexcept;

}  // namespace usm_dlpack::python
