// SPDX-License-Identifier: Apache-2.0
//
// A non-owning DLTensor with its shape and strides inside the object: no heap is needed. It
// must stay trivially copyable.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace usm_dlpack {

/// A `DLTensor` of `Rank` dimensions that owns its shape and strides, but not its data.
///
/// Trivially copyable. Neither keeps the memory alive nor waits for work on it.
template <std::size_t Rank>
class dlpack_tensor {
 public:
  /// Extents or strides, in elements.
  using array_type = std::array<std::int64_t, Rank>;

  /// A tensor without dtype and device, to be assigned to.
  constexpr dlpack_tensor() noexcept = default;

  /// Stores every field unchecked.
  /// @param data the first element; may be null if an extent is 0
  constexpr dlpack_tensor(void* data, DLDevice device, DLDataType dtype,
                          const array_type& shape, const array_type& strides) noexcept
      : shape_(shape), strides_(strides), device_(device), dtype_(dtype), data_(data) {}

  static constexpr std::size_t rank() noexcept { return Rank; }
  /// Extents, in elements.
  constexpr const array_type& shape() const noexcept { return shape_; }
  /// Distances between neighbours, in elements.
  constexpr const array_type& strides() const noexcept { return strides_; }

  /// The device that the tensor names.
  constexpr DLDevice device() const noexcept { return device_; }
  constexpr DLDataType dtype() const noexcept { return dtype_; }
  /// Address of the first element; null if an extent is 0.
  constexpr void* data() const noexcept { return data_; }

  /// The `DLTensor`, with `byte_offset` 0. `shape` and `strides` (null for rank 0) point into
  /// this object, are valid until it is moved or destroyed, and must not be written through.
  [[nodiscard]] DLTensor get() const& noexcept USM_DLPACK_LIFETIMEBOUND {
    DLTensor tensor;
    tensor.data = data_;
    tensor.device = device_;
    tensor.ndim = static_cast<std::int32_t>(Rank);
    tensor.dtype = dtype_;
    tensor.shape = pointer_to(shape_);
    tensor.strides = pointer_to(strides_);
    tensor.byte_offset = 0;
    return tensor;
  }
  /// Deleted: the arrays would be destroyed with the temporary.
  DLTensor get() const&& = delete;  // keep the wrapper in a variable

 private:
  static std::int64_t* pointer_to(const array_type& values) noexcept {
    return Rank == 0 ? nullptr : const_cast<std::int64_t*>(values.data());
  }

  array_type shape_{};
  array_type strides_{};
  DLDevice device_{};
  DLDataType dtype_{};
  void* data_ = nullptr;
};

}  // namespace usm_dlpack
