// SPDX-License-Identifier: Apache-2.0
//
// Makes any layout mapping from the shape and strides of a well-formed tensor, or refuses
// strides that the mapping cannot have.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace usm_dlpack {

/// Whether a mapping may have zero and negative strides in dimensions of extent above 1.
///
/// False if the mapping is always unique (`layout_stride`, P0009 `[mdspan.layout.stride]`).
/// Specialise it as true for an always unique mapping that takes negative strides.
template <class Mapping>
inline constexpr bool accepts_any_stride_v = !Mapping::is_always_unique();

namespace detail {

// --- How a mapping takes its strides

/// The integer type of one stride: of `strides[0]` or `strides.stride(0)`.
template <class Strides>
auto shown_stride(int) -> std::decay_t<decltype(std::declval<const Strides&>()[0])>;
template <class Strides>
auto shown_stride(long) -> decltype(std::declval<const Strides&>().stride(0));
template <class Strides>
using stride_of = decltype(shown_stride<Strides>(0));

template <class Strides, std::size_t>
using stride_of_each = stride_of<Strides>;

/// Whether a mapping can be made from extents and `Strides`, and `Strides` from one integer
/// for each dimension.
template <class Mapping, class Strides, class Ranks, class = void>
inline constexpr bool takes_strides = false;
template <class Mapping, class Strides, std::size_t... Ranks>
inline constexpr bool takes_strides<
    Mapping, Strides, std::index_sequence<Ranks...>,
    std::void_t<decltype(Strides{std::declval<stride_of_each<Strides, Ranks>>()...})>> =
    std::is_constructible_v<Mapping, typename Mapping::extents_type, Strides>;

template <class Mapping>
auto own_strides(int) -> std::decay_t<decltype(std::declval<const Mapping&>().strides())>;
template <class Mapping>
void own_strides(long);

/// The type of strides that a mapping is made from, as a null pointer to that type: the
/// mapping's own, or else an array of `index_type` or int64_t. `nullptr` if it is made from
/// none of them.
template <class Mapping>
constexpr auto find_strides() {
  using own = decltype(own_strides<Mapping>(0));
  constexpr std::size_t rank = Mapping::extents_type::rank();
  using ranks = std::make_index_sequence<rank>;
  using indices = std::array<typename Mapping::extents_type::index_type, rank>;
  using numbers = std::array<std::int64_t, rank>;
  if constexpr (takes_strides<Mapping, own, ranks>) {
    return static_cast<own*>(nullptr);
  } else if constexpr (takes_strides<Mapping, indices, ranks>) {
    return static_cast<indices*>(nullptr);
  } else if constexpr (takes_strides<Mapping, numbers, ranks>) {
    return static_cast<numbers*>(nullptr);
  } else {
    return nullptr;
  }
}
template <class Mapping>
using strides_argument = std::remove_pointer_t<decltype(find_strides<Mapping>())>;

template <class Mapping>
inline constexpr bool made_from_strides = !std::is_null_pointer_v<strides_argument<Mapping>>;

template <class Mapping>
using stride_argument = stride_of<strides_argument<Mapping>>;

/// Converts strides to the type that a mapping takes. @pre its integers hold them
template <class Mapping, std::size_t... Ranks>
constexpr auto make_strides([[maybe_unused]] const std::int64_t* given,
                            std::index_sequence<Ranks...>) {
  return strides_argument<Mapping>{static_cast<stride_argument<Mapping>>(given[Ranks])...};
}

/// Whether a mapping that accepts any stride also takes the index of its first element.
template <class Mapping, bool = made_from_strides<Mapping> && accepts_any_stride_v<Mapping>>
inline constexpr bool takes_offset = false;
template <class Mapping>
inline constexpr bool takes_offset<Mapping, true> =
    std::is_constructible_v<Mapping, typename Mapping::extents_type, strides_argument<Mapping>,
                            std::int64_t>;

// --- Mappings made from strides

/// Refuses a stride that does not fit the layout's integer type, unless its extent is 1.
/// Leaves negative strides of a unique mapping to `check_unique_strides`.
template <class Stride, class Mapping, std::size_t Rank>
void check_stride_type(const strided_shape<Rank>& given) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (given.shape[r] > 1 && (accepts_any_stride_v<Mapping> || given.strides[r] > 0) &&
        !fits<Stride>(given.strides[r])) {
      refuse_index_type<Stride>(indexed("strides", r), given.strides[r]);
    }
  }
}

