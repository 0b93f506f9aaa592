// SPDX-License-Identifier: Apache-2.0
//
// The strides that a layout mapping is made from, in the type that it takes: an array whose
// elements are assigned, or an object that is made of one integer for each dimension.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// The mapping's own type for its strides; void where it shows none.
template <class Mapping, class = void>
struct strides_type_of {
  using type = void;
};
template <class Mapping>
struct strides_type_of<Mapping,
                       std::void_t<decltype(std::declval<const Mapping&>().strides())>> {
  using type = std::decay_t<decltype(std::declval<const Mapping&>().strides())>;
};

template <class Mapping, class Strides>
inline constexpr bool takes_strides =
    std::is_constructible_v<Mapping, typename Mapping::extents_type, Strides>;
template <class Mapping>
inline constexpr bool takes_strides<Mapping, void> = false;

/// How a mapping takes its strides.
template <class Strides, class Stride, bool Assigned>
struct strides_parameter {
  using type = Strides;
  using stride_type = Stride;                    ///< of one dimension
  static constexpr bool is_assigned = Assigned;  ///< one by one, or it is made of all
};

template <class Strides, class = void>
struct assigned_strides {
  using type = void;
};
template <class Strides>
struct assigned_strides<Strides,
                        std::void_t<decltype(std::declval<Strides&>()[std::size_t{}])>> {
  using reference = decltype(std::declval<Strides&>()[std::size_t{}]);
  using stride_type = std::decay_t<reference>;
  using type = std::conditional_t<std::is_default_constructible_v<Strides> &&
                                      std::is_assignable_v<reference, stride_type>,
                                  strides_parameter<Strides, stride_type, true>, void>;
};

template <class Strides>
auto shown_stride(int) -> decltype(std::declval<const Strides&>()[std::size_t{}]);
template <class Strides>
auto shown_stride(long) -> decltype(std::declval<const Strides&>().stride(std::size_t{}));

template <class Stride, std::size_t>
using stride_of_each = Stride;

template <class Strides, class Ranks, class = void>
struct made_strides {
  using type = void;
};
/// Of integers of the type that the strides show, because others may be cut off.
template <class Strides, std::size_t... Ranks>
struct made_strides<Strides, std::index_sequence<Ranks...>,
                    std::void_t<decltype(shown_stride<Strides>(0))>> {
  using stride_type = std::decay_t<decltype(shown_stride<Strides>(0))>;
  using type = std::conditional_t<
      std::is_constructible_v<Strides, stride_of_each<stride_type, Ranks>...>,
      strides_parameter<Strides, stride_type, false>, void>;
};

/// How a mapping takes strides of a type; void where it does not.
template <class Mapping, class Strides>
constexpr auto parameter_of() {
  using ranks = std::make_index_sequence<Mapping::extents_type::rank()>;
  if constexpr (takes_strides<Mapping, Strides>) {
    using assigned = typename assigned_strides<Strides>::type;
    using made = typename made_strides<Strides, ranks>::type;
    using parameter = std::conditional_t<std::is_void_v<assigned>, made, assigned>;
    if constexpr (!std::is_void_v<parameter>) {
      return parameter{};
    }
  }
}

/// How a mapping takes strides: as its own type, or one of the usual two; void where it is not
/// made from strides.
template <class Mapping>
constexpr auto strides_argument() {
  using index_type = typename Mapping::extents_type::index_type;
  constexpr std::size_t rank = Mapping::extents_type::rank();
  using own = typename strides_type_of<Mapping>::type;
  if constexpr (!std::is_void_v<decltype(parameter_of<Mapping, own>())>) {
    return parameter_of<Mapping, own>();
  } else if constexpr (takes_strides<Mapping, std::array<index_type, rank>>) {
    return strides_parameter<std::array<index_type, rank>, index_type, true>{};
  } else if constexpr (takes_strides<Mapping, std::array<std::int64_t, rank>>) {
    return strides_parameter<std::array<std::int64_t, rank>, std::int64_t, true>{};
  }
}

template <class Mapping>
inline constexpr bool made_from_strides =
    !std::is_void_v<decltype(strides_argument<Mapping>())>;

/// The integer that a mapping takes for each stride.
template <class Mapping>
using stride_argument = typename decltype(strides_argument<Mapping>())::stride_type;

/// Whether a mapping is made from strides and an offset, the index of the first element.
template <class Mapping, bool = made_from_strides<Mapping>>
inline constexpr bool takes_offset = false;
template <class Mapping>
inline constexpr bool takes_offset<Mapping, true> =
    std::is_constructible_v<Mapping, typename Mapping::extents_type,
                            typename decltype(strides_argument<Mapping>())::type,
                            std::int64_t>;

/// Strides as a mapping takes them. @pre its integers hold them
template <class Mapping, std::size_t... Ranks>
constexpr auto make_strides([[maybe_unused]] const std::int64_t* given,
                            std::index_sequence<Ranks...>) {
  using parameter = decltype(strides_argument<Mapping>());
  using stride_type = typename parameter::stride_type;
  if constexpr (parameter::is_assigned) {
    typename parameter::type strides{};
    ((strides[Ranks] = static_cast<stride_type>(given[Ranks])), ...);
    return strides;
  } else {
    return typename parameter::type(static_cast<stride_type>(given[Ranks])...);
  }
}

}  // namespace usm_dlpack::detail
