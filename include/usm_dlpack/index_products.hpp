// SPDX-License-Identifier: Apache-2.0
//
// What a mapping counts beyond single extents and strides, products of extents, and whether
// its index type holds them.
#pragma once

#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/stride_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace usm_dlpack::detail {

/// Whether the padding stands in the layout's type: then extents alone make the mapping.
template <class Mapping, bool = names_padding<Mapping>>
inline constexpr bool has_static_padding = false;
template <class Mapping>
inline constexpr bool has_static_padding<Mapping, true> =
    static_cast<std::size_t>(Mapping::padding_value) != static_cast<std::size_t>(-1);

template <class Index>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_product() {
  refuse(errc::index_type_too_small, "shape",
         "a product that the view's index type " + name_of_integer<Index>() + " holds",
         "a larger one", "use extents of a wider index type, or usm_dlpack::layout_relaxed");
}

/// Whether an index type holds a count.
template <class Index>
constexpr bool holds(std::uint64_t value) noexcept {
  if constexpr (sizeof(Index) > sizeof value) {
    return true;
  } else {
    return value <= static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  }
}

/// Whether the index type holds a number above 0 times all extents but that of one dimension,
/// up to the first empty one: by P0009 the product is then 0, and yet libc++ counts and
/// aborts.
template <class Index, std::size_t Rank>
bool holds_product(const strided_shape<Rank>& given, std::size_t except,
                   std::int64_t product) {
  auto all = static_cast<std::uint64_t>(product);
  for (std::size_t r = 0; r < Rank && given.shape[r] != 0; ++r) {
    const auto extent = static_cast<std::uint64_t>(given.shape[r]);
    if (r != except && __builtin_mul_overflow(all, extent, &all)) {
      return false;
    }
  }
  return holds<Index>(all);
}

/// Whether the index type holds one extent, rounded up to the padding of the layout, times the
/// others: as a mapping counts that is made of extents, where that one is contiguous.
template <class Mapping, std::size_t Rank>
bool holds_rounded(const strided_shape<Rank>& given, std::size_t unit) {
  using index_type = typename Mapping::extents_type::index_type;
  std::int64_t rounded = given.shape[unit];
  if constexpr (has_static_padding<Mapping>) {
    constexpr auto padding = static_cast<std::int64_t>(Mapping::padding_value);
    if (padding > 1) {
      if (__builtin_add_overflow(rounded, padding - 1, &rounded)) {
        return false;
      }
      rounded = rounded / padding * padding;
    }
  }
  return holds_product<index_type>(given, unit, rounded);
}

/// The same of a padded layout's first or last extent, whichever is contiguous by the layout's
/// rule, or else of either. True of other layouts.
template <class Mapping, std::size_t Rank>
bool holds_padded_product([[maybe_unused]] const strided_shape<Rank>& given) {
  if constexpr ((has_padding<Mapping> || has_static_padding<Mapping>) && Rank > 1) {
    constexpr stride_rule rule = stride_rule_v<Mapping>;
    return (rule == stride_rule::right || holds_rounded<Mapping>(given, 0)) &&
           (rule == stride_rule::left || holds_rounded<Mapping>(given, Rank - 1));
  } else {
    return true;
  }
}

/// `padding` rounded up from an extent, as padded mappings compute it: at most their sum.
template <class Index, std::size_t Rank>
bool holds_padding(const strided_shape<Rank>& given, std::size_t unit, std::int64_t padding) {
  std::int64_t sum = 0;
  return !__builtin_add_overflow(given.shape[unit], padding, &sum) &&
         holds_product<Index>(given, unit, sum);
}

}  // namespace usm_dlpack::detail
