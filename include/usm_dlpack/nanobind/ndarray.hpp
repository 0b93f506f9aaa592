// SPDX-License-Identifier: Apache-2.0
//
// Makes views of arrays that nanobind imported as nb::ndarray. It reads nanobind's fields
// only; the checks are those of core/.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace usm_dlpack {
namespace detail {

namespace nb = nanobind;

/// A DLTensor that borrows the memory, shape and strides of an nb::ndarray.
template <class... Traits>
DLTensor tensor_of(const nb::ndarray<Traits...>& array) {
  DLTensor tensor{};
  const nb::dlpack::dtype dtype = array.dtype();
  tensor.data = const_cast<void*>(static_cast<const void*>(array.data()));
  tensor.device = {static_cast<DLDeviceType>(array.device_type()), array.device_id()};
  tensor.ndim = static_cast<std::int32_t>(array.ndim());
  tensor.dtype = {dtype.code, dtype.bits, dtype.lanes};
  tensor.shape = const_cast<std::int64_t*>(array.shape_ptr());
  tensor.strides = const_cast<std::int64_t*>(array.stride_ptr());
  return tensor;
}

}  // namespace detail

/// Makes a view of an array that nanobind imported, with the checks of
/// `to_mdspan(tensor, needs)`. The view lives as long as the array. An `nb::ndarray` does not
/// know that memory is read-only unless its type says so (`nb::ro`), which needs a view of
/// const elements. It does not know whether elements of fewer than 8 bits are padded either,
/// so views of those are refused.
template <class View, class... Traits>
[[nodiscard]] View to_mdspan(const nanobind::ndarray<Traits...>& array,
                             const requirements& needs = {}) {
  constexpr bool is_read_only = nanobind::ndarray<Traits...>::ReadOnly;
  static_assert(!is_read_only || detail::has_const_elements<View>,
                "view: expected const elements for a read-only nb::ndarray, found mutable "
                "ones; use a view of const elements");
  static_assert(data_type_v<detail::element_of<View>>.bits >= 8,
                "element_type: expected elements of 8 bits or more, found fewer, of which an "
                "nb::ndarray does not say whether they are padded; take the view itself");
  return usm_dlpack::to_mdspan<View>(detail::tensor_of(array), needs);
}

}  // namespace usm_dlpack