/// What to do about strides. A caller in Python is not shown what follows ", or in C++ ".
[[gnu::cold, gnu::noinline]] inline std::string contiguous_or(const std::string& other) {
  return "make the array contiguous, in Python by usm_dlpack.from_dlpack(x, order=\"C\"), or "
         "in C++ " +
         other;
}

/// The layout to recommend for strides: `layout_stride` if it takes them.
template <std::size_t Rank>
std::string layout_for(const strided_shape<Rank>& given) {
  if (!strides_step_over(given, step_over::elements)) {
    return "usm_dlpack::layout_relaxed with const elements";
  }
  const bool is_usual =
      span_of(given).lowest == 0 && strides_step_over(given, step_over::extents);
  return is_usual ? "layout_stride" : "usm_dlpack::layout_relaxed";
}

/// Checks the precondition of a unique mapping: each stride is positive, and at least the next
/// smaller stride times its extent (P0009 `[mdspan.layout.stride.cons]`).
template <std::size_t Rank>
void check_unique_strides(const strided_shape<Rank>& given) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (given.shape[r] > 1 && given.strides[r] <= 0) {
      refuse(errc::layout_mismatch, indexed("strides", r),
             "a stride above 0, as a precondition of the view's layout",
             digits(given.strides[r]), contiguous_or("use " + layout_for(given)));
    }
  }
  if (!strides_step_over(given, step_over::extents)) {
    refuse(errc::layout_mismatch, "strides",
           "strides of which each is at least the next smaller one times its extent",
           "one that is less", contiguous_or("use " + layout_for(given)));
  }
}

/// Replaces the strides of dimensions of extent 1, which DLPack leaves open. The new stride
/// reaches beyond all other dimensions, which every layout allows; if it does not fit
/// `Stride`, it is 1.
template <class Stride, std::size_t Rank>
constexpr void normalize_unit_strides(strided_shape<Rank>& given) noexcept {
  std::int64_t beyond = 1;
  for (std::size_t r = 0; r < Rank; ++r) {
    std::int64_t end = 0;
    if (given.shape[r] > 1 &&
        !__builtin_mul_overflow(given.strides[r], given.shape[r], &end) && end > beyond) {
      beyond = end;
    }
  }
  beyond = fits<Stride>(beyond) ? beyond : 1;
  for (std::size_t r = 0; r < Rank; ++r) {
    given.strides[r] = given.shape[r] > 1 ? given.strides[r] : beyond;
  }
}

/// Whether `Stride` holds the strides of an empty tensor, and the span of the dimensions
/// before the first empty one. By P0009 the span is 0, but hardened libc++ computes it, and
/// aborts if it overflows.
template <class Stride, std::size_t Rank>
constexpr bool holds_empty(const strided_shape<Rank>& given) noexcept {
  constexpr auto saturated = std::numeric_limits<std::int64_t>::max();
  std::size_t before = 0;
  while (before < Rank && given.shape[before] != 0) {
    ++before;
  }
  const element_span span = span_of(given.shape.data(), given.strides.data(), before);
  bool holds = !span.overflow && span.highest < saturated && fits<Stride>(span.highest + 1);
  for (std::size_t r = 0; r < Rank; ++r) {
    holds = holds && given.strides[r] < saturated && fits<Stride>(given.strides[r]);
  }
  return holds;
}

/// Replaces the strides of an empty tensor, which DLPack leaves open, by compact ones:
/// row-major, or column-major if only those fit `Stride`.
/// @returns whether either fits; if not, all strides are 1, which unique mappings refuse
template <class Stride, std::size_t Rank>
constexpr bool normalize_empty_strides(strided_shape<Rank>& given) noexcept {
  for (const bool column_major : {false, true}) {
    write_compact_strides(given.shape.data(), given.strides.data(), Rank, column_major);
    if (holds_empty<Stride>(given)) {
      return true;
    }
  }
  for (std::int64_t& stride : given.strides) {
    stride = 1;
  }
  return false;
}

/// @param instead helps besides a wider index type
template <class Index>
USM_DLPACK_COLD void refuse_product(
    const std::string& instead = "use usm_dlpack::layout_relaxed") {
  constexpr bool is_widest = sizeof(Index) >= sizeof(std::int64_t);
  refuse(errc::index_type_too_small, "shape",
         "a product that the view's index type " + name_of_integer<Index>() + " holds",
         "a larger one",
         (is_widest ? "" : "use extents of a wider index type, or ") + instead);
}

