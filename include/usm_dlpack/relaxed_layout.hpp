// SPDX-License-Identifier: Apache-2.0
//
// An mdspan layout that holds the strides which DLPack allows and `layout_stride` does not:
// zero (broadcast) and negative (reversed). Works with any implementation of mdspan.
#pragma once

#include <usm_dlpack/overlap.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace usm_dlpack {

/// A layout policy with a stride for each dimension, of either sign or zero, and an offset.
///
/// Element `(i...)` stands at `element_offset() + sum(i * stride(r))`. Source of the
/// interface: P0009 `[mdspan.layout.reqmts]`; other than there, `stride(r)` is an int64_t,
/// because the index type may be unsigned.
struct layout_relaxed {
  template <class Extents>
  class mapping {
   public:
    using extents_type = Extents;
    using index_type = typename extents_type::index_type;
    using size_type = typename extents_type::size_type;
    using rank_type = typename extents_type::rank_type;
    using layout_type = layout_relaxed;
    /// Distances between neighbours, in elements; one for each dimension.
    using strides_type = std::array<std::int64_t, extents_type::rank()>;

    /// The compact row-major mapping of the default extents.
    constexpr mapping() noexcept : mapping(extents_type{}, compact(extents_type{})) {}

    /// The mapping whose lowest element has index 0, so that the data handle is the lowest
    /// address of the view.
    /// @pre every index of the view fits `index_type`
    constexpr mapping(const extents_type& extents, const strides_type& strides) noexcept
        : extents_(extents), strides_(strides), element_offset_(-span().lowest) {}

    /// The mapping whose first element, all indices zero, has index `element_offset`.
    /// @pre every index of the view is non-negative and fits `index_type`
    constexpr mapping(const extents_type& extents, const strides_type& strides,
                      std::int64_t element_offset) noexcept
        : extents_(extents), strides_(strides), element_offset_(element_offset) {}

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

    /// Whether no two indices share an element, as far as the strides prove it: each dimension
    /// steps over everything that the dimensions of smaller steps reach.
    constexpr bool is_unique() const noexcept {
      const strides_type all = shape();
      const strides_type strides = strides_;  // a copy: see `span`
      return detail::strides_are_unique(all.data(), strides.data(), all.size());
    }

    /// Whether every index up to the span size is that of an element.
    constexpr bool is_exhaustive() const noexcept {
      const detail::element_span all = span();
      if (all.empty || !is_unique()) {
        return all.empty;
      }
      std::int64_t count = 1;  // no more than the span, as no two indices share an element
      for (const std::int64_t extent : shape()) {
        count *= extent;
      }
      return all.lowest + element_offset_ == 0 && count == all.highest - all.lowest + 1;
    }

    static constexpr bool is_strided() noexcept { return true; }

    template <class OtherExtents>
    friend constexpr bool operator==(const mapping& a,
                                     const mapping<OtherExtents>& b) noexcept {
      bool equal = a.extents() == b.extents() && a.element_offset() == b.element_offset();
      for (std::size_t r = 0; equal && r < extents_type::rank(); ++r) {
        equal = a.stride(r) == b.stride(r);
      }
      return equal;
    }
    template <class OtherExtents>
    friend constexpr bool operator!=(const mapping& a,
                                     const mapping<OtherExtents>& b) noexcept {
      return !(a == b);
    }

   private:
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
    constexpr strides_type shape() const noexcept { return shape_of(extents_); }
    constexpr detail::element_span span() const noexcept {
      const strides_type all = shape();
      // A copy, because g++ 12 compares the address of a temporary's member with null only at
      // run time.
      const strides_type strides = strides_;
      return detail::span_of(all.data(), strides.data(), all.size());
    }

    extents_type extents_;
    strides_type strides_;
    std::int64_t element_offset_;
  };
};

}  // namespace usm_dlpack
