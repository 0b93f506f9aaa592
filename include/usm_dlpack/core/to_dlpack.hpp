// SPDX-License-Identifier: Apache-2.0
//
// Producer: describes an mdspan-like view as a DLTensor of a device that the caller names. A
// rule that needs a device is in sycl/to_dlpack.hpp.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dlpack_tensor.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class Index>
USM_DLPACK_COLD void refuse_offset(Index index) {
  refuse(errc::out_of_range, "element_offset", "a first element within reach of a pointer",
         digits(index), "correct the mapping of the view");
}

/// Address of the element whose indices are all zero. @pre the view has elements
template <class View>
constexpr auto origin_address(const View& view) {
  const auto index =
      detail::origin_index(view.mapping(), std::make_index_sequence<View::rank()>{});
  constexpr auto highest = std::numeric_limits<std::ptrdiff_t>::max();
  constexpr auto size = static_cast<std::int64_t>(sizeof(typename View::element_type));
  if (!fits_int64(index) || static_cast<std::int64_t>(index) > highest / size ||
      static_cast<std::int64_t>(index) < -(highest / size)) {
    detail::refuse_offset(index);
  }
  const auto handle = view.data_handle();
  return handle == nullptr ? handle : handle + static_cast<std::ptrdiff_t>(index);
}

template <class Mapping>
constexpr void check_strided(const Mapping& mapping) {
  if (!detail::is_strided(mapping)) {
    refuse(errc::layout_not_strided, "layout", "a mapping whose is_strided() is true",
           "one that answers false", "copy the elements to a strided layout first");
  }
}

/// `data` of an empty view: null as DLPack specifies for a DLTensor, or the view's handle for
/// managed tensors, because dpctl, dpnp and PyTorch refuse null.
enum class empty_data { null, handle };

/// Casts a handle to `DLTensor::data`; only a managed tensor's flags can say read-only.
constexpr void* as_data(const volatile void* handle) noexcept {
  return const_cast<void*>(handle);
}

template <class Integer>
constexpr bool is_positive(Integer extent) noexcept {
  return extent > Integer{0} && fits_int64(extent);
}

/// Whether a mapping can compute the strides of an empty view: its index type holds the
/// product of the extents other than 0.
template <class Index, std::size_t Rank>
constexpr bool has_strides_if_empty(const std::array<std::int64_t, Rank>& shape) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent != 0 && multiply_overflows(product, extent, product)) {
      return false;
    }
  }
  return fits<Index>(product);
}

/// Describes an empty view. Refuses an extent that is out of range.
template <empty_data WhenEmpty, class View, std::size_t... Ranks>
constexpr dlpack_tensor<View::rank()> describe_empty(const View& view, DLDevice device,
                                                     std::index_sequence<Ranks...>) {
  using array_type = typename dlpack_tensor<View::rank()>::array_type;
  const auto& mapping = view.mapping();
  // Braces evaluate in order, so the first invalid number is refused.
  const array_type shape{to_extent(view.extent(Ranks), Ranks)...};
  array_type strides{};
  if (has_strides_if_empty<typename mapping_of<View>::index_type>(shape)) {
    strides = {to_stride(mapping.stride(Ranks), Ranks)...};
  } else {
    write_compact_strides(shape.data(), strides.data(), shape.size());
  }
  constexpr bool has_handle = WhenEmpty == empty_data::handle;
  return {has_handle ? detail::as_data(view.data_handle()) : nullptr, device,
          data_type_v<typename View::element_type>, shape, strides};
}

/// Checks every extent, then every stride, then the first element.
template <empty_data WhenEmpty, class View, std::size_t... Ranks>
constexpr dlpack_tensor<View::rank()> describe(const View& view, DLDevice device,
                                               std::index_sequence<Ranks...> ranks) {
  using array_type = typename dlpack_tensor<View::rank()>::array_type;
  [[maybe_unused]] const auto& mapping = view.mapping();
  if constexpr (View::rank() != 0) {
    detail::check_strided(mapping);
    if (!(is_positive(view.extent(Ranks)) && ...)) {
      return detail::describe_empty<WhenEmpty>(view, device, ranks);
    }
  }
  const array_type shape{static_cast<std::int64_t>(view.extent(Ranks))...};
  const array_type strides{to_stride(mapping.stride(Ranks), Ranks)...};
  return {detail::as_data(detail::origin_address(view)), device,
          data_type_v<typename View::element_type>, shape, strides};
}
template <empty_data WhenEmpty, class View>
constexpr dlpack_tensor<View::rank()> describe(const View& view, DLDevice device) {
  return detail::describe<WhenEmpty>(view, device, std::make_index_sequence<View::rank()>{});
}

}  // namespace detail

/// Describes a view as a DLTensor of a device, without SYCL calls or heap allocations.
///
/// `shape[r]` is `extent(r)`, `strides[r]` is `mapping().stride(r)` in elements, `data` is the
/// element whose indices are all zero (null if an extent is 0 or the handle is null),
/// `byte_offset` is 0; const and volatile are cast away. The data must outlive every use of
/// the result. Source: DLPack `DLTensor`; semantics of `cuda::to_dlpack_tensor`.
/// @param device unchecked: the memory must belong to it
/// @throws conversion_error `layout_not_strided`, `out_of_range`
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] constexpr auto to_dlpack_tensor(const View& view, DLDevice device)
    -> dlpack_tensor<View::rank()> {
  return detail::describe<detail::empty_data::null>(view, device);
}

/// Refuses at compile time a type that is not a view.
template <class NoMdspan, class... Place,
          std::enable_if_t<!detail::is_view<NoMdspan>, int> = 0>
void to_dlpack_tensor(const NoMdspan&, const Place&...) = delete;  // use mdspan(pointer, 4, 6)

}  // namespace usm_dlpack
