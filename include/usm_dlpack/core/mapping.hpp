// SPDX-License-Identifier: Apache-2.0
//
// Makes a layout mapping from the shape and strides of a well-formed tensor. Compares the
// strides with the layout's first, because a mapping's constructor may abort if a precondition
// is broken, or check nothing. Layouts are recognised by their mapping's constructors, in any
// implementation of mdspan. To support another kind of layout, compute its strides here.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>

#include <algorithm>
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

// --- How a mapping is made

/// The integer type of the strides that a mapping is made from: of what its `strides()`
/// returns, or else of its `stride`. A mapping of rank 0 may have neither.
template <class Mapping>
auto stride_of(int, int)
    -> std::decay_t<decltype(std::declval<const Mapping&>().strides()[0])>;
template <class Mapping>
auto stride_of(int, long)
    -> std::decay_t<decltype(std::declval<const Mapping&>().strides().stride(0))>;
template <class Mapping>
auto stride_of(long, long) -> std::decay_t<decltype(std::declval<const Mapping&>().stride(0))>;
template <class Mapping>
std::int64_t stride_of(...);
template <class Mapping>
using stride_type = decltype(stride_of<Mapping>(0, 0));

template <class Mapping>
auto own_strides(int) -> std::decay_t<decltype(std::declval<const Mapping&>().strides())>;
template <class Mapping>
void own_strides(long);

template <class Mapping, std::size_t>
using stride_of_each = stride_type<Mapping>;

/// Whether a mapping can be made from extents and `Strides`, and `Strides` from one integer
/// for each dimension.
template <class Mapping, class Strides, class Ranks, class = void>
inline constexpr bool accepts_strides = false;
template <class Mapping, class Strides, std::size_t... Ranks>
inline constexpr bool accepts_strides<
    Mapping, Strides, std::index_sequence<Ranks...>,
    std::void_t<decltype(Strides{std::declval<stride_of_each<Mapping, Ranks>>()...})>> =
    std::is_constructible_v<Mapping, typename Mapping::extents_type, Strides>;

/// The type of strides that a mapping's constructor accepts: the result of its `strides()`, or
/// an array of `index_type` or int64_t; void if it accepts none.
template <class Mapping, class Extents = typename Mapping::extents_type>
struct strides_argument {
  static constexpr std::size_t rank = Extents::rank();
  using ranks = std::make_index_sequence<rank>;
  using own = decltype(own_strides<Mapping>(0));
  using indices = std::array<typename Extents::index_type, rank>;
  using numbers = std::array<std::int64_t, rank>;
  using type = std::conditional_t<
      accepts_strides<Mapping, own, ranks>, own,
      std::conditional_t<
          accepts_strides<Mapping, indices, ranks>, indices,
          std::conditional_t<accepts_strides<Mapping, numbers, ranks>, numbers, void>>>;
};

template <class Mapping>
inline constexpr bool made_from_strides =
    !std::is_void_v<typename strides_argument<Mapping>::type>;

/// Converts strides to the type that a mapping's constructor accepts. @pre its integers hold
/// them
template <class Mapping, std::size_t... Ranks>
constexpr auto make_strides([[maybe_unused]] const std::int64_t* strides,
                            std::index_sequence<Ranks...>) {
  return typename strides_argument<Mapping>::type{
      static_cast<stride_type<Mapping>>(strides[Ranks])...};
}

// --- How a layout made from extents orders the elements

/// The padding of a padded layout (P2642 `padding_value`, maybe `dynamic_extent`), or 0.
template <class Mapping, class = void>
inline constexpr std::size_t padding_of = 0;
template <class Mapping>
inline constexpr std::size_t
    padding_of<Mapping, std::void_t<decltype(Mapping::padding_value)>> =
        static_cast<std::size_t>(Mapping::padding_value);

