// SPDX-License-Identifier: Apache-2.0
//
// Makes a managed tensor from a view and the owner of its memory, in one allocation. A new
// kind of owner must be refused or accepted here, by its type.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

namespace usm_dlpack {

/// Calls the tensor's deleter, unless it is null, which DLPack allows.
struct managed_deleter {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    if (managed->deleter != nullptr) {
      managed->deleter(managed);
    }
  }
};

/// Owns a `DLManagedTensorVersioned`, made here or received.
///
/// A tensor of another major version may only be deleted, so own it before you check it:
/// `const managed_tensor received(raw); validate(*received);`
using managed_tensor = std::unique_ptr<DLManagedTensorVersioned, managed_deleter>;
/// Owns a `DLManagedTensor`, the struct from before DLPack 1.0.
using legacy_managed_tensor = std::unique_ptr<DLManagedTensor, managed_deleter>;

namespace detail {

/// A managed tensor and its owner, followed by shape and strides in the same allocation.
template <class Managed, class Owner>
struct managed_block {
  alignas(std::int64_t) Managed managed;
  Owner owner;

  static void* operator new(std::size_t size, std::int32_t ndim) {
    return ::operator new(size + 2 * static_cast<std::size_t>(ndim) * sizeof(std::int64_t),
                          std::align_val_t{alignof(managed_block)});
  }
  static void operator delete(void* memory) noexcept {
    ::operator delete(memory, std::align_val_t{alignof(managed_block)});
  }
  /// Called if the owner's move throws.
  static void operator delete(void* memory, std::int32_t) noexcept { operator delete(memory); }

  /// The `deleter`: `manager_ctx` is the block.
  static void destroy(Managed* managed) noexcept {
    delete static_cast<managed_block*>(managed->manager_ctx);
  }
};

/// Copies a tensor, with shape and strides in `arrays`. Null strides are filled in.
inline void write_tensor(const DLTensor& from, std::int64_t* arrays, DLTensor& to) noexcept {
  detail::copy_strides(from, arrays, arrays + from.ndim);
  to = from;
  to.shape = from.ndim == 0 ? nullptr : arrays;
  to.strides = from.ndim == 0 ? nullptr : arrays + from.ndim;
}

/// Puts `data` where consumers expect it. For kDLOneAPI, dpctl and dpnp refuse a tensor that
/// reaches below `data`, as with negative strides. On the host, dpctl, dpnp and warp ignore
/// `byte_offset`, and TensorFlow refuses it; CUDA's `data` is such an address too. Elsewhere
/// `data` is kept: it may be a handle.
/// @pre the tensor is well formed, so its span in bytes fits int64_t
inline void rebase_for_consumers(DLTensor& tensor, subbyte storage) noexcept {
  if (tensor.device.device_type == kDLOneAPI) {
    byte_span bytes{};
    static_cast<void>(detail::to_bytes(
        span_of(tensor.shape, tensor.strides, static_cast<std::size_t>(tensor.ndim)),
        detail::bits_per_element(tensor.dtype, storage), bytes));
    const std::uint64_t below = magnitude(bytes.lowest);
    if (tensor.byte_offset < below) {
      tensor.data = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(tensor.data) +
                                            tensor.byte_offset - below);
      tensor.byte_offset = below;
    }
  } else if (tensor.device.device_type == kDLCPU || is_cuda(tensor.device.device_type)) {
    if (tensor.data != nullptr) {
      tensor.data = static_cast<unsigned char*>(tensor.data) + tensor.byte_offset;
    }
    tensor.byte_offset = 0;
  }
}

inline constexpr const char* versioned_remedy =
    "pass max_version=(1, 0) in Python, or call to_managed_tensor in C++";

inline void check_legacy_flags(std::uint64_t flags) {
  if ((flags & flag::read_only) != 0) {
    refuse(errc::read_only, "flags", "writable memory, as a legacy managed tensor implies",
           "read-only memory", std::string(versioned_remedy) + ", or copy the array");
  }
  if ((flags & flag::is_subbyte_type_padded) != 0) {
    refuse(errc::dtype_unsupported, "flags",
           "packed elements, as a legacy managed tensor implies",
           "padded elements of fewer than 8 bits", versioned_remedy);
  }
}

template <class View>
constexpr std::uint64_t flags_of() {
  return (has_const_elements<View> ? flag::read_only : 0U) |
         (is_subbyte_padded_v<typename View::element_type> ? flag::is_subbyte_type_padded
                                                           : 0U);
}

/// Whether a type has the interface of a Python handle of nanobind or pybind11.
template <class Owner, class = void>
inline constexpr bool is_python_handle = false;
template <class Owner>
inline constexpr bool
    is_python_handle<Owner, std::void_t<decltype(std::declval<const Owner&>().ptr()),
                                        decltype(std::declval<const Owner&>().inc_ref()),
                                        decltype(std::declval<const Owner&>().dec_ref())>> =
        true;

