// SPDX-License-Identifier: Apache-2.0
//
// Producer: an mdspan-style view and the device that the caller vouches for -> a DLTensor
// wrapper.
#pragma once

#include <usm_dlpack/dlpack_tensor.hpp>
#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/stride_rule.hpp>
#include <usm_dlpack/view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class Index>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_offset(Index index) {
  refuse(errc::offset_out_of_range, "element_offset",
         "a first element within reach of a pointer", digits(index),
         "correct the mapping of the view");
}

/// Address of the first element of a view that has elements.
template <class View>
constexpr auto first_element(const View& view) {
  const auto index = first_index(view.mapping(), std::make_index_sequence<View::rank()>{});
  constexpr auto highest = std::numeric_limits<std::ptrdiff_t>::max();
  constexpr auto size = static_cast<std::int64_t>(sizeof(typename View::element_type));
  if (!fits_int64(index) || static_cast<std::int64_t>(index) > highest / size ||
      static_cast<std::int64_t>(index) < -(highest / size)) {
    refuse_offset(index);
  }
  const auto handle = view.data_handle();
  return handle == nullptr ? handle : handle + static_cast<std::ptrdiff_t>(index);
}

template <class Mapping>
constexpr void check_strided(const Mapping& mapping) {
  if (Mapping::is_always_strided() || mapping.is_strided()) {
    return;
  }
  refuse(errc::layout_not_strided, "layout", "a mapping whose is_strided() is true",
         "one that answers false", "copy the elements to a strided layout first");
}

/// What an empty view's `data` becomes: null as DLPack asks of a DLTensor, or left as it is,
/// which consumers of managed tensors need (dpctl, dpnp and PyTorch refuse null).
enum class empty_data { null, kept };

/// Whether a value is an extent of `DLTensor::shape`.
template <class Integer>
constexpr bool is_extent(Integer value) noexcept {
  return value >= Integer{0} && fits_int64(value);
}

/// Refuses the first extent or stride that no DLTensor holds. Out of line and from the view
/// itself, so that a view without one costs a branch, and keeps its numbers in registers.
template <class View>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_numbers(const View& view) {
  for (std::size_t r = 0; r < View::rank(); ++r) {
    static_cast<void>(to_extent(view.extent(r), r));
  }
  for (std::size_t r = 0; r < View::rank(); ++r) {
    static_cast<void>(to_stride(view.mapping().stride(r), r));
  }
  __builtin_unreachable();
}

/// The one reader of views: checks every extent and stride, and finds the first element.
template <class View, std::size_t... Ranks>
constexpr dlpack_tensor<View::rank()> describe(
    const View& view, DLDevice device, empty_data when_empty,
    [[maybe_unused]] std::index_sequence<Ranks...> ranks) {
  using array_type = typename dlpack_tensor<View::rank()>::array_type;
  [[maybe_unused]] bool empty = false;
  array_type shape{};
  array_type strides{};
  if constexpr (View::rank() != 0) {
    const auto& mapping = view.mapping();
    check_strided(mapping);
    const std::array<std::decay_t<decltype(view.extent(0))>, View::rank()> extents{
        view.extent(Ranks)...};
    const auto steps = strides_of(mapping, extents, ranks);
    if (!(is_extent(extents[Ranks]) & ...) || !(fits_int64(steps[Ranks]) & ...)) {
      refuse_numbers(view);
    }
    shape = {static_cast<std::int64_t>(extents[Ranks])...};
    strides = {static_cast<std::int64_t>(steps[Ranks])...};
    empty = ((extents[Ranks] == 0) | ...);
  }
  handle_of<View> first{};
  if (!empty) {
    first = first_element(view);
  } else if (when_empty == empty_data::kept) {
    first = view.data_handle();
  }
  // DLTensor has no pointer to const: constness is the managed tensor's flag, or the caller's
  // care.
  void* data = const_cast<void*>(static_cast<const volatile void*>(first));
  return {data, device, data_type_v<typename View::element_type>, shape, strides};
}
template <class View>
constexpr dlpack_tensor<View::rank()> describe(const View& view, DLDevice device,
                                               empty_data when_empty) {
  return describe(view, device, when_empty, std::make_index_sequence<View::rank()>{});
}

}  // namespace detail

/// Describes a view as a DLTensor of the given device, without a SYCL call or a heap
/// allocation.
///
/// `shape[r]` is `extent(r)`, `strides[r]` is `mapping().stride(r)` in elements, `data` is the
/// element whose indices are all zero (null if an extent is 0), `byte_offset` is 0; const and
/// volatile are cast away. A null handle is null data, also of elements. The wrapper owns
/// shape and strides; the data must outlive every use of the result. Source: DLPack
/// `DLTensor`; semantics of `cuda::to_dlpack_tensor`.
/// @param device taken as it is: the caller vouches that the memory belongs to it
/// @throws conversion_error `extent_out_of_range`, `stride_out_of_range`,
/// `offset_out_of_range`,
///         `layout_not_strided`
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] constexpr auto to_dlpack_tensor(const View& view, DLDevice device)
    -> dlpack_tensor<View::rank()> {
  return detail::describe(view, device, detail::empty_data::null);
}

}  // namespace usm_dlpack