/// The strides that a layout made from extents has for a shape, and the extents that it
/// multiplies. The contiguous extent, the last one (of `left`, the first), may be padded: by a
/// static padding, or up to the smallest stride of a dimension of extent above 1.
template <class Mapping, std::size_t Rank>
constexpr strided_shape<Rank> in_layout(strided_shape<Rank> tensor, bool left) {
  if constexpr (padding_of<Mapping> == dynamic_extent && Rank > 1) {
    const std::size_t contiguous = left ? 0 : Rank - 1;
    std::int64_t next = 0;
    for (std::size_t r = 0; r < Rank; ++r) {
      if (r != contiguous && tensor.shape[r] > 1 && (next == 0 || tensor.strides[r] < next)) {
        next = tensor.strides[r];
      }
    }
    tensor.shape[contiguous] = std::max(tensor.shape[contiguous], next);
  } else if constexpr (padding_of<Mapping> != 0 && Rank > 1) {
    std::int64_t& extent = tensor.shape[left ? 0 : Rank - 1];
    const std::uint64_t blocks =
        (static_cast<std::uint64_t>(extent) + padding_of<Mapping> - 1) / padding_of<Mapping>;
    extent = static_cast<std::int64_t>(blocks * padding_of<Mapping>);
  }
  write_compact_strides(tensor.shape.data(), tensor.strides.data(), Rank, left);
  return tensor;
}

/// The same layout's mapping of some dynamic extents.
template <class Mapping, class Extents = typename Mapping::extents_type>
struct mapping_of_any;
template <class Mapping, template <class, std::size_t...> class Extents, class Index,
          std::size_t... Sizes>
struct mapping_of_any<Mapping, Extents<Index, Sizes...>> {
  using extents = Extents<std::int64_t, (Sizes * 0 + dynamic_extent)...>;
  using type = typename Mapping::layout_type::template mapping<extents>;
  template <std::size_t... Ranks>
  static constexpr type make(const std::int64_t* shape, std::index_sequence<Ranks...>) {
    return type(extents(shape[Ranks]...));
  }
};

/// Whether a layout orders rising and falling extents by rows (`Left`: by columns), and
/// promises to have no gaps, or declares its padding.
template <class Mapping, bool Left>
constexpr bool has_order() {
  if constexpr (std::is_constructible_v<Mapping, typename Mapping::extents_type>) {
    constexpr std::size_t rank = Mapping::extents_type::rank();
    bool same = Mapping::is_always_strided() && Mapping::is_always_unique() &&
                (Mapping::is_always_exhaustive() || padding_of<Mapping> != 0);
    if constexpr (rank != 0) {  // mappings of rank 0 may have no `stride`
      for (const bool rising : {true, false}) {
        strided_shape<rank> sample{};
        for (std::size_t r = 0; r < rank; ++r) {
          sample.shape[r] = r == (rising ? rank - 1 : 0) ? 3 : 2;
        }
        const auto mapping = mapping_of_any<Mapping>::make(sample.shape.data(),
                                                           std::make_index_sequence<rank>{});
        const strided_shape<rank> own = in_layout<Mapping>(sample, Left);
        for (std::size_t r = 0; same && r < rank; ++r) {
          same = mapping.stride(r) == own.strides[r];
        }
      }
    }
    return same;
  }
  return false;
}

/// Whether a mapping is made from extents and orders the elements by rows (`Left`: by
/// columns), padded or not. False if its functions are not constexpr.
template <class Mapping, bool Left, class = void>
inline constexpr bool is_ordered = false;
template <class Mapping, bool Left>
inline constexpr bool is_ordered<Mapping, Left, std::enable_if_t<has_order<Mapping, Left>()>> =
    true;

template <class Mapping>
inline constexpr bool is_left = !is_ordered<Mapping, false> && is_ordered<Mapping, true>;
template <class Mapping>
inline constexpr bool made_from_extents =
    is_ordered<Mapping, false> || is_ordered<Mapping, true>;

// --- Mappings made from strides

/// Refuses a stride that does not fit the layout's integer type, unless its extent is 1.
/// `check_unique_strides` refuses negative strides of a unique mapping.
template <class Stride, class Mapping, std::size_t Rank>
void check_stride_type(const strided_shape<Rank>& tensor) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (tensor.shape[r] > 1 && (accepts_any_stride_v<Mapping> || tensor.strides[r] > 0) &&
        !fits<Stride>(tensor.strides[r])) {
      refuse_index_type<Stride>(indexed("strides", r), tensor.strides[r]);
    }
  }
}

