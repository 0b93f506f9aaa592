// SPDX-License-Identifier: Apache-2.0
//
// RAII for a managed tensor, made here or received.
#pragma once

#include <usm_dlpack/config.hpp>

#include <cstddef>

namespace usm_dlpack {

/// Owns a managed tensor: its own `deleter` runs once, when this goes, unless `release()`d. A
/// null deleter, which DLPack allows, is left uncalled. Moved, never copied; the members are
/// those of `std::unique_ptr`, without swap and comparisons, whose header takes as long to
/// compile as all of the core.
///
/// What DLPack asks of a consumer that meets another major version, to call the deleter and to
/// touch nothing else, needs no more than to own first and to look then:
/// `const managed_tensor received(raw); validate(*received);` refuses, and the deleter runs.
template <class Managed>
class managed_owner {
 public:
  using element_type = Managed;
  using pointer = Managed*;

  constexpr managed_owner() noexcept = default;
  constexpr managed_owner(std::nullptr_t) noexcept {}
  /// Takes ownership. @param owned null owns nothing
  constexpr explicit managed_owner(Managed* owned) noexcept : owned_(owned) {}
  managed_owner(managed_owner&& other) noexcept : owned_(other.release()) {}
  managed_owner& operator=(managed_owner&& other) noexcept {
    reset(other.release());
    return *this;
  }
  managed_owner(const managed_owner&) = delete;
  managed_owner& operator=(const managed_owner&) = delete;
  ~managed_owner() { reset(); }

  /// The tensor, still owned; null if there is none.
  Managed* get() const noexcept { return owned_; }
  Managed& operator*() const noexcept { return *owned_; }
  Managed* operator->() const noexcept { return owned_; }
  explicit operator bool() const noexcept { return owned_ != nullptr; }

  /// Gives the tensor away: the caller runs its deleter, or hands it on.
  Managed* release() noexcept {
    Managed* const given = owned_;
    owned_ = nullptr;
    return given;
  }
  /// Runs the deleter of what is owned, and owns another, or nothing.
  void reset(Managed* other = nullptr) noexcept {
    Managed* const gone = owned_;
    owned_ = other;
    if (gone != nullptr && gone->deleter != nullptr) {
      gone->deleter(gone);
    }
  }

  friend bool operator==(const managed_owner& owner, std::nullptr_t) noexcept {
    return owner.owned_ == nullptr;
  }
  friend bool operator==(std::nullptr_t, const managed_owner& owner) noexcept {
    return owner.owned_ == nullptr;
  }
  friend bool operator!=(const managed_owner& owner, std::nullptr_t) noexcept {
    return owner.owned_ != nullptr;
  }
  friend bool operator!=(std::nullptr_t, const managed_owner& owner) noexcept {
    return owner.owned_ != nullptr;
  }

 private:
  Managed* owned_ = nullptr;
};

/// Owns a `DLManagedTensorVersioned`.
using managed_tensor = managed_owner<DLManagedTensorVersioned>;
/// Owns a `DLManagedTensor`, the struct from before DLPack 1.0.
using legacy_managed_tensor = managed_owner<DLManagedTensor>;

}  // namespace usm_dlpack
