// SPDX-License-Identifier: Apache-2.0
//
// An array of any dtype and rank, for functions that copy, inspect or dispatch. A new property
// of the array is read from its managed tensor, or is a field of package.hpp.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/mapping.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

template <class T>
inline constexpr bool is_owned_view = false;
template <class View>
inline constexpr bool is_owned_view<owned_view<View>> = true;

/// Refuses mutable elements that may overlap: kernels write to each index at once.
inline void check_unique(const tensor_structure& structure) {
  if (!structure.unique) {
    refuse(errc::overlapping, "strides",
           "elements that do not overlap for a view of mutable elements",
           "strides that do not prove it", contiguous_or("use a view of const elements"));
  }
}

/// Refuses read-only memory for mutable elements.
inline void check_not_read_only(std::uint64_t flags, std::int32_t ndim) {
  if ((flags & flag::read_only) != 0) {
    // dpnp exports arrays of rank 0 as read-only, though they are not.
    refuse_read_only_view(
        ndim == 0 ? "if it is dpnp's, pass usm_dlpack.to_dlpack_tensor(x); else " : "");
  }
}

/// Makes a view of a proved array, or refuses an array that is not of the view's type.
/// @throws conversion_error as `any_view::as`
template <class View>
View view_of_array(const DLTensor& tensor, std::uint64_t flags, const usm_allocation& proof) {
  const subbyte storage = storage_of(flags);
  detail::check_element_type<View>(tensor, storage);
  detail::check_rank<View>(tensor);
  if (!has_const_elements<View>) {
    check_not_read_only(flags, tensor.ndim);
  }
  if (!proof.structure().empty) {  // an empty array may be of any kind
    detail::check_usm_type(proof.usm_type(), detail::require_kind<View>({}));
  }
  const View view = detail::make_view<View>(tensor, proof.structure(), storage);
  if (!has_const_elements<View>) {
    check_unique(proof.structure());
  }
  return view;
}

/// Calls a function, and puts the name of a parameter before the field of a refusal.
template <class Function>
decltype(auto) with_name(const std::string& name, Function&& function) {
  try {
    return function();
  } catch (const conversion_error& error) {
    if (name.empty()) {
      throw;
    }
    throw conversion_error(error.code(), {name + "." + error.field(), error.expected(),
                                          error.found(), error.remedy()});
  }
}

}  // namespace detail

/// An array of any dtype, rank and USM kind, proved like a view. As a parameter, it keeps the
/// memory alive for as long as it lives, on any thread. Returned from a function, it becomes a
/// `usm_dlpack.DLPackTensor` that shares the memory. Movable, not copyable; a moved-from one
/// may only be destroyed or assigned to.
class any_view {
 public:
  /// Holds a proved import.
  /// @pre `proof` is of the tensor of `managed`, which is not null
  any_view(const usm_allocation& proof, const sycl::queue& queue, managed_tensor managed)
      : proof_(proof), queue_(queue), managed_(std::move(managed)) {}

  any_view(any_view&&) = default;
  any_view& operator=(any_view&&) = default;
  any_view(const any_view&) = delete;  // std::move it, or share it by a std::shared_ptr
  any_view& operator=(const any_view&) = delete;

  DLDataType dtype() const noexcept { return managed_->dl_tensor.dtype; }
  std::int32_t ndim() const noexcept { return managed_->dl_tensor.ndim; }
  /// Extents, in elements.
  std::vector<std::int64_t> shape() const { return copy_of(managed_->dl_tensor.shape); }
  /// Distances between neighbours, in elements.
  std::vector<std::int64_t> strides() const {
    const DLTensor& tensor = managed_->dl_tensor;
    if (tensor.strides != nullptr) {
      return copy_of(tensor.strides);
    }
    std::vector<std::int64_t> compact = shape();
    detail::write_compact_strides(tensor.shape, compact.data(), compact.size());
    return compact;
  }
  /// Address of the first element; may be null for an empty array.
  const void* data() const noexcept { return proof_.data(); }
  /// The same, to write to.
  /// @param name as for `as`
  /// @throws conversion_error `read_only`; `overlapping` if elements may overlap
  void* mutable_data(const std::string& name = {}) const {
    detail::with_name(name, [&] {
      detail::check_not_read_only(managed_->flags, ndim());
      detail::check_unique(proof_.structure());
    });
    return proof_.data();
  }
  bool is_read_only() const noexcept { return (managed_->flags & flag::read_only) != 0; }
  /// Unknown only for an empty array.
  sycl::usm::alloc usm_type() const noexcept { return proof_.usm_type(); }
  /// The DLPack id of the memory's root device.
  std::int32_t device_id() const noexcept { return proof_.device_id(); }
  /// The proof of the memory.
  const usm_allocation& allocation() const noexcept { return proof_; }
  /// The queue that may still work on the memory, as `owned_view::queue`.
  const sycl::queue& queue() const noexcept { return queue_; }

  /// The array as a view, which lives as long as this.
  /// @param name of the parameter, for errors: their field is then `y.dtype`, for example
  /// @throws conversion_error as for a parameter of this type: `dtype_mismatch`,
  ///         `shape_mismatch`, `read_only`, `usm_type_not_accepted`, `index_type_too_small`,
  ///         `layout_mismatch`, `overlapping`
  template <class View, std::enable_if_t<!detail::is_owned_view<View>, int> = 0>
  View as(const std::string& name = {}) const& USM_DLPACK_LIFETIMEBOUND {
    return detail::with_name(
        name, [&] { return detail::view_of_array<View>(tensor(), managed_->flags, proof_); });
  }
  template <class View, std::enable_if_t<!detail::is_owned_view<View>, int> = 0>
  View as(const std::string& name = {}) const&& = delete;  // keep the any_view in a variable
  /// The array as an `owned_view`, to which ownership moves.
  /// @throws conversion_error likewise; this is then unchanged
  template <class Owned, std::enable_if_t<detail::is_owned_view<Owned>, int> = 0>
  Owned as(const std::string& name = {}) && {
    const auto view = std::as_const(*this).template as<typename Owned::view_type>(name);
    return {view, std::move(managed_), queue_};
  }

  /// The managed tensor that keeps the memory alive, borrowed; null after `release`.
  const DLManagedTensorVersioned* managed() const noexcept { return managed_.get(); }
  /// Moves the managed tensor out; `managed` is null afterwards.
  managed_tensor release() && noexcept { return std::move(managed_); }

 private:
  /// The tensor with `data` at the first element, and `byte_offset` 0.
  DLTensor tensor() const noexcept {
    DLTensor tensor = managed_->dl_tensor;
    tensor.data = proof_.data();
    tensor.byte_offset = 0;
    return tensor;
  }
  std::vector<std::int64_t> copy_of(const std::int64_t* values) const {
    return {values, values + ndim()};
  }

  usm_allocation proof_;
  sycl::queue queue_;
  managed_tensor managed_;
};

}  // namespace usm_dlpack
