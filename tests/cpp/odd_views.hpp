// SPDX-License-Identifier: Apache-2.0
//
// Deliberately odd accessors, layouts and views that users may write. Written against the
// standard's requirements, not against the headers under test.
#pragma once

#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace odd {

template <class Element, template <class> class Self, class Handle = Element*,
          class Reference = Element&>
struct accessor_base {
  using offset_policy = Self<Element>;
  using element_type = Element;
  using reference = Reference;
  using data_handle_type = Handle;
  constexpr reference access(data_handle_type handle, std::size_t i) const {
    return handle[i];
  }
  constexpr data_handle_type offset(data_handle_type handle, std::size_t i) const {
    return handle + i;
  }
};

/// Plain, but not the default accessor.
template <class Element>
struct plain_accessor : accessor_base<Element, plain_accessor> {};

/// Shows twice the value that stands in memory.
template <class Element>
struct doubling_accessor : accessor_base<Element, doubling_accessor> {
  using reference = std::remove_cv_t<Element>;
  constexpr reference access(Element* handle, std::size_t i) const {
    return static_cast<reference>(2 * handle[i]);
  }
};

/// Shows elements through an object, as atomic references do; opted in below.
template <class Element>
struct vetted_accessor : accessor_base<Element, vetted_accessor> {
  struct reference {
    Element* element;
  };
  constexpr reference access(Element* handle, std::size_t i) const { return {handle + i}; }
};

/// Starts from a pointer that is promised to be the only one; opted in below.
template <class Element>
struct restrict_accessor : accessor_base<Element, restrict_accessor, Element* __restrict> {};

/// Promises the alignment of the handle, as std::aligned_accessor does.
template <class Element>
struct aligned_accessor : accessor_base<Element, aligned_accessor> {
  static constexpr std::size_t byte_alignment = 64;
};

/// Reads elements of a mutable type and writes none; opted in below.
template <class Element>
struct reading_accessor
    : accessor_base<Element, reading_accessor, const Element*, const Element&> {};

/// Starts from an index into memory that only the accessor knows; never called.
template <class Element>
struct indexed_accessor : accessor_base<Element, indexed_accessor, std::size_t> {};

/// Starts from a pointer to something else than the elements; never called.
template <class Element>
struct bytes_accessor : accessor_base<Element, bytes_accessor, unsigned char*> {};

template <class Extents, class Layout>
struct mapping_base {
  using extents_type = Extents;
  using index_type = typename Extents::index_type;
  using size_type = typename Extents::size_type;
  using rank_type = typename Extents::rank_type;
  using layout_type = Layout;

  Extents all_extents{};

  constexpr mapping_base() noexcept = default;
  constexpr explicit mapping_base(const Extents& extents) noexcept : all_extents(extents) {}
  constexpr const Extents& extents() const noexcept { return all_extents; }
  /// Of most mappings below: no test asks for more.
  constexpr index_type required_span_size() const noexcept { return index_type{100}; }
  static constexpr bool is_always_unique() noexcept { return true; }
  static constexpr bool is_always_exhaustive() noexcept { return false; }
  static constexpr bool is_always_strided() noexcept { return true; }
  static constexpr bool is_unique() noexcept { return true; }
  static constexpr bool is_exhaustive() noexcept { return false; }
  static constexpr bool is_strided() noexcept { return true; }
};

/// A mapping of strides of any integer type, and an index of the first element.
template <class Extents, class Layout, class Stride>
struct strided_mapping : mapping_base<Extents, Layout> {
  using index_type = typename Extents::index_type;
  using strides_array = std::array<Stride, Extents::rank()>;

  strides_array all_strides{};
  std::int64_t first = 0;

  constexpr strided_mapping() noexcept = default;
  constexpr strided_mapping(const Extents& extents, const strides_array& strides,
                            std::int64_t first_index = 0) noexcept
      : mapping_base<Extents, Layout>(extents), all_strides(strides), first(first_index) {}