/// The remedy for strides. Python does not show the part from ", or in C++ " on.
[[gnu::cold, gnu::noinline]] inline std::string contiguous_or(const std::string& other) {
  return "make the array contiguous, in Python by usm_dlpack.from_dlpack(x, order=\"C\"), or "
         "in C++ " +
         other;
}

/// The layout to recommend for strides: `layout_stride` if it accepts them.
template <std::size_t Rank>
std::string layout_for(const strided_shape<Rank>& tensor) {
  if (!strides_step_over(tensor, step_over::elements)) {
    return "usm_dlpack::layout_relaxed with const elements";
  }
  const bool is_unique =
      span_of(tensor).lowest == 0 && strides_step_over(tensor, step_over::extents);
  return is_unique ? "layout_stride" : "usm_dlpack::layout_relaxed";
}

/// Checks the precondition of a unique mapping: each stride is positive, and at least the next
/// smaller stride times its extent (P0009 `[mdspan.layout.stride.cons]`).
template <std::size_t Rank>
void check_unique_strides(const strided_shape<Rank>& tensor) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (tensor.shape[r] > 1 && tensor.strides[r] <= 0) {
      refuse(errc::layout_mismatch, indexed("strides", r),
             "a stride above 0, as a precondition of the view's layout",
             digits(tensor.strides[r]), contiguous_or("use " + layout_for(tensor)));
    }
  }
  if (!strides_step_over(tensor, step_over::extents)) {
    refuse(errc::layout_mismatch, "strides",
           "strides of which each is at least the next smaller one times its extent",
           "one that is less", contiguous_or("use " + layout_for(tensor)));
  }
}

/// Replaces the strides of dimensions of extent 1, which DLPack leaves open. The new stride
/// reaches beyond all other dimensions, which every layout allows; if it does not fit
/// `Stride`, it is 1.
template <class Stride, std::size_t Rank>
constexpr void normalize_unit_strides(strided_shape<Rank>& tensor) noexcept {
  std::int64_t beyond = 1;
  for (std::size_t r = 0; r < Rank; ++r) {
    std::int64_t end = 0;
    if (tensor.shape[r] > 1 &&
        !__builtin_mul_overflow(tensor.strides[r], tensor.shape[r], &end) && end > beyond) {
      beyond = end;
    }
  }
  beyond = fits<Stride>(beyond) ? beyond : 1;
  for (std::size_t r = 0; r < Rank; ++r) {
    tensor.strides[r] = tensor.shape[r] > 1 ? tensor.strides[r] : beyond;
  }
}

/// Whether `Stride` holds the strides of an empty tensor, and the span of the dimensions
/// before the first empty one. By P0009 the span is 0, but hardened libc++ computes it, and
/// aborts if it overflows.
template <class Stride, std::size_t Rank>
constexpr bool holds_empty(const strided_shape<Rank>& tensor) noexcept {
  constexpr auto saturated = std::numeric_limits<std::int64_t>::max();
  std::size_t before = 0;
  while (before < Rank && tensor.shape[before] != 0) {
    ++before;
  }
  const element_span span = span_of(tensor.shape.data(), tensor.strides.data(), before);
  bool holds = !span.overflow && span.highest < saturated && fits<Stride>(span.highest + 1);
  for (std::size_t r = 0; r < Rank; ++r) {
    holds = holds && tensor.strides[r] < saturated && fits<Stride>(tensor.strides[r]);
  }
  return holds;
}

/// Replaces the strides of an empty tensor, which DLPack leaves open, by compact ones:
/// row-major, or column-major if only those fit `Stride`.
/// @returns whether either fits; if not, all strides are 1, which unique mappings refuse
template <class Stride, std::size_t Rank>
constexpr bool normalize_empty_strides(strided_shape<Rank>& tensor) noexcept {
  for (const bool column_major : {false, true}) {
    write_compact_strides(tensor.shape.data(), tensor.strides.data(), Rank, column_major);
    if (holds_empty<Stride>(tensor)) {
      return true;
    }
  }
  for (std::int64_t& stride : tensor.strides) {
    stride = 1;
  }
  return false;
}

