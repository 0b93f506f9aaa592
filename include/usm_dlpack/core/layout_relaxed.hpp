// SPDX-License-Identifier: Apache-2.0
//
// An mdspan layout for strides that DLPack allows and `layout_stride` does not: zero
// (broadcast) and negative (reversed). Works with any implementation of mdspan. Add no runtime
// checks: kernels call it.
#pragma once

#include <usm_dlpack/core/strides.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class Mapping, std::size_t Rank, class = void>
inline constexpr bool is_strided_mapping = false;
template <class Mapping, std::size_t Rank>
inline constexpr bool
    is_strided_mapping<Mapping, Rank, std::enable_if_t<Mapping::is_always_strided()>> =
        Mapping::extents_type::rank() == Rank;

/// Whether a strided mapping converts to `To`, which is made from extents and strides.
template <class From, class To, class Extents, class = void>
inline constexpr bool becomes_mapping = false;
template <class From, class To, class Extents>
inline constexpr bool becomes_mapping<
    From, To, Extents, std::enable_if_t<is_strided_mapping<From, Extents::rank()>>> =
    !std::is_same_v<From, To> &&
    std::is_constructible_v<Extents, const typename From::extents_type&>;
template <class From, class Extents>
inline constexpr bool keeps_extents =
    std::is_convertible_v<const typename From::extents_type&, Extents>;

}  // namespace detail

/// A layout policy with an offset and a stride of either sign or zero for each dimension.
///
/// Element `(i...)` has index `element_offset() + sum(i * stride(r))`. Meets P0009
/// `[mdspan.layout.reqmts]`, except that `stride(r)` is an int64_t, because the index type may
/// be unsigned.
struct layout_relaxed {
  template <class Extents>
  class mapping {
    template <class Other>
    using if_strided =
        std::enable_if_t<detail::is_strided_mapping<Other, Extents::rank()>, int>;
    template <class Self>
    using if_self = std::enable_if_t<std::is_base_of_v<mapping, Self>, int>;

   public:
    using extents_type = Extents;
    using index_type = typename extents_type::index_type;
    using size_type = typename extents_type::size_type;
    using rank_type = typename extents_type::rank_type;
    using layout_type = layout_relaxed;
    /// Distances between neighbours, in elements.
    using strides_type = std::array<std::int64_t, extents_type::rank()>;

    /// The compact row-major mapping of default extents.
    constexpr mapping() noexcept : mapping(extents_type{}, compact(extents_type{})) {}

    /// The mapping whose lowest element, the view's lowest address, has index 0.
    /// @pre every index of the view fits `index_type`
    constexpr mapping(const extents_type& extents, const strides_type& strides) noexcept
        : extents_(extents), strides_(strides), element_offset_(-span().lowest) {}

    /// The mapping whose first element (all indices zero) has index `element_offset`.
    /// @pre every index of the view is non-negative and fits `index_type`
    constexpr mapping(const extents_type& extents, const strides_type& strides,
                      std::int64_t element_offset) noexcept
        : extents_(extents), strides_(strides), element_offset_(element_offset) {}

    /// Converts from an always strided mapping: a standard one, or this layout with other
    /// extents. Explicit if the extents do not convert implicitly.
    /// @pre `extents_type` holds the extents, and `index_type` every index
    template <class Other,
              std::enable_if_t<detail::becomes_mapping<Other, mapping, Extents>, int> = 0,
              std::enable_if_t<detail::keeps_extents<Other, Extents>, int> = 0>
    constexpr mapping(const Other& other) noexcept
        : mapping(extents_type(other.extents()), strides_of(other), first_of(other)) {}
    template <class Other,
              std::enable_if_t<detail::becomes_mapping<Other, mapping, Extents>, int> = 0,
              std::enable_if_t<!detail::keeps_extents<Other, Extents>, int> = 0>
    constexpr explicit mapping(const Other& other) noexcept
        : mapping(extents_type(other.extents()), strides_of(other), first_of(other)) {}

    constexpr const extents_type& extents() const noexcept { return extents_; }
    constexpr const strides_type& strides() const noexcept { return strides_; }
    /// Index of the first element.
    constexpr std::int64_t element_offset() const noexcept { return element_offset_; }

    /// Distance between neighbours of dimension `r`, in elements. @pre `r < rank()`
    constexpr std::int64_t stride(rank_type r) const noexcept { return strides_[r]; }

    /// One more than the highest index; 0 for an empty view.
    constexpr index_type required_span_size() const noexcept {
      const detail::element_span all = span();
      return static_cast<index_type>(all.empty ? 0 : element_offset_ + all.highest + 1);
    }

