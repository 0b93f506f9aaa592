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

/// The element of an array of strides; void where none is assigned.
template <class Strides, class = void>
struct assigned_stride {
  using type = void;
};
template <class Strides>
struct assigned_stride<Strides, std::enable_if_t<std::is_assignable_v<
                                    decltype(std::declval<Strides&>()[0]),
                                    std::decay_t<decltype(std::declval<Strides&>()[0])>>>> {
  using type = std::decay_t<decltype(std::declval<Strides&>()[0])>;
};

/// The integer that an object of strides shows of one: others may be cut off.
template <class Strides>
auto shown_stride(int) -> std::decay_t<decltype(std::declval<const Strides&>()[0])>;
template <class Strides>
auto shown_stride(long) -> decltype(std::declval<const Strides&>().stride(0));
template <class Strides>
void shown_stride(...);

template <class Stride, std::size_t>
using stride_of_each = Stride;
template <class Strides, class Stride, class Ranks>
inline constexpr bool is_made_of = false;
template <class Strides, class Stride, std::size_t... Ranks>
inline constexpr bool is_made_of<Strides, Stride, std::index_sequence<Ranks...>> =
    std::is_constructible_v<Strides, stride_of_each<Stride, Ranks>...>;

/// How a mapping takes its strides.
template <class Strides, class Stride, bool Assigned = true>
struct strides_parameter {
  using type = Strides;
  using stride_type = Stride;                    ///< of one dimension
  static constexpr bool is_assigned = Assigned;  ///< one by one, or it is made of all
};

/// The same for a type of its own; void where that cannot be made.
template <class Mapping, class Strides>
constexpr auto own_parameter() {
  if constexpr (takes_strides<Mapping, Strides>) {
    using assigned = typename assigned_stride<Strides>::type;
    if constexpr (std::is_void_v<assigned>) {
      using shown = decltype(shown_stride<Strides>(0));
      using ranks = std::make_index_sequence<Mapping::extents_type::rank()>;
      if constexpr (!std::is_void_v<shown> && is_made_of<Strides, shown, ranks>) {
        return strides_parameter<Strides, shown, false>{};
      }
    } else if constexpr (std::is_default_constructible_v<Strides>) {
      return strides_parameter<Strides, assigned>{};
    }
  }
}

/// How a mapping takes strides: as its own type, or one of the usual two; void where it is not
/// made from strides.
template <class Mapping>
constexpr auto strides_argument() {
  using index_type = typename Mapping::extents_type::index_type;
  constexpr std::size_t rank = Mapping::extents_type::rank();
  using own = decltype(own_parameter<Mapping, typename strides_type_of<Mapping>::type>());
  if constexpr (!std::is_void_v<own>) {
    return own{};
  } else if constexpr (takes_strides<Mapping, std::array<index_type, rank>>) {
    return strides_parameter<std::array<index_type, rank>, index_type>{};
  } else if constexpr (takes_strides<Mapping, std::array<std::int64_t, rank>>) {
    return strides_parameter<std::array<std::int64_t, rank>, std::int64_t>{};
  }
}

template <class Mapping>
inline constexpr bool made_from_strides =
    !std::is_void_v<decltype(strides_argument<Mapping>())>;

/// The integer that a mapping takes for each stride.
template <class Mapping>
using stride_argument = typename decltype(strides_argument<Mapping>())::stride_type;

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