template <class Index>
USM_DLPACK_COLD void refuse_product(const std::string& other_layout = {}) {
  constexpr bool is_widest = sizeof(Index) >= sizeof(std::int64_t);
  std::string in_cpp = is_widest ? "" : "use extents of a wider index type";
  if (!other_layout.empty()) {
    in_cpp += (is_widest ? "use " : ", or ") + other_layout;
  }
  refuse(errc::index_type_too_small, "shape",
         "a product that the view's index type " + name_of_integer<Index>() + " holds",
         "a larger one",
         "make the array smaller" + (in_cpp.empty() ? "" : ", or in C++ " + in_cpp));
}

/// Refuses the stride of a dimension. @param own the layout's strides
template <std::size_t Rank>
USM_DLPACK_COLD void refuse_layout(const std::array<std::int64_t, Rank>& own, std::size_t r,
                                   const strided_shape<Rank>& tensor) {
  const auto is_compact = [&](bool column_major) {
    strided_shape<Rank> compact{tensor.shape, {}};
    write_compact_strides(compact.shape.data(), compact.strides.data(), Rank, column_major);
    for (std::size_t n = 0; n < Rank; ++n) {
      if (tensor.shape[n] > 1 && own[n] != compact.strides[n]) {
        return false;
      }
    }
    return true;
  };
  const std::string use = "use " + layout_for(tensor);
  std::string all;
  for (std::size_t n = 0; n < Rank; ++n) {
    all += (n == 0 ? "" : ", ") + digits(own[n]);
  }
  refuse(errc::layout_mismatch, indexed("strides", r),
         digits(own[r]) + " elements for the view's layout", digits(tensor.strides[r]),
         is_compact(false)
             ? contiguous_or(use)
             : (is_compact(true)
                    ? "copy the array to Fortran order, in Python by usm_dlpack.from_dlpack("
                      "numpy.asfortranarray(usm_dlpack.from_dlpack(x).numpy()), device=x)"
                    : "copy the array to the layout's strides (" + all +
                          "), in Python by copy_from to a tensor that "
                          "usm_dlpack.to_dlpack_tensor makes with them") +
                   ", or in C++ " + use);
}

/// The first dimension whose stride differs from the layout's, or the rank.
template <std::size_t Rank>
std::size_t first_other_stride(const strided_shape<Rank>& tensor,
                               const std::array<std::int64_t, Rank>& own) {
  std::size_t r = 0;
  while (r < Rank && (tensor.shape[r] <= 1 || tensor.strides[r] == own[r])) {
    ++r;
  }
  return r;
}

template <std::size_t Rank>
void check_strides(const strided_shape<Rank>& tensor,
                   const std::array<std::int64_t, Rank>& own) {
  if (const std::size_t r = first_other_stride(tensor, own); r != Rank) {
    refuse_layout(own, r, tensor);
  }
}

/// @pre the mapping is strided
template <std::size_t Rank, class Mapping>
std::array<std::int64_t, Rank> strides_of([[maybe_unused]] const Mapping& mapping) {
  std::array<std::int64_t, Rank> strides{};
  if constexpr (Rank != 0) {  // mappings of rank 0 may have no `stride`
    for (std::size_t r = 0; r < Rank; ++r) {
      strides[r] = static_cast<std::int64_t>(mapping.stride(r));
    }
  }
  return strides;
}

