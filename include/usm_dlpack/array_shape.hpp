// SPDX-License-Identifier: Apache-2.0
//
// What a new array is given as its shape: looked at before it is converted to extents, and
// before a mapping counts with these.
#pragma once

#include <usm_dlpack/index_products.hpp>
#include <usm_dlpack/view.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// That the product of the extents is an index, so that a mapping can count elements and
/// strides; where the layout rounds the first or the last extent up to a padding, so that it
/// can with either. Extents of 0 are left out, because strides of an empty array are products
/// too.
template <class Mapping>
void check_product(const typename Mapping::extents_type& extents) {
  using extents_type = typename Mapping::extents_type;
  using index_type = typename extents_type::index_type;
  constexpr std::size_t rank = extents_type::rank();
  strided_shape<rank> given{};
  for (std::size_t r = 0; r < rank; ++r) {
    const std::int64_t extent = to_extent(extents.extent(r), r);
    given.shape[r] = extent == 0 ? 1 : extent;
  }
  if (!holds_product<index_type>(given, rank, 1) || !holds_padded_product<Mapping>(given)) {
    refuse_product<index_type>();
  }
}

template <class Shape, class = void>
inline constexpr bool has_extents = false;
template <class Shape>
inline constexpr bool has_extents<
    Shape, std::void_t<decltype(std::declval<const Shape&>().extent(std::size_t{})),
                       decltype(Shape::rank())>> = true;

/// The number of extents that extents say, or an array or span of them.
template <class Shape>
constexpr std::size_t count_of(const Shape& shape) {
  if constexpr (has_extents<Shape>) {
    return Shape::rank();
  } else {
    return shape.size();
  }
}

/// The extent at a place.
template <class Shape>
constexpr auto extent_at(const Shape& shape, std::size_t place) {
  if constexpr (has_extents<Shape>) {
    return shape.extent(place);
  } else {
    return shape[place];
  }
}

template <class Shape, class = void>
inline constexpr bool is_readable = has_extents<Shape>;
template <class Shape>
inline constexpr bool is_readable<
    Shape, std::void_t<decltype(std::declval<const Shape&>().size()),
                       decltype(std::declval<const Shape&>()[std::size_t{}])>> =
    std::is_integral_v<std::decay_t<decltype(std::declval<const Shape&>()[std::size_t{}])>>;

/// That the numbers of a shape, all or those of the dynamic extents alone, are extents of the
/// view's type: a conversion of theirs looks at nothing.
template <class Extents, class Shape>
void check_shape(const Shape& shape) {
  using index_type = typename Extents::index_type;
  const std::size_t count = detail::count_of(shape);
  std::size_t place = 0;
  for (std::size_t r = 0; r < Extents::rank() && place < count; ++r) {
    const std::size_t fixed = Extents::static_extent(r);
    if (fixed != dynamic_extent && count != Extents::rank()) {
      continue;
    }
    const std::int64_t extent = to_extent(detail::extent_at(shape, place++), r);
    if (fixed != dynamic_extent && fixed != static_cast<std::size_t>(extent)) {
      refuse_extent_mismatch(r, fixed, extent);
    }
    if (!fits<index_type>(extent)) {
      refuse_index_type(indexed("shape", r), name_of_integer<index_type>(), extent);
    }
  }
}

}  // namespace usm_dlpack::detail
