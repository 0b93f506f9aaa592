// SPDX-License-Identifier: Apache-2.0
//
// DLPack's Python capsules. Source of their names and destructors: DLPack "Python
// Specification". A new kind of capsule, or name, is added here alone.
#pragma once

#include "arguments/errors.hpp"
#include "tensor/proved_tensor.hpp"

#include <cstdint>
#include <variant>

namespace usm_dlpack::python {

/// The managed tensor in a capsule. The capsule still owns it.
class capsule_content {
 public:
  explicit capsule_content(DLManagedTensorVersioned* managed) : managed_(managed) {}
  explicit capsule_content(DLManagedTensor* managed) : managed_(managed) {}

  const DLTensor& described() const noexcept {
    return std::visit([](const auto* m) -> const DLTensor& { return m->dl_tensor; }, managed_);
  }
  /// The flags; 0 for a legacy managed tensor.
  std::uint64_t flags() const noexcept {
    const auto* versioned = std::get_if<DLManagedTensorVersioned*>(&managed_);
    return versioned != nullptr ? (*versioned)->flags : 0;
  }
  const std::variant<DLManagedTensorVersioned*, DLManagedTensor*>& managed() const noexcept {
    return managed_;
  }

 private:
  std::variant<DLManagedTensorVersioned*, DLManagedTensor*> managed_;
};

/// Reads a capsule without consuming it.
/// @throws conversion_error `capsule_unusable` for anything but a fresh DLPack capsule,
///         `version_unsupported`
capsule_content read_capsule(nb::handle object);

/// Who owns the content: a fresh capsule owns it; the content of a consumed capsule belongs to
/// the consumer.
enum class capsule_state { fresh, consumed };

/// Renames a capsule that `read_capsule` accepted.
void mark_capsule(nb::handle object, const capsule_content& content,
                  capsule_state state) noexcept;

/// Consumes a capsule that `read_capsule` accepted.
detail::tensor_owner consume_capsule(nb::handle object,
                                     const capsule_content& content) noexcept;

/// Makes a fresh capsule, which runs the deleter if nobody consumes it.
nb::object make_capsule(managed_tensor managed);
nb::object make_capsule(legacy_managed_tensor managed);

}  // namespace usm_dlpack::python