/// Makes a mapping from extents and strides. For negative strides, passes the offset of the
/// first element too if the constructor accepts one, so that no index is negative.
template <class Mapping, std::size_t Rank>
Mapping from_strides(const typename Mapping::extents_type& extents, strided_shape<Rank> tensor,
                     bool empty) {
  using stride = stride_type<Mapping>;
  if (!empty) {
    check_stride_type<stride, Mapping>(tensor);
    if constexpr (!accepts_any_stride_v<Mapping>) {
      check_unique_strides(tensor);
    }
    normalize_unit_strides<stride>(tensor);
  } else if (!normalize_empty_strides<stride>(tensor) && !accepts_any_stride_v<Mapping>) {
    refuse_product<stride>("usm_dlpack::layout_relaxed");
  }
  const auto strides =
      make_strides<Mapping>(tensor.strides.data(), std::make_index_sequence<Rank>{});
  if constexpr (std::is_constructible_v<Mapping, decltype(extents), decltype(strides),
                                        std::int64_t>) {
    if (const std::int64_t lowest = span_of(tensor).lowest; !empty && lowest < 0) {
      return Mapping(extents, strides, -lowest);
    }
  }
  return Mapping(extents, strides);
}

// --- Mappings made from extents

/// Whether the index type holds the product of the extents that the layout multiplies (P0009
/// `[mdspan.layout.right.cons]`), up to the first empty one: by P0009 the product is then 0,
/// but libc++ multiplies up to there, and aborts if that overflows. A padded extent comes
/// first; mappings add the plain one to it when they round up.
/// @param own the result of `in_layout`
template <class Mapping, std::size_t Rank>
bool holds_product(const strided_shape<Rank>& tensor, const strided_shape<Rank>& own) {
  constexpr bool pads = padding_of<Mapping> != 0 && Rank > 1;
  constexpr std::size_t padded = !pads ? Rank : is_left<Mapping> ? 0 : Rank - 1;
  std::uint64_t product = 1;
  if constexpr (pads) {
    product = static_cast<std::uint64_t>(own.shape[padded] == 0 ? 1 : own.shape[padded]);
    if (padding_of<Mapping> == dynamic_extent && own.shape[padded] != tensor.shape[padded]) {
      product += static_cast<std::uint64_t>(tensor.shape[padded]);
    }
  }
  for (std::size_t r = 0; r < Rank && tensor.shape[r] != 0; ++r) {
    if (r != padded && __builtin_mul_overflow(product, tensor.shape[r], &product)) {
      return false;
    }
  }
  return fits<typename Mapping::extents_type::index_type>(product);
}

/// Compares the strides with those that the layout has for the extents, and makes the mapping.
template <class Mapping, std::size_t Rank>
Mapping from_extents(const typename Mapping::extents_type& extents,
                     const strided_shape<Rank>& tensor, bool empty) {
  using index_type = typename Mapping::extents_type::index_type;
  constexpr bool left = is_left<Mapping>;
  constexpr bool pads = padding_of<Mapping> == dynamic_extent && Rank > 1;
  strided_shape<Rank> own = in_layout<Mapping>(strided_shape<Rank>{tensor.shape, {}}, left);
  if constexpr (pads) {
    const strided_shape<Rank> padded = in_layout<Mapping>(tensor, left);
    own = empty || first_other_stride(tensor, padded.strides) != Rank ? own : padded;
  }
  if (!holds_product<Mapping>(tensor, own)) {
    refuse_product<index_type>("usm_dlpack::layout_relaxed");
  }
  if (!empty) {
    check_strides(tensor, own.strides);
  }
  if constexpr (pads) {
    if (!empty) {
      return Mapping(extents, static_cast<index_type>(own.shape[left ? 0 : Rank - 1]));
    }
  }
  return Mapping(extents);
}

// --- Any mapping

/// Makes the mapping that has the strides, or refuses them.
template <class Mapping, std::size_t Rank>
Mapping to_mapping(const typename Mapping::extents_type& extents,
                   const strided_shape<Rank>& tensor, bool empty) {
  static_assert(
      made_from_strides<Mapping> || made_from_extents<Mapping>,
      "layout: expected right, left, a padded one of both, or a mapping that is made "
      "from extents and an array of strides, found another; construct the view by "
      "hand after validate");
  if constexpr (made_from_strides<Mapping>) {
    const Mapping mapping = from_strides<Mapping>(extents, tensor, empty);
    if (!empty) {
      check_strides(tensor, strides_of<Rank>(mapping));  // its constructor may ignore them
    }
    return mapping;
  } else {
    return from_extents<Mapping>(extents, tensor, empty);
  }
}

}  // namespace detail
}  // namespace usm_dlpack
