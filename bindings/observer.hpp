// SPDX-License-Identifier: Apache-2.0
//
// Records one call of `validate` or `to_dlpack_tensor` for Python's `explain`.
#pragma once

#include "capsule.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace usm_dlpack::python {

/// The steps that a call began, and its findings. Holds copies and no Python objects, because
/// making a Python object may run code that takes the capsule.
class call_observer : public detail::step_observer {
 public:
  call_observer() noexcept : detail::step_observer{&append} {}

  /// Copies the fields of a managed tensor that its version and flags make readable.
  void read(const capsule_content& content);
  /// Copies the tensor of an export.
  void read(const DLTensor& tensor);
  nb::dict to_dict() const;

  std::vector<const char*> steps;
  usm_allocation proof;  ///< of an import
  std::optional<tensor_structure> structure;
  // Of an export: the device, the context and the address that the object names, and the begin
  // and end of the object's bytes.
  std::optional<std::int32_t> device_id;
  std::optional<sycl::context> context;
  std::optional<std::uintptr_t> origin;
  std::optional<std::pair<std::uintptr_t, std::uintptr_t>> object;

 private:
  static void append(detail::step_observer& self, const char* step) {
    static_cast<call_observer&>(self).steps.push_back(step);
  }
  bool began(const char* step) const;

  const char* name_ = nullptr;  ///< of the capsule
  std::optional<DLPackVersion> version_;
  std::optional<std::uint64_t> flags_;
  std::optional<DLTensor> tensor_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::int64_t>> strides_;
};

/// Takes the observer of this thread's next call of `validate` or `to_dlpack_tensor`, or null.
/// Nested calls, by a producer, get none.
call_observer* take_observer() noexcept;

}  // namespace usm_dlpack::python
