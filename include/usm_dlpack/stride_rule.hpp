// SPDX-License-Identifier: Apache-2.0
//
// Recognises layouts whose strides are products of extents, right to left or left to right.
// Asking such a mapping for each stride costs a loop each; one running product gives all of
// them. Needs no mdspan implementation: the layout itself is asked, at compile time.
#pragma once

#include <usm_dlpack/error.hpp>

#include <array>
#include <cstddef>
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

/// The extents of a probe: of the same index type as those of a view, all static.
template <class Extents>
struct probe_extents {};
template <template <class, std::size_t...> class Extents, class Index, std::size_t... Sizes>
struct probe_extents<Extents<Index, Sizes...>> {
  template <std::size_t... Others>
  using type = Extents<Index, Others...>;
};

template <class Mapping, std::size_t... Sizes>
using probe_of = typename Mapping::layout_type::template mapping<
    typename probe_extents<typename Mapping::extents_type>::template type<Sizes...>>;

/// Whether the layout is one of a padded extent: P2642 gives its mappings this member.
template <class Mapping, class = void>
inline constexpr bool has_padding = false;
template <class Mapping>
inline constexpr bool has_padding<Mapping, std::void_t<decltype(Mapping::padding_value)>> =
    Mapping::is_always_unique() && Mapping::is_always_strided();

/// Whether the extents alone decide the strides, and the strides reach every element once:
/// then they are products of extents in some order.
template <class Probe>
inline constexpr bool is_compact = std::is_empty_v<Probe> && Probe::is_always_unique() &&
                                   Probe::is_always_exhaustive() && Probe::is_always_strided();

/// The rule that the strides of a mapping over the extents (First, Middle, Last) show.
template <class Probe, std::size_t First, std::size_t Middle, std::size_t Last>
constexpr stride_rule shown_rule() {
  using extents_type = typename Probe::extents_type;
  constexpr bool padded = has_padding<Probe>;
  if constexpr ((padded || is_compact<Probe>) &&
                std::is_constructible_v<Probe, extents_type>) {
    const Probe probe(extents_type{});
    const auto stride = [&](std::size_t r) {
      return static_cast<std::size_t>(probe.stride(r));
    };
    const auto steps = [&](std::size_t extent) {
      return padded ? stride(1) >= extent : stride(1) == extent;
    };
    if (stride(2) == 1 && steps(Last) && stride(0) == stride(1) * Middle) {
      return stride_rule::right;
    }
    if (stride(0) == 1 && steps(First) && stride(2) == stride(1) * Middle) {
      return stride_rule::left;
    }
  }
  return stride_rule::each;
}

template <class Mapping, class = void>
struct rule_of {
  static constexpr stride_rule value = stride_rule::each;
};
/// Chosen where a mapping can be probed at compile time. Growing and shrinking extents must
/// show the same rule: then it is not one that goes by their size.
template <class Mapping>
struct rule_of<Mapping, std::enable_if_t<shown_rule<probe_of<Mapping, 2, 3, 5>, 2, 3, 5>() ==
                                         shown_rule<probe_of<Mapping, 5, 3, 2>, 5, 3, 2>()>> {
  static constexpr stride_rule value = shown_rule<probe_of<Mapping, 2, 3, 5>, 2, 3, 5>();
};

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
      product = static_cast<stride_type>(product * extents[r]);
    };
    // Expanded instead of a loop, because compilers do not unroll one of this length.
    ((Ranks + 1 < Rank ? place(right ? Rank - 2 - Ranks : Ranks + 1) : void()), ...);
    return found;
  }
}

}  // namespace usm_dlpack::detail
