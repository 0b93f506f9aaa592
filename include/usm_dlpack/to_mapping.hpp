// SPDX-License-Identifier: Apache-2.0
//
// Consumer: shape and strides of a well-formed tensor -> a layout mapping of the type that the
// view wants, however that type is made, or the reason why none can hold these strides.
#pragma once

#include <usm_dlpack/index_products.hpp>
#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/open_strides.hpp>
#include <usm_dlpack/overlap.hpp>
#include <usm_dlpack/strides_argument.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace usm_dlpack {

/// Whether a layout mapping holds zero and negative strides of dimensions that have
/// neighbours.
///
/// False where the mapping promises to be unique, as that of the standard `layout_stride` does
/// (P0009 `[mdspan.layout.stride]`). Specialise it as true for one that
/// promises this and still takes negative strides.
template <class Mapping>
inline constexpr bool holds_any_stride_v = !Mapping::is_always_unique();

namespace detail {

template <class Mapping>
inline constexpr bool made_from_extents =
    std::is_constructible_v<Mapping, typename Mapping::extents_type>;
/// Whether a mapping of any strides is also made from an offset, the index of its first
/// element.
template <class Mapping, bool = made_from_strides<Mapping> && holds_any_stride_v<Mapping>>
inline constexpr bool takes_offset = false;
template <class Mapping>
inline constexpr bool takes_offset<Mapping, true> =
    std::is_constructible_v<Mapping, typename Mapping::extents_type,
                            typename decltype(strides_argument<Mapping>())::type,
                            std::int64_t>;
/// Padded layouts are made from extents and the padded extent.
template <class Mapping>
inline constexpr bool made_from_padding =
    !has_static_padding<Mapping> &&
    std::is_constructible_v<Mapping, typename Mapping::extents_type,
                            typename Mapping::extents_type::index_type>;

/// Refuses a stride between neighbours that the layout's integers do not hold: one of another
/// type than the index type, which holds the whole span, or a negative one of an unsigned
/// type. Of a unique mapping, which takes none, that is refused as a negative one.
template <class Stride, class Mapping, std::size_t Rank>
void check_stride_type(const strided_shape<Rank>& given) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (given.shape[r] > 1 && (holds_any_stride_v<Mapping> || given.strides[r] > 0) &&
        !fits<Stride>(given.strides[r])) {
      refuse_index_type(indexed("strides", r), name_of_integer<Stride>(), given.strides[r]);
    }
  }
}

/// Refuses what breaks the precondition of a unique mapping: strides above 0, each at least
/// the extent of what the next smaller one steps through (P0009
/// `[mdspan.layout.stride.cons]`).
template <std::size_t Rank>
void check_unique_strides(const strided_shape<Rank>& given) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (given.shape[r] > 1 && given.strides[r] <= 0) {
      refuse(errc::layout_mismatch, indexed("strides", r),
             "a stride above 0, as a precondition of the view's layout",
             digits(given.strides[r]), "use usm_dlpack::layout_relaxed");
    }
  }
  if (!strides_are_nested(given.shape.data(), given.strides.data(), Rank)) {
    refuse(errc::layout_mismatch, "strides",
           "strides of which each is at least the next smaller one times its extent",
           "one that is less", "use usm_dlpack::layout_relaxed");
  }
}

/// The first dimension whose stride the mapping does not have, or the rank.
template <class Mapping, std::size_t Rank>
std::size_t first_other_stride(const Mapping& mapping, const strided_shape<Rank>& given) {
  std::size_t r = 0;
  while (r < Rank && (given.shape[r] <= 1 ||
                      given.strides[r] == static_cast<std::int64_t>(mapping.stride(r)))) {
    ++r;
  }
  return r;
}

/// The lowest index relative to the first one. @pre no offset overflows
template <std::size_t Rank>
std::int64_t lowest_of(const strided_shape<Rank>& given) {
  return span_of(given.shape.data(), given.strides.data(), Rank).lowest;
}

/// A mapping made from extents and strides; of negative strides also from the offset of the
/// first element, where it takes one: no index is negative then.
template <class Mapping, std::size_t Rank>
Mapping from_strides(const typename Mapping::extents_type& extents, strided_shape<Rank> given,
                     bool empty) {
  using stride_type = stride_argument<Mapping>;
  if (!empty) {
    check_stride_type<stride_type, Mapping>(given);
    if constexpr (!holds_any_stride_v<Mapping>) {
      check_unique_strides(given);
    }
    close_open_strides<stride_type>(given);
  } else if (!close_empty_strides<stride_type>(given) && !holds_any_stride_v<Mapping>) {
    refuse_product<stride_type>();
  }
  const auto strides =
      make_strides<Mapping>(given.strides.data(), std::make_index_sequence<Rank>{});
  if constexpr (takes_offset<Mapping>) {
    if (const std::int64_t lowest = empty ? 0 : lowest_of(given); lowest < 0) {
      return Mapping(extents, strides, -lowest);
    }
  }
  return Mapping(extents, strides);
}