    template <class... Indices,
              std::enable_if_t<sizeof...(Indices) == extents_type::rank() &&
                                   (std::is_convertible_v<Indices, index_type> && ...),
                               int> = 0>
    constexpr index_type operator()(Indices... indices) const noexcept {
      std::int64_t index = element_offset_;
      [[maybe_unused]] std::size_t r = 0;
      ((index += static_cast<std::int64_t>(static_cast<index_type>(indices)) * strides_[r++]),
       ...);
      return static_cast<index_type>(index);
    }

    static constexpr bool is_always_unique() noexcept { return false; }
    static constexpr bool is_always_exhaustive() noexcept { return false; }
    static constexpr bool is_always_strided() noexcept { return true; }

    /// Whether the strides prove that no two indices share an element: each stride exceeds
    /// everything that smaller strides reach.
    constexpr bool is_unique() const noexcept {
      const auto all = strided();
      return detail::strides_step_over(all, detail::step_over::elements);
    }

    /// Whether every index below the span size has exactly one element.
    constexpr bool is_exhaustive() const noexcept {
      const detail::element_span all = span();
      if (all.empty || !is_unique()) {
        return all.empty;
      }
      std::int64_t count = 1;  // no more than the span, as no two indices share an element
      for (const std::int64_t extent : shape_of(extents_)) {
        count *= extent;
      }
      return all.lowest + element_offset_ == 0 && count == all.highest - all.lowest + 1;
    }

    static constexpr bool is_strided() noexcept { return true; }

    /// Compares extents, strides and the index of the first element.
    // Templates, because CCCL compares any mapping with its layout_stride: a plain `==` would
    // be ambiguous. The plain ones are for left operands that convert to this mapping.
    template <class Self, class Other, if_self<Self> = 0, if_strided<Other> = 0>
    friend constexpr bool operator==(const Self& a, const Other& b) noexcept {
      return equal(a, b);
    }
    friend constexpr bool operator==(const mapping& a, const mapping& b) noexcept {
      return equal(a, b);
    }
    template <class Self, class Other, if_self<Self> = 0, if_strided<Other> = 0>
    friend constexpr bool operator!=(const Self& a, const Other& b) noexcept {
      return !equal(a, b);
    }
    friend constexpr bool operator!=(const mapping& a, const mapping& b) noexcept {
      return !equal(a, b);
    }

   private:
    template <class Other>
    static constexpr bool equal(const mapping& a, const Other& b) noexcept {
      bool same = a.extents() == b.extents() && a.element_offset() == first_of(b);
      const strides_type strides = strides_of(b);
      for (std::size_t r = 0; same && r < strides.size(); ++r) {
        same = a.stride(r) == strides[r];
      }
      return same;
    }
    template <class Other>
    static constexpr strides_type strides_of(const Other& other) noexcept {
      strides_type strides{};
      if constexpr (extents_type::rank() != 0) {  // mappings of rank 0 may have no `stride`
        for (std::size_t r = 0; r < strides.size(); ++r) {
          strides[r] = static_cast<std::int64_t>(other.stride(r));
        }
      }
      return strides;
    }
    template <class Other>
    static constexpr std::int64_t first_of(const mapping<Other>& other) noexcept {
      return other.element_offset();
    }
    template <class Other>
    static constexpr std::int64_t first_of(const Other& other) noexcept {
      for (std::size_t r = 0; r < extents_type::rank(); ++r) {
        if (other.extents().extent(r) == 0) {
          return 0;
        }
      }
      constexpr std::make_index_sequence<extents_type::rank()> ranks{};
      return static_cast<std::int64_t>(detail::origin_index(other, ranks));
    }
    static constexpr strides_type shape_of(const extents_type& extents) noexcept {
      strides_type shape{};
      for (std::size_t r = 0; r < shape.size(); ++r) {
        shape[r] = static_cast<std::int64_t>(extents.extent(r));
      }
      return shape;
    }
    static constexpr strides_type compact(const extents_type& extents) noexcept {
      const strides_type shape = shape_of(extents);
      strides_type strides{};
      detail::write_compact_strides(shape.data(), strides.data(), shape.size());
      return strides;
    }
    /// Returns a copy: g++ 12 cannot compare the address of a temporary's member with null at
    /// compile time.
    constexpr detail::strided_shape<extents_type::rank()> strided() const noexcept {
      return {shape_of(extents_), strides_};
    }
    constexpr detail::element_span span() const noexcept {
      const auto all = strided();
      return detail::span_of(all);
    }

    extents_type extents_;
    strides_type strides_;
    std::int64_t element_offset_;
  };
};

}  // namespace usm_dlpack
