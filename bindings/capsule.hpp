// SPDX-License-Identifier: Apache-2.0
//
// DLPack's Python capsules: reads them, consumes them and makes them.
#pragma once

#include <nanobind/nanobind.h>
#include <usm_dlpack/core/managed.hpp>

#include <cstdint>
#include <variant>

namespace usm_dlpack::python {

namespace nb = nanobind;

/// The managed tensor in a fresh capsule, versioned or legacy; the capsule still owns it.
using capsule_content = std::variant<DLManagedTensorVersioned*, DLManagedTensor*>;

/// Reads a capsule without consuming it.
/// @throws conversion_error `capsule_unusable` for anything but a fresh DLPack capsule
capsule_content read_capsule(nb::handle object);

/// The tensor and the flags of a capsule's content; borrowed.
struct content_view {
  const DLTensor* described;
  std::uint64_t flags;  ///< 0 of a legacy managed tensor
};

/// @throws conversion_error for an unknown version or flags
content_view view_of(const capsule_content& content);

/// Who owns the content: a fresh capsule does, of a consumed one the consumer.
enum class capsule_state { fresh, consumed };

/// Renames a capsule that `read_capsule` accepted.
void mark_capsule(nb::handle object, const capsule_content& content,
                  capsule_state state) noexcept;

/// Makes a fresh capsule, which runs the deleter if nobody consumes it.
nb::object make_capsule(managed_tensor managed);
nb::object make_capsule(legacy_managed_tensor managed);

}  // namespace usm_dlpack::python
