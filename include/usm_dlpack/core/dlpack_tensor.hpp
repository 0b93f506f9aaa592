// SPDX-License-Identifier: Apache-2.0
//
// The non-owning wrapper: a DLTensor whose shape and strides live inside the object, so that
// it can be copied, returned and stored without a heap.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace usm_dlpack {

/// A `DLTensor` of `Rank` dimensions that owns its shape and strides, and not its data.
///
/// Trivially copyable; a copy owns its own arrays. It neither keeps the memory alive nor waits
/// for work on it.
template <std::size_t Rank>
class dlpack_tensor {
 public:
  /// Extents or strides, in elements; one for each dimension.
  using array_type = std::array<std::int64_t, Rank>;

  /// An empty shape of no dtype, on no device: to be assigned to.
  constexpr dlpack_tensor() noexcept = default;

  /// Takes every field as it is given: the caller vouches for them.
  /// @param data the first element; null is allowed where an extent is 0
  constexpr dlpack_tensor(void* data, DLDevice device, DLDataType dtype,
                          const array_type& shape, const array_type& strides) noexcept
      : shape_(shape), strides_(strides), device_(device), dtype_(dtype), data_(data) {}

  static constexpr std::size_t rank() noexcept { return Rank; }
  /// Extents, in elements.
  constexpr const array_type& shape() const noexcept { return shape_; }
  /// Distances between neighbours, in elements; never null, unlike before DLPack 1.2.
  constexpr const array_type& strides() const noexcept { return strides_; }

  /// The device that the tensor was described for.
  constexpr DLDevice device() const noexcept { return device_; }
  constexpr DLDataType dtype() const noexcept { return dtype_; }
  /// Address of the first element; null where an extent is 0.
  constexpr void* data() const noexcept { return data_; }

  /// The `DLTensor`, by value. Its `shape` and `strides` point into this object (both are null
  /// for rank 0) and are valid as long as this object is neither moved nor destroyed;
  /// `byte_offset` is 0. The pointers are not to const because `DLTensor` has none such: a
  /// consumer must not write through them.
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
  /// A temporary's arrays would be gone before the result is used.
  DLTensor get() const&& = delete;

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
