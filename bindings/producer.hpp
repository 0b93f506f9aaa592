// SPDX-License-Identifier: Apache-2.0
//
// Arrays of other libraries: how each offers its memory (the C exchange API of its type, or
// __dlpack__ with the keywords that it takes), and what it hands over.
#pragma once

#include "capsule.hpp"

#include <sycl/sycl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <optional>

namespace usm_dlpack::python {

/// What `from_dlpack` asks a producer for.
struct import_request {
  std::optional<bool> copy;  ///< as DLPack's keyword
  bool host = false;         ///< whether an array in host memory is taken as well
  /// For an extension: the array is not asked where it is before its export, nor for its
  /// queue.
  bool anywhere = false;
  nb::object stream = nb::none();    ///< the consumer's queue as Python's object
  std::optional<sycl::queue> queue;  ///< the same queue
};

/// What a producer offers: a managed tensor, still in its capsule or already ours.
class producer_tensor {
 public:
  explicit producer_tensor(nb::object capsule) noexcept : capsule_(std::move(capsule)) {}
  explicit producer_tensor(managed_tensor managed) noexcept : managed_(std::move(managed)) {}

  /// What the capsule or the managed tensor holds. @throws conversion_error `capsule_unusable`
  capsule_content content() const {
    return managed_ ? capsule_content(managed_.get()) : read_capsule(capsule_);
  }
  /// Hands over what `content()` gave: a capsule is consumed.
  void release(const capsule_content& content) noexcept {
    if (managed_) {
      managed_.release();
    } else {
      consume_capsule(capsule_, content);
    }
  }

  /// Undoes `release`: the capsule is fresh again. What came without one is deleted with this.
  void give_back(const capsule_content& content) noexcept {
    if (capsule_.is_valid()) {
      restore_capsule(capsule_, content);
    } else {
      managed_.reset(std::get<DLManagedTensorVersioned*>(content));
    }
  }

  /// The capsule, or a new one that owns the managed tensor, which is gone from here.
  nb::object into_capsule() {
    return managed_ ? make_capsule(std::move(managed_)) : std::move(capsule_);
  }

  /// The capsule, or an invalid object.
  const nb::object& capsule() const noexcept { return capsule_; }

  /// The queue that may still work on the memory, where the producer says it.
  std::optional<sycl::queue> pending;

 private:
  nb::object capsule_;
  managed_tensor managed_;
};

/// What an array says of its device, if it says anything.
/// @throws conversion_error for an answer that names no device
std::optional<DLDevice> device_said_by(nb::handle x);

/// Asks an array for its tensor; its work is then ordered before the queue of the request, as
/// far as the producer takes one, or says its own.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
producer_tensor ask_producer(nb::handle x, const import_request& request);

/// Refuses memory of another context, if the producer says a queue that shows it.
/// @throws conversion_error `device_mismatch`, `context_not_default`
void check_context(const usm_allocation& proof, const producer_tensor& offered);

/// Adds what Python code gives and asks of producers to the module, and makes what every
/// question to one needs, before threads can ask.
void register_producers(nb::module_& module);

/// Lets go of what is known of producers' types. @pre the GIL is held
void forget_producers() noexcept;

}  // namespace usm_dlpack::python
