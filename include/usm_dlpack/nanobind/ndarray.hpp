// SPDX-License-Identifier: Apache-2.0
//
// Conversions between views and nanobind's nb::ndarray.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/sycl/queues.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace usm_dlpack {
namespace detail {

/// A DLTensor that borrows the memory, shape and strides of an nb::ndarray.
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

/// The extents that an nb::ndarray type names, -1 for a free one, followed by one more -1.
template <ssize_t... Extents>
constexpr std::array<std::int64_t, sizeof...(Extents) + 1> extents_said(
    nb::shape<Extents...>) noexcept {
  return {Extents..., -1};
}
constexpr std::array<std::int64_t, 1> extents_said(nb::detail::unused) noexcept {
  return {-1};
}

template <class Array, std::size_t Rank>
void check_extents_said(const strided_shape<Rank>& tensor) {
  constexpr auto said = detail::extents_said(typename Array::Config::Shape{});
  for (std::size_t r = 0; r + 1 < said.size(); ++r) {
    if (said[r] >= 0 && said[r] != tensor.shape[r]) {
      refuse(errc::extent_mismatch, indexed("shape", r),
             digits(said[r]) + " for the nb::shape of the nb::ndarray",
             digits(tensor.shape[r]),
             "leave that extent of the nb::ndarray free, or return an array of its shape");
    }
  }
}

/// Compares the order that an nb::ndarray type names with the strides: nanobind trusts the
/// named order and ignores the strides.
template <class Array, std::size_t Rank>
void check_order_said(const strided_shape<Rank>& tensor) {
  constexpr bool is_right = Array::Order == 'C', is_left = Array::Order == 'F';
  if constexpr (is_right || is_left) {
    if (std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0) {
      return;  // no element to be misplaced
    }
    std::array<std::int64_t, Rank> compact{};
    write_compact_strides(tensor.shape.data(), compact.data(), Rank, is_left);
    for (std::size_t n = 0; n < Rank; ++n) {
      const std::size_t r = is_left ? n : Rank - 1 - n;
      if (tensor.shape[r] != 1 && tensor.strides[r] != compact[r]) {
        refuse(errc::layout_mismatch, indexed("strides", r),
               digits(compact[r]) + (is_left ? " for nb::f_contig" : " for nb::c_contig"),
               digits(tensor.strides[r]),
               "leave the order of the nb::ndarray free, or return an array of that order");
      }
    }
  }
}

template <class Array, class View>
constexpr void require_ndarray_for() {
  constexpr nb::dlpack::dtype said = nb::dtype<typename Array::Scalar>();
  static_assert(
      Array::ReadOnly || !has_const_elements<View>,
      "Array: expected a read-only nb::ndarray for a view of const elements, found a "
      "writable one; add nb::ro, or make its element type const");
  static_assert(!is_subbyte_padded_v<element_of<View>>,
                "element_type: expected packed elements, as an nb::ndarray implies, found "
                "padded ones of fewer than 8 bits; return the owned_view itself");
  static_assert(said.bits == 0 || same_data_type({said.code, said.bits, said.lanes},
                                                 data_type_v<element_of<View>>),
                "Array: expected the dtype of the view's elements, found another; name the "
                "view's element type, or none");
  static_assert(Array::Config::N < 0 || Array::Config::N == static_cast<int>(View::rank()),
                "Array: expected the rank of the view, found another; use the nb::ndim of the "
                "view's rank, or none");
  static_assert(Array::DeviceType == nb::device::none::value ||
                    Array::DeviceType == nb::device::oneapi::value,
                "Array: expected the device nb::device::oneapi, found another; name that one, "
                "or none");
}

}  // namespace detail

/// Makes a view of an array that nanobind imported, with the checks of
/// `to_mdspan(tensor, wanted)`. The view lives as long as the array. An `nb::ndarray` does not
/// know that memory is read-only unless its type says so (`nb::ro`), which needs a view of
/// const elements. It does not know whether elements of fewer than 8 bits are padded either,
/// so views of those are refused.
template <class View, class... Traits>
[[nodiscard]] View to_mdspan(const nanobind::ndarray<Traits...>& array,
                             const requirements& wanted = {}) {
  constexpr bool is_read_only = nanobind::ndarray<Traits...>::ReadOnly;
  static_assert(!is_read_only || detail::has_const_elements<View>,
                "view: expected const elements for a read-only nb::ndarray, found mutable "
                "ones; use a view of const elements");
  static_assert(data_type_v<detail::element_of<View>>.bits >= 8,
                "element_type: expected elements of 8 bits or more, found fewer, of which an "
                "nb::ndarray does not say whether they are padded; take the view itself");
  return usm_dlpack::to_mdspan<View>(detail::tensor_of(array), wanted);
}

/// Makes an `nb::ndarray` that takes over a view with an owner. The compiler compares dtype,
/// rank, device and `nb::ro` for const elements with the view's type; extents, order and
/// read-only memory are checked at run time. An `nb::ndarray` knows no queue, so this waits
/// for the work of the view's queue, without the GIL.
/// @tparam Array an `nb::ndarray<...>` of the device `nb::device::oneapi`
/// @throws conversion_error `request_unsupported` if `from` was moved from or released,
///         `read_only`, `extent_mismatch`, `layout_mismatch`; `from` is then untouched
template <class Array, class View>
[[nodiscard]] Array to_ndarray(owned_view<View>&& from) {
  detail::require_ndarray_for<Array, View>();
  if (from.managed() == nullptr) {
    detail::refuse(errc::request_unsupported, "from", "a view with an owner",
                   "one that was moved from or released", "pass it before that");
  }
  if (!Array::ReadOnly && (from.managed()->flags & flag::read_only) != 0) {
    detail::refuse(errc::read_only, "flags", "writable memory, as the nb::ndarray says",
                   "read-only memory", "add nb::ro to the nb::ndarray, or return a copy");
  }
  const auto known = detail::read_strides<View::rank()>(from.managed()->dl_tensor);
  detail::check_extents_said<Array>(known);
  detail::check_order_said<Array>(known);
  detail::queue_functions_now().wait(from.queue());
  managed_tensor held = std::move(from).release();
  DLManagedTensorVersioned* owned = held.get();
  const nanobind::capsule owner(owned, [](void* managed) noexcept {
    managed_tensor(static_cast<DLManagedTensorVersioned*>(managed));
  });
  held.release();
  const DLTensor& shown = owned->dl_tensor;
  std::size_t shape[View::rank() + 1] = {};
  std::copy(known.shape.begin(), known.shape.end(), shape);
  auto* first = static_cast<unsigned char*>(shown.data) + shown.byte_offset;
  return Array(first, View::rank(), shape, owner, known.strides.data(),
               {shown.dtype.code, shown.dtype.bits, shown.dtype.lanes},
               static_cast<int>(shown.device.device_type), shown.device.device_id);
}

}  // namespace usm_dlpack
