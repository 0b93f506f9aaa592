// SPDX-License-Identifier: Apache-2.0
//
// Recognises layouts whose strides are products of extents, right to left or left to right.
// Asking such a mapping for each stride costs a loop each; one running product gives all of
// them. Needs no mdspan implementation: the layout itself is asked, at compile time.
#pragma once

#include <usm_dlpack/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// How the strides of a layout follow from the extents.
enum class stride_rule {
  each,   ///< by no known rule: the mapping is asked for each
  right,  ///< 1 for the last dimension; before the last two, the product of the next
          ///< dimension's extent and stride
  left,   ///< the mirror image: 1 for the first dimension, products after the first two
};

/// How much larger the extents of a probe are: each, and the first one once more.
struct probe_scale {
  std::uint64_t each = 1;
  std::uint64_t first = 1;
};

/// Whether an index type holds the product of the numbers from 2 on, as many as the rank and
/// made larger, also if one of them is rounded up to a multiple of a padding.
template <class Index>
constexpr bool holds_probe(std::size_t rank, std::uint64_t padding, probe_scale scale = {}) {
  std::uint64_t left = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  if (padding > 1) {
    left = padding > left ? 0 : left / (padding + rank);
  }
  for (std::size_t r = 0; r < rank; ++r) {
    left /= (r + 2) * scale.each;
  }
  return left / scale.first != 0;
}

/// How much larger a probe may be: as far as the index type and 31 bits hold it, because a
/// layout may take no static extents beyond, and no further than loops over it end soon.
template <class Index>
constexpr probe_scale largest_scale(std::size_t rank, std::uint64_t padding) {
  probe_scale scale;
  const auto grow = [&](std::uint64_t& factor) {
    bool grown = true;
    while (grown && scale.each * scale.first < 256) {
      factor *= 2;
      grown = holds_probe<Index>(rank, padding, scale) &&
              holds_probe<std::int32_t>(rank, padding, scale);
      factor /= grown ? 1 : 2;
    }
  };
  grow(scale.each);
  grow(scale.first);
  return scale;
}

/// The extents of two probes of a view's rank and index type, a small and a large one: all
/// static, no two the same, so that a product says which extents it is of. None where the
/// index type does not hold it.
template <class Extents, std::uint64_t Padding,
          class Ranks = std::make_index_sequence<Extents::rank()>, class = void>
struct probe_extents {};
template <template <class, std::size_t...> class Extents, class Index, std::size_t... Sizes,
          std::uint64_t Padding, std::size_t... Ranks>
struct probe_extents<Extents<Index, Sizes...>, Padding, std::index_sequence<Ranks...>,
                     std::enable_if_t<holds_probe<Index>(sizeof...(Ranks), Padding)>> {
  static constexpr probe_scale scale = largest_scale<Index>(sizeof...(Ranks), Padding);
  using growing = Extents<Index, (Ranks + 2)...>;
  using shrinking = Extents<Index, (Ranks == 0 ? scale.first : 1) * scale.each *
                                       (sizeof...(Ranks) + 1 - Ranks)...>;
};

template <class Mapping, class Extents>
using probe_of = typename Mapping::layout_type::template mapping<Extents>;

/// Whether each mapping keeps a padding of its own: g++ takes its name for a constant that is
/// wrong, and not for one that is not there.
template <class Mapping, class = void>
inline constexpr bool keeps_padding = false;
template <class Mapping>
inline constexpr bool keeps_padding<
    Mapping, std::enable_if_t<std::is_member_pointer_v<decltype(&Mapping::padding_value)>>> =
    true;

template <std::size_t>
using if_number = void;

/// Whether a mapping has the integral constant of padded layouts (P2642).
template <class Mapping, class = void, bool = keeps_padding<Mapping>>
inline constexpr bool names_padding = false;
template <class Mapping>
inline constexpr bool names_padding<
    Mapping, if_number<static_cast<std::size_t>(Mapping::padding_value)>, false> =
    std::is_integral_v<decltype(Mapping::padding_value)>;

/// Whether the layout is one of a padded extent.
template <class Mapping, bool = names_padding<Mapping>>
inline constexpr bool has_padding = false;
template <class Mapping>
inline constexpr bool has_padding<Mapping, true> =
    Mapping::is_always_unique() && Mapping::is_always_strided();

/// The padding that stands in a layout's type, or 0.
template <class Mapping>
constexpr std::uint64_t padding_of() {
  if constexpr (has_padding<Mapping>) {
    constexpr auto padding = static_cast<std::size_t>(Mapping::padding_value);
    return padding == static_cast<std::size_t>(-1) ? 0 : padding;
  } else {
    return 0;
  }
}