/// Whether an owner keeps no memory: a number, a pointer, or a function that is meant as a
/// deleter, with no argument or a pointer. Python handles, which can be called, are refused
/// before.
template <class Owner>
inline constexpr bool owns_nothing =
    std::is_scalar_v<Owner> ||
    (!is_python_handle<Owner> &&
     (std::is_invocable_v<Owner&> || std::is_invocable_v<Owner&, std::nullptr_t>));

/// Makes a managed tensor of either struct. Moves the owner last, so that it is unchanged if
/// anything else fails.
template <class Managed, class Owner>
auto to_managed(const DLTensor& tensor, Owner&& owner, std::uint64_t flags) {
  static_assert(!is_python_handle<std::decay_t<Owner>>,
                "owner: expected one that any thread may destroy, found a Python handle, "
                "which needs the GIL; pass usm_dlpack::python_owner(object)");
  static_assert(!owns_nothing<std::decay_t<Owner>>,
                "owner: expected an object that keeps the memory, found a number, a pointer "
                "or a function, which nothing calls; pass what keeps the memory itself, or "
                "std::shared_ptr<void>(pointer, deleter)");
  using block_type = managed_block<Managed, std::decay_t<Owner>>;
  constexpr bool versioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  check_flags(flags, "clear the bits that DLPack 1.3 does not define");
  if constexpr (!versioned) {
    check_legacy_flags(flags);
  }
  usm_dlpack::check_structure(tensor, storage_of(flags));
  auto* block = new (tensor.ndim) block_type{Managed{}, std::forward<Owner>(owner)};
  if constexpr (versioned) {
    block->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    block->managed.flags = flags;
  }
  auto* arrays = reinterpret_cast<std::int64_t*>(block + 1);
  detail::write_tensor(tensor, arrays, block->managed.dl_tensor);
  detail::rebase_for_consumers(block->managed.dl_tensor, storage_of(flags));
  block->managed.manager_ctx = block;
  block->managed.deleter = &block_type::destroy;
  return std::unique_ptr<Managed, managed_deleter>(&block->managed);
}

}  // namespace detail

/// Makes a managed tensor from a DLTensor. Copies shape and strides; fills in null strides.
/// The data must live as long as `owner`. For kDLOneAPI, `data` is at or below the view's
/// lowest address and `byte_offset` leads to the first element. For kDLCPU and CUDA, `data` is
/// the first element and `byte_offset` is 0, as in NumPy. Other device types keep both.
/// @param owner movable; keeps the data alive. The deleter destroys it once, on any thread, in
///        Python with or without the GIL. Its destructor must not throw and must not need the
///        GIL; for a Python object, pass a `python_owner` (python/owned_view.hpp)
/// @param flags bits of `flag`
/// @throws conversion_error if the tensor is not well formed; `owner` is then untouched
template <class Owner>
[[nodiscard]] managed_tensor to_managed_tensor(const DLTensor& tensor, Owner&& owner,
                                               std::uint64_t flags = 0) {
  return detail::to_managed<DLManagedTensorVersioned>(tensor, std::forward<Owner>(owner),
                                                      flags);
}

/// Makes a legacy managed tensor.
/// @throws conversion_error also `read_only`, or `dtype_unsupported` for padded elements
template <class Owner>
[[nodiscard]] legacy_managed_tensor to_legacy_managed_tensor(const DLTensor& tensor,
                                                             Owner&& owner,
                                                             std::uint64_t flags = 0) {
  return detail::to_managed<DLManagedTensor>(tensor, std::forward<Owner>(owner), flags);
}

/// Makes a managed tensor from a view: read-only if the elements are const, padded if they are
/// padded. An empty view keeps its `data`; a null handle is refused for any other view.
/// @throws conversion_error as `to_dlpack_tensor(view, device)`, and if the tensor is not well
///         formed; `owner` is then untouched
template <class View, class Owner, class = detail::required_view<View>>
[[nodiscard]] managed_tensor to_managed_tensor(const View& view, DLDevice device,
                                               Owner&& owner) {
  const auto tensor = detail::describe<detail::empty_data::handle>(view, device);
  return usm_dlpack::to_managed_tensor(tensor.get(), std::forward<Owner>(owner),
                                       detail::flags_of<View>());
}

/// Refuses at compile time a view without an owner of its memory.
template <class View, class Place, std::enable_if_t<detail::is_view<View>, int> = 0>
managed_tensor to_managed_tensor(const View&, const Place&) = delete;  // add its owner

/// Makes a legacy managed tensor, which cannot be read-only, from a view.
/// @throws conversion_error also `read_only` for const elements
template <class View, class Owner, class = detail::required_view<View>>
[[nodiscard]] legacy_managed_tensor to_legacy_managed_tensor(const View& view, DLDevice device,
                                                             Owner&& owner) {
  detail::check_legacy_flags(detail::flags_of<View>());
  const auto tensor = detail::describe<detail::empty_data::handle>(view, device);
  return usm_dlpack::to_legacy_managed_tensor(tensor.get(), std::forward<Owner>(owner),
                                              detail::flags_of<View>());
}

}  // namespace usm_dlpack