/// Makes a mapping from extents and strides. If a stride is negative and the mapping takes the
/// offset of its first element, passes that too, so that no index is negative.
template <class Mapping, std::size_t Rank>
Mapping from_strides(const typename Mapping::extents_type& extents, strided_shape<Rank> given,
                     bool empty) {
  using stride_type = stride_argument<Mapping>;
  if (!empty) {
    check_stride_type<stride_type, Mapping>(given);
    if constexpr (!accepts_any_stride_v<Mapping>) {
      check_unique_strides(given);
    }
    normalize_unit_strides<stride_type>(given);
  } else if (!normalize_empty_strides<stride_type>(given) && !accepts_any_stride_v<Mapping>) {
    refuse_product<stride_type>();
  }
  const auto strides =
      make_strides<Mapping>(given.strides.data(), std::make_index_sequence<Rank>{});
  if constexpr (takes_offset<Mapping>) {
    if (const std::int64_t lowest = span_of(given).lowest; !empty && lowest < 0) {
      return Mapping(extents, strides, -lowest);
    }
  }
  return Mapping(extents, strides);
}

// --- Mappings made from extents

template <class Mapping>
inline constexpr bool made_from_extents =
    std::is_constructible_v<Mapping, typename Mapping::extents_type>;

/// Whether `padding_value` is a non-static member. In g++, its use as a constant would be a
/// hard error.
template <class Mapping, class = void>
inline constexpr bool keeps_padding = false;
template <class Mapping>
inline constexpr bool keeps_padding<
    Mapping, std::enable_if_t<std::is_member_pointer_v<decltype(&Mapping::padding_value)>>> =
    true;

template <std::size_t>
using if_number = void;

/// The padding of a padded layout (P2642 `padding_value`, maybe `dynamic_extent`), or 0.
template <class Mapping, class = void, bool = keeps_padding<Mapping>>
inline constexpr std::size_t padding_of = 0;
template <class Mapping>
inline constexpr std::size_t
    padding_of<Mapping, if_number<static_cast<std::size_t>(Mapping::padding_value)>, false> =
        static_cast<std::size_t>(Mapping::padding_value);

template <class Mapping>
inline constexpr bool made_from_padding =
    (padding_of<Mapping> == 0 || padding_of<Mapping> == dynamic_extent) &&
    std::is_constructible_v<Mapping, typename Mapping::extents_type,
                            typename Mapping::extents_type::index_type>;

/// Whether an index type holds `factor` times the extents other than `except`, up to the first
/// empty one. By P0009 the product is then 0, but libc++ multiplies up to there, and aborts if
/// that overflows.
template <class Index, std::size_t Rank>
bool holds_product(const strided_shape<Rank>& given, std::size_t except, std::int64_t factor) {
  auto all = static_cast<std::uint64_t>(factor);
  for (std::size_t r = 0; r < Rank && given.shape[r] != 0; ++r) {
    if (r != except && __builtin_mul_overflow(all, given.shape[r], &all)) {
      return false;
    }
  }
  return fits<Index>(all);
}

/// Whether the index type holds the product of the extents (P0009
/// `[mdspan.layout.right.cons]`) and, in a padded layout, the product with the padded extent.
/// That is the first or the last extent: the one whose stride is 1 in a default mapping.
template <class Mapping, std::size_t Rank>
bool holds_products(const strided_shape<Rank>& given) {
  using index_type = typename Mapping::extents_type::index_type;
  bool holds = holds_product<index_type>(given, Rank, 1);
  if constexpr (padding_of<Mapping> != 0 && Rank > 1) {
    constexpr bool dynamic = padding_of<Mapping> == dynamic_extent;
    constexpr auto padding = dynamic ? 1 : static_cast<std::int64_t>(padding_of<Mapping>);
    const Mapping any{};
    for (const std::size_t r : {std::size_t{0}, Rank - 1}) {
      std::int64_t rounded = 0;
      holds = holds && (any.stride(r) != 1 ||
                        (!add_overflows(given.shape[r], padding - 1, rounded) &&
                         holds_product<index_type>(given, r, rounded / padding * padding)));
    }
  }
  return holds;
}

/// The first dimension whose stride differs from the mapping's, or the rank.
template <class Mapping, std::size_t Rank>
std::size_t first_other_stride(const Mapping& mapping, const strided_shape<Rank>& given) {
  std::size_t r = 0;
  while (r < Rank && (given.shape[r] <= 1 ||
                      given.strides[r] == static_cast<std::int64_t>(mapping.stride(r)))) {
    ++r;
  }
  return r;
}