template <class Mapping>
using probes_of = probe_extents<typename Mapping::extents_type, padding_of<Mapping>()>;

/// Whether the strides reach every element once: then they are products of extents in some
/// order.
template <class Mapping, class = void>
inline constexpr bool is_compact = false;
template <class Mapping>
inline constexpr bool is_compact<
    Mapping, std::enable_if_t<Mapping::is_always_unique() && Mapping::is_always_exhaustive() &&
                              Mapping::is_always_strided()>> = true;

/// Whether the strides of a probe are products of its extents, taken in an order of
/// dimensions.
/// @param at gives the dimension at each place of that order, the one of stride 1 first
template <class Probe, class At>
constexpr bool follows([[maybe_unused]] const Probe& probe, [[maybe_unused]] const At& at) {
  using extents_type = typename Probe::extents_type;
  bool same = true;
  if constexpr (extents_type::rank() != 0) {  // of rank 0, a mapping has no strides to ask for
    std::size_t product = 1;
    for (std::size_t place = 0; place < extents_type::rank(); ++place) {
      const auto stride = static_cast<std::size_t>(probe.stride(at(place)));
      // A padded layout has a gap behind the first of them, and none after that.
      const bool is_step =
          place == 1 && has_padding<Probe> ? stride >= product : stride == product;
      same = same && is_step;
      product = stride * extents_type::static_extent(at(place));
    }
  }
  return same;
}

/// The rule that the strides of a mapping over static extents show.
template <class Probe>
constexpr stride_rule shown_rule() {
  using extents_type = typename Probe::extents_type;
  if constexpr ((has_padding<Probe> || (std::is_empty_v<Probe> && is_compact<Probe>)) &&
                std::is_constructible_v<Probe, extents_type>) {
    const Probe probe(extents_type{});
    if (follows(probe, [](std::size_t place) { return extents_type::rank() - 1 - place; })) {
      return stride_rule::right;
    }
    if (follows(probe, [](std::size_t place) { return place; })) {
      return stride_rule::left;
    }
  }
  return stride_rule::each;
}

template <class Mapping, class = void>
struct probed_rule {
  static constexpr stride_rule value = stride_rule::each;
};
/// Chosen where a mapping can be probed at compile time. Growing and shrinking extents, small
/// and large ones, must show the same rule: then it is not one that goes by their size. The
/// probes are of the mapping's own rank, because a layout may have a rule for each.
template <class Mapping>
struct probed_rule<
    Mapping, std::enable_if_t<
                 shown_rule<probe_of<Mapping, typename probes_of<Mapping>::growing>>() ==
                 shown_rule<probe_of<Mapping, typename probes_of<Mapping>::shrinking>>()>> {
  static constexpr stride_rule value =
      shown_rule<probe_of<Mapping, typename probes_of<Mapping>::growing>>();
};

template <class Mapping, class = void>
struct rule_of {
  static constexpr stride_rule value = stride_rule::each;
};
/// Probed only if the mapping itself, and not just one of static extents, may follow a rule.
template <class Mapping>
struct rule_of<Mapping, std::enable_if_t<has_padding<Mapping> || is_compact<Mapping>>>
    : probed_rule<Mapping> {};

/// The rule of a mapping's layout.
template <class Mapping>
inline constexpr stride_rule stride_rule_v = rule_of<Mapping>::value;

/// The strides of a mapping whose extents are given, by one running product where a rule
/// allows it.
template <class Mapping, class Extent, std::size_t Rank, std::size_t... Ranks>
constexpr auto strides_of(const Mapping& mapping,
                          [[maybe_unused]] const std::array<Extent, Rank>& extents,
                          std::index_sequence<Ranks...>) {
  using stride_type = std::decay_t<decltype(mapping.stride(0))>;
  using strides = std::array<stride_type, Rank>;
  constexpr stride_rule rule = stride_rule_v<Mapping>;
  if constexpr (rule == stride_rule::each || Rank < 3) {
    return strides{mapping.stride(Ranks)...};
  } else {
    constexpr bool right = rule == stride_rule::right;
    strides found{};
    found[right ? Rank - 1 : 0] = 1;
    stride_type product = mapping.stride(right ? Rank - 2 : 1);
    const auto place = [&](std::size_t r) {
      found[r] = product;
      // Of an empty view the product may be too large, and is not looked at.
      static_cast<void>(__builtin_mul_overflow(product, extents[r], &product));
    };
    // Expanded instead of a loop, because compilers do not unroll one of this length.
    ((Ranks + 1 < Rank ? place(right ? Rank - 2 - Ranks : Ranks + 1) : void()), ...);
    return found;
  }
}

}  // namespace usm_dlpack::detail
