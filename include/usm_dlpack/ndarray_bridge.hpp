// SPDX-License-Identifier: Apache-2.0
//
// Between views and nanobind's own arrays: for functions that take or return an nb::ndarray.
#pragma once

#include <usm_dlpack/owned_view.hpp>
#include <usm_dlpack/usm_mdspan.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace usm_dlpack {
namespace detail {

/// The DLTensor that an nb::ndarray shows: the same memory, shape and strides.
template <class... Traits>
DLTensor tensor_of(const nb::ndarray<Traits...>& array) {
  DLTensor shown{};
  const nb::dlpack::dtype dtype = array.dtype();
  shown.data = const_cast<void*>(static_cast<const void*>(array.data()));
  shown.device = {static_cast<DLDeviceType>(array.device_type()), array.device_id()};
  shown.ndim = static_cast<std::int32_t>(array.ndim());
  shown.dtype = {dtype.code, dtype.bits, dtype.lanes};
  shown.shape = const_cast<std::int64_t*>(array.shape_ptr());
  shown.strides = const_cast<std::int64_t*>(array.stride_ptr());
  return shown;
}

}  // namespace detail

/// Makes a view of what nanobind has imported, proved as `to_mdspan(tensor, wanted)` proves.
/// The view lives as long as the array. An `nb::ndarray` does not know that memory is
/// read-only unless its type says so (`nb::ro`), and then needs a view of const elements.
/// @throws conversion_error as `validate` and `to_mdspan`
template <class View, class... Traits>
[[nodiscard]] View to_mdspan(const nanobind::ndarray<Traits...>& array,
                             const requirements& wanted = {}) {
  constexpr bool is_read_only = nanobind::ndarray<Traits...>::ReadOnly;
  static_assert(!is_read_only || detail::has_const_elements<View>,
                "view: expected const elements for a read-only nb::ndarray, found mutable "
                "ones; use a view of const elements");
  return usm_dlpack::to_mdspan<View>(detail::tensor_of(array), wanted);
}

/// Makes an `nb::ndarray` of a view with an owner, which it takes over.
/// @tparam Array an `nb::ndarray<...>` of the device `nb::device::oneapi`
template <class Array, class View>
[[nodiscard]] Array to_ndarray(owned_view<View>&& from) {
  managed_tensor held = std::move(from).release();
  if (held == nullptr) {
    detail::refuse(errc::request_unsupported, "from", "a view with an owner",
                   "one that was moved from or released", "pass it before that");
  }
  DLManagedTensorVersioned* owned = held.get();
  const nanobind::capsule owner(owned, [](void* managed) noexcept {
    managed_tensor(static_cast<DLManagedTensorVersioned*>(managed));
  });
  held.release();
  const DLTensor& shown = owned->dl_tensor;
  const auto rank = static_cast<std::size_t>(shown.ndim);
  std::size_t shape[View::rank() + 1] = {};
  for (std::size_t r = 0; r < rank; ++r) {
    shape[r] = static_cast<std::size_t>(shown.shape[r]);
  }
  auto* first = static_cast<unsigned char*>(shown.data) + shown.byte_offset;
  return Array(first, rank, shape, owner, shown.strides,
               {shown.dtype.code, shown.dtype.bits, shown.dtype.lanes},
               static_cast<int>(shown.device.device_type), shown.device.device_id);
}

}  // namespace usm_dlpack