/// Whether a mapping may be made with a padding: the index type must hold (extent + padding)
/// times the other extents, the largest product that the mapping computes. The padded
/// dimension is the one whose stride in `plain` is 1: the last (right) or the first (left).
template <class Index, class Mapping, std::size_t Rank>
bool may_pad(const Mapping& plain, const strided_shape<Rank>& given, std::int64_t padding) {
  bool may = padding > 0;
  for (const std::size_t r : {std::size_t{0}, Rank - 1}) {
    std::int64_t sum = 0;
    may = may && (plain.stride(Rank - 1 - r) == 1 || padding >= given.shape[r]) &&
          (plain.stride(r) != 1 || (!add_overflows(given.shape[r], padding, sum) &&
                                    holds_product<Index>(given, r, sum)));
  }
  return may;
}

/// Makes a mapping from extents, and from the padding that gives the strides if it needs one.
template <class Mapping, std::size_t Rank>
Mapping from_extents(const typename Mapping::extents_type& extents,
                     const strided_shape<Rank>& given, bool empty) {
  using index_type = typename Mapping::extents_type::index_type;
  if (!holds_products<Mapping>(given)) {
    refuse_product<index_type>();
  }
  const Mapping plain(extents);
  if constexpr (made_from_padding<Mapping> && Rank >= 2) {
    const bool matches = empty || detail::first_other_stride(plain, given) == Rank;
    // The padded extent is the stride of a dimension that has neighbours.
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

// --- Any mapping

/// Index of the element next to the first one in a dimension. @pre that extent is above 1
template <std::size_t R, class Mapping, std::size_t... Ranks>
constexpr auto index_of_neighbour(const Mapping& mapping, std::index_sequence<Ranks...>) {
  using index_type = typename Mapping::index_type;
  return mapping(static_cast<index_type>(Ranks == R)...);
}

/// Whether a mapping places the elements as far apart as the strides say.
// Not by `mapping.stride(r)`: in layout_right and layout_left it is a loop, which doubles the
// cost of rank 8.
template <class Mapping, std::size_t... Ranks>
bool has_strides(const Mapping& mapping, [[maybe_unused]] const std::int64_t* shape,
                 [[maybe_unused]] const std::int64_t* strides,
                 std::index_sequence<Ranks...> ranks) {
  [[maybe_unused]] const auto origin =
      static_cast<std::int64_t>(detail::origin_index(mapping, ranks));
  return (
      true && ... &&
      (shape[Ranks] <= 1 ||
       static_cast<std::int64_t>(detail::index_of_neighbour<Ranks>(mapping, ranks)) - origin ==
           strides[Ranks]));
}

/// Refuses the stride of a dimension. @pre the mapping is strided
template <class Mapping, std::size_t Rank>
USM_DLPACK_COLD void refuse_layout(const Mapping& mapping, std::size_t r,
                                   const strided_shape<Rank>& given) {
  const auto stride = [&](std::size_t n) {
    return digits(static_cast<std::int64_t>(mapping.stride(n)));
  };
  const auto is_compact = [&](bool column_major) {
    strided_shape<Rank> compact = given;
    write_compact_strides(given.shape.data(), compact.strides.data(), Rank, column_major);
    return detail::first_other_stride(mapping, compact) == Rank;
  };
  const std::string use = "use " + layout_for(given);
  std::string all;
  for (std::size_t n = 0; n < Rank; ++n) {
    all += (n == 0 ? "" : ", ") + stride(n);
  }
  refuse(errc::layout_mismatch, indexed("strides", r),
         stride(r) + " elements for the view's layout", digits(given.strides[r]),
         is_compact(false)
             ? contiguous_or(use)
             : (is_compact(true) ? "copy the array to Fortran order"
                                 : "copy the array to the layout's strides (" + all + ")") +
                   ", or in C++ " + use);
}

/// Makes the mapping, and refuses strides that the mapping then does not have: its constructor
/// may ignore them, or take the numbers for something else.
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
        // It may say that it is not strided only because its first index is not 0.
        if (span_of(given).lowest < 0 &&
            has_strides(made, given.shape.data(), given.strides.data(),
                        std::make_index_sequence<Rank>{})) {
          return made;
        }
      }
      refuse(errc::layout_mismatch, "strides",
             "extents for which the view's layout has strides", "others",
             "use " + layout_for(given));
    }
    const std::size_t other = empty ? Rank : detail::first_other_stride(made, given);
    if (other != Rank) {
      detail::refuse_layout(made, other, given);
    }
  }
  return made;
}

}  // namespace detail
}  // namespace usm_dlpack