  template <class... Indices>
  constexpr index_type operator()(Indices... indices) const noexcept {
    std::int64_t at = first;
    [[maybe_unused]] std::size_t r = 0;
    ((at += static_cast<std::int64_t>(indices) * static_cast<std::int64_t>(all_strides[r++])),
     ...);
    return static_cast<index_type>(at);
  }
  constexpr Stride stride(std::size_t r) const noexcept { return all_strides[r]; }
  friend constexpr bool operator==(const strided_mapping& a,
                                   const strided_mapping& b) noexcept {
    return a.all_extents == b.all_extents && a.all_strides == b.all_strides &&
           a.first == b.first;
  }
};

/// Can be made neither from extents nor from extents and strides: its first element may be
/// anywhere.
struct layout_anchored {
  template <class Extents>
  struct mapping : strided_mapping<Extents, layout_anchored, typename Extents::index_type> {
    using base = strided_mapping<Extents, layout_anchored, typename Extents::index_type>;
    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents, const typename base::strides_array& strides,
                      std::int64_t first_index) noexcept
        : base(extents, strides, first_index) {}
  };
};

/// Is made from extents and strides, as `layout_stride` is, and does not show the strides as
/// an array. Begins at the index `First`; holds strides of the index type, or of its own.
template <int First = 0, bool Unique = true, class Stride = void>
struct layout_stepped {
  template <class Extents>
  using stride_of =
      std::conditional_t<std::is_void_v<Stride>, typename Extents::index_type, Stride>;
  template <class Extents>
  struct mapping : strided_mapping<Extents, layout_stepped, stride_of<Extents>> {
    using base = strided_mapping<Extents, layout_stepped, stride_of<Extents>>;
    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents,
                      const typename base::strides_array& strides) noexcept
        : base(extents, strides, First) {}
    static constexpr bool is_always_unique() noexcept { return Unique; }
  };
};

/// Holds signed strides whatever the index type, and no index of the first element.
using layout_signed = layout_stepped<0, false, std::int64_t>;

/// Has no strides, and no member `stride`. Its first element is at index 1.
struct layout_swapped {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_swapped> {
    using mapping_base<Extents, layout_swapped>::mapping_base;
    template <class... Indices>
    constexpr typename Extents::index_type operator()(Indices...) const noexcept {
      return 1;
    }
    static constexpr bool is_always_strided() noexcept { return false; }
    static constexpr bool is_strided() noexcept { return false; }
  };
};

/// C order, of which only the object knows whether it is strided: up to three columns.
struct layout_perhaps_strided {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    using layout_type = layout_perhaps_strided;
    using md::layout_right::mapping<Extents>::mapping;
    static constexpr bool is_always_strided() noexcept { return false; }
    constexpr bool is_strided() const noexcept {
      return this->extents().extent(Extents::rank() - 1) <= 3;
    }
  };
};

/// A view of no mdspan library that says whatever a test wants it to say.
template <class Element, class Index, std::size_t Rank,
          class Accessor = plain_accessor<Element>>
struct hand_written_view {
  using element_type = Element;
  using index_type = Index;
  using data_handle_type = Element*;
  using accessor_type = Accessor;

  struct mapping_type {
    using index_type = Index;
    std::array<Index, Rank> strides{};
    Index first{};
    bool strided = true;

    constexpr Index stride(std::size_t r) const { return strides[r]; }
    template <class... Indices>
    constexpr Index operator()(Indices...) const {
      return first;
    }
    static constexpr bool is_always_strided() { return false; }
    constexpr bool is_strided() const { return strided; }
  };

  Element* handle = nullptr;
  std::array<Index, Rank> extents{};
  mapping_type map{};

  static constexpr std::size_t rank() { return Rank; }
  constexpr Index extent(std::size_t r) const { return extents[r]; }
  constexpr const mapping_type& mapping() const { return map; }
  constexpr accessor_type accessor() const { return {}; }
  constexpr Element* data_handle() const { return handle; }
};

}  // namespace odd

template <class Element>
inline constexpr bool usm_dlpack::is_plain_accessor_v<odd::vetted_accessor<Element>> = true;
template <class Element>
inline constexpr bool usm_dlpack::is_plain_accessor_v<odd::restrict_accessor<Element>> = true;
template <class Element>
inline constexpr bool usm_dlpack::is_plain_accessor_v<odd::reading_accessor<Element>> = true;