/// Whether a mapping that was made with an offset steps as its strides say: one that has a
/// first index other than 0 may call itself not strided for that alone.
template <class Mapping, std::size_t Rank, std::size_t... Ranks>
bool steps_from_offset(const Mapping& mapping, const strided_shape<Rank>& given,
                       std::index_sequence<Ranks...>) {
  using index_type = typename Mapping::extents_type::index_type;
  const auto index_of_neighbour = [&](std::size_t r) {  // in dimension r, or itself at Rank
    return static_cast<std::int64_t>(mapping(static_cast<index_type>(Ranks == r)...));
  };
  bool same = lowest_of(given) < 0;
  for (std::size_t r = 0; same && r < Rank; ++r) {
    same = given.shape[r] <= 1 ||
           index_of_neighbour(r) - index_of_neighbour(Rank) == given.strides[r];
  }
  return same;
}

/// Whether a padded mapping may be made with a padded extent, which replaces that of the
/// dimension of stride 1: the last of `plain` (right) or the first (left), or either.
template <class Index, class Mapping, std::size_t Rank>
bool may_pad(const Mapping& plain, const strided_shape<Rank>& given, std::int64_t padding) {
  const bool left = plain.stride(0) == 1;
  const bool right = plain.stride(Rank - 1) == 1;
  return padding > 0 && (right || padding >= given.shape[0]) &&
         (left || padding >= given.shape[Rank - 1]) &&
         (!right || holds_padding<Index>(given, Rank - 1, padding)) &&
         (!left || holds_padding<Index>(given, 0, padding));
}

/// A mapping made from extents alone or from extents and a padded extent, whichever has the
/// strides.
template <class Mapping, std::size_t Rank>
Mapping from_extents(const typename Mapping::extents_type& extents,
                     const strided_shape<Rank>& given, bool empty) {
  using index_type = typename Mapping::extents_type::index_type;
  // P0009 `[mdspan.layout.right.cons]`; a broadcast may have more indices than elements.
  if (!holds_product<index_type>(given, Rank, 1) || !holds_padded_product<Mapping>(given)) {
    refuse_product<index_type>();
  }
  const Mapping plain(extents);
  if constexpr (made_from_padding<Mapping> && Rank >= 2) {
    const bool matches = empty || detail::first_other_stride(plain, given) == Rank;
    // The padded extent is the stride of some dimension that has neighbours.
    for (std::size_t r = 0; !matches && r < Rank; ++r) {
      if (given.shape[r] > 1 && may_pad<index_type>(plain, given, given.strides[r])) {
        const Mapping padded(extents, static_cast<index_type>(given.strides[r]));
        if (detail::first_other_stride(padded, given) == Rank) {
          return padded;
        }
      }
    }
  }
  return plain;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_strides(std::size_t r,
                                                                  std::int64_t expected,
                                                                  std::int64_t found) {
  refuse(errc::layout_mismatch, indexed("strides", r),
         digits(expected) + " elements for the view's layout", digits(found),
         "use layout_stride, or make the array contiguous");
}

/// Makes the mapping, and refuses strides that it does not have: a layout may be made from
/// extents that fix them, or from numbers that mean something else.
template <class Mapping, std::size_t Rank>
Mapping to_mapping(const typename Mapping::extents_type& extents,
                   const strided_shape<Rank>& given, bool empty) {
  static_assert(made_from_strides<Mapping> || made_from_extents<Mapping>,
                "layout: expected a mapping that is made from extents, or from extents and an "
                "array of strides, found another; construct the view by hand after validate");
  const Mapping made = [&] {
    if constexpr (made_from_strides<Mapping>) {
      return from_strides<Mapping>(extents, given, empty);
    } else {
      return from_extents<Mapping>(extents, given, empty);
    }
  }();
  if constexpr (Rank > 0) {  // mappings of rank 0 may have no `stride`
    if (!empty && !detail::is_strided(made)) {
      if constexpr (takes_offset<Mapping> && !Mapping::is_always_strided()) {
        if (detail::steps_from_offset(made, given, std::make_index_sequence<Rank>{})) {
          return made;
        }
      }
      refuse(errc::layout_mismatch, "strides",
             "extents for which the view's layout has strides", "others",
             "use layout_stride, or make the array contiguous");
    }
    const std::size_t other = empty ? Rank : detail::first_other_stride(made, given);
    if (other != Rank) {
      const auto expected = static_cast<std::int64_t>(made.stride(other));
      refuse_strides(other, expected, given.strides[other]);
    }
  }
  return made;
}

}  // namespace detail
}  // namespace usm_dlpack
