// SPDX-License-Identifier: Apache-2.0
//
// Consumer: a view of an ordinary tensor, with every check that the full conversion makes, in
// one pass. It takes nothing that the full conversion refuses, and refuses nothing itself:
// what it does not take, that one decides, with its order of checks and its sentences.
#pragma once

#include <usm_dlpack/ordinary_strides.hpp>
#include <usm_dlpack/structure.hpp>
#include <usm_dlpack/to_mapping.hpp>
#include <usm_dlpack/view.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Whether the strides of a layout are the extents' alone, and which.
template <class Mapping>
inline constexpr bool is_compact_layout =
    stride_rule_v<Mapping> != stride_rule::each && !has_padding<Mapping> &&
    made_from_extents<Mapping> && !made_from_strides<Mapping>;

/// Whether a view has a layout and an element type that the pass below knows.
template <class View, class Mapping = typename View::mapping_type>
inline constexpr bool may_be_ordinary =
    data_type_v<typename View::element_type>.bits >= 8 &&
    dtype_is_known(data_type_v<typename View::element_type>) &&
    (is_compact_layout<Mapping> ||
     (made_from_strides<Mapping> && !holds_any_stride_v<Mapping>));

inline bool is_exactly(DLDataType dtype, DLDataType wanted) noexcept {
  std::uint32_t bits = 0;
  std::uint32_t wanted_bits = 0;
  static_assert(sizeof(DLDataType) == sizeof bits, "one comparison instead of three");
  std::memcpy(&bits, &dtype, sizeof bits);
  std::memcpy(&wanted_bits, &wanted, sizeof bits);
  return bits == wanted_bits;
}

template <class Extents, std::size_t... Ranks>
constexpr bool has_static_extents([[maybe_unused]] const std::int64_t* shape,
                                  std::index_sequence<Ranks...>) noexcept {
  [[maybe_unused]] constexpr auto dynamic =
      static_cast<std::size_t>(-1);  // every mdspan's dynamic_extent
  return ((Extents::static_extent(Ranks) == dynamic ||
           static_cast<std::uint64_t>(shape[Ranks]) == Extents::static_extent(Ranks)) &&
          ...);
}

/// An upper bound of the elements that an ordinary tensor spans, or 0.
template <class Mapping, class Ranks>
constexpr std::int64_t ordinary_span(const DLTensor& tensor, Ranks ranks) noexcept {
  if constexpr (is_compact_layout<Mapping>) {
    return compact_size<stride_rule_v<Mapping>>(tensor.shape, tensor.strides, ranks);
  } else {
    const auto reach = nested_reach<stride_rule::right>(tensor.shape, tensor.strides, ranks);
    return reach != 0 ? reach
                      : nested_reach<stride_rule::left>(tensor.shape, tensor.strides, ranks);
  }
}

/// Address of the first element of a tensor that is ordinary and that the view's type holds;
/// 0 where it is not.
template <class View, std::size_t... Ranks>
std::uintptr_t ordinary_first(const DLTensor& tensor,
                              std::index_sequence<Ranks...> ranks) noexcept {
  using element_type = typename View::element_type;
  using extents_type = typename View::extents_type;
  constexpr DLDataType wanted = data_type_v<element_type>;
  constexpr std::size_t rank = sizeof...(Ranks);
  if (tensor.ndim != static_cast<std::int32_t>(rank) || !is_exactly(tensor.dtype, wanted) ||
      tensor.data == nullptr ||
      (rank != 0 && (tensor.shape == nullptr || tensor.strides == nullptr)) ||
      !has_static_extents<extents_type>(tensor.shape, ranks)) {
    return 0;
  }
  const std::int64_t span = ordinary_span<typename View::mapping_type>(tensor, ranks);
  constexpr std::uintptr_t scalar = element_alignment(wanted);
  constexpr std::uintptr_t alignment =
      scalar > alignof(element_type) ? scalar : alignof(element_type);
  std::int64_t nbytes = 0;
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
  if (span == 0 || !fits<typename extents_type::index_type>(span) ||
      __builtin_mul_overflow(span, static_cast<std::int64_t>(sizeof(element_type)), &nbytes) ||
      __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset,
                             &first) ||
      __builtin_add_overflow(first, static_cast<std::uintptr_t>(nbytes), &end) ||
      (first & (alignment - 1)) != 0) {
    return 0;
  }
  return first;
}

/// The mapping of an ordinary tensor.
template <class Mapping, std::size_t... Ranks>
Mapping ordinary_mapping([[maybe_unused]] const DLTensor& tensor,
                         std::index_sequence<Ranks...>) {
  using extents_type = typename Mapping::extents_type;
  using index_type = typename extents_type::index_type;
  const extents_type extents(static_cast<index_type>(tensor.shape[Ranks])...);
  if constexpr (is_compact_layout<Mapping>) {
    return Mapping(extents);
  } else {
    auto strides = strides_argument<Mapping>();
    using stride_type = std::decay_t<decltype(strides[0])>;
    ((strides[Ranks] = static_cast<stride_type>(tensor.strides[Ranks])), ...);
    return Mapping(extents, strides);
  }
}

/// Whether a mapping has a tensor's strides: one made from numbers may take them for something
/// else.
template <class Mapping, std::size_t... Ranks>
bool has_strides([[maybe_unused]] const Mapping& mapping,
                 [[maybe_unused]] const DLTensor& tensor, std::index_sequence<Ranks...>) {
  return is_compact_layout<Mapping> ||
         ((static_cast<std::int64_t>(mapping.stride(Ranks)) == tensor.strides[Ranks]) && ...);
}

}  // namespace usm_dlpack::detail
