// SPDX-License-Identifier: Apache-2.0
//
// A kit of deliberately odd accessors, layouts and views: what a user may write, and what an
// exporter must see through or refuse. Written against the standard's requirements, not
// against the headers under test.
#pragma once

#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace odd {

/// What the accessors below have in common.
template <class Element, template <class> class Self>
struct accessor_base {
  using offset_policy = Self<Element>;
  using element_type = Element;
  using reference = Element&;
  using data_handle_type = Element*;
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
struct restrict_accessor : accessor_base<Element, restrict_accessor> {
  using data_handle_type = Element* __restrict;
};

/// Promises the alignment of the handle, as std::aligned_accessor does.
template <class Element>
struct aligned_accessor : accessor_base<Element, aligned_accessor> {
  static constexpr std::size_t byte_alignment = 64;
};

/// Reads elements of a mutable type and writes none; opted in below.
template <class Element>
struct reading_accessor : accessor_base<Element, reading_accessor> {
  using reference = const Element&;
  using data_handle_type = const Element*;
  constexpr reference access(data_handle_type handle, std::size_t i) const {
    return handle[i];
  }
  constexpr data_handle_type offset(data_handle_type handle, std::size_t i) const {
    return handle + i;
  }
};

/// Starts from an index into memory that only the accessor knows.
template <class Element>
struct indexed_accessor : accessor_base<Element, indexed_accessor> {
  using data_handle_type = std::size_t;
  Element* base = nullptr;
  constexpr Element& access(std::size_t handle, std::size_t i) const {
    return base[handle + i];
  }
  constexpr std::size_t offset(std::size_t handle, std::size_t i) const { return handle + i; }
};

/// Starts from a pointer to something else than the elements.
template <class Element>
struct bytes_accessor : accessor_base<Element, bytes_accessor> {
  using data_handle_type = unsigned char*;
  Element& access(unsigned char* handle, std::size_t i) const {
    return reinterpret_cast<Element*>(handle)[i];
  }
  unsigned char* offset(unsigned char* handle, std::size_t i) const {
    return handle + i * sizeof(Element);
  }
};

/// What the mappings below have in common.
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

  /// The position of an element in C order.
  template <class... Indices>
  constexpr index_type position(Indices... indices) const noexcept {
    index_type at = 0;
    [[maybe_unused]] rank_type r = 0;
    ((at = static_cast<index_type>(at * all_extents.extent(r++) +
                                   static_cast<index_type>(indices))),
     ...);
    return at;
  }
  constexpr index_type count() const noexcept {
    index_type product = 1;
    for (rank_type r = 0; r < Extents::rank(); ++r) {
      product = static_cast<index_type>(product * all_extents.extent(r));
    }
    return product;
  }
  constexpr index_type required_span_size() const noexcept { return count(); }
  constexpr index_type c_stride(rank_type wanted) const noexcept {
    index_type product = 1;
    for (rank_type r = Extents::rank() - 1; r > wanted; --r) {
      product = static_cast<index_type>(product * all_extents.extent(r));
    }
    return product;
  }
  static constexpr bool is_always_unique() noexcept { return true; }
  static constexpr bool is_always_exhaustive() noexcept { return false; }
  static constexpr bool is_unique() noexcept { return true; }
  static constexpr bool is_exhaustive() noexcept { return false; }
};

/// A user's strided layout: any strides that the index type holds, the first element anywhere.
struct layout_anchored {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_anchored> {
    using base = mapping_base<Extents, layout_anchored>;
    using index_type = typename base::index_type;
    using strides_type = std::array<index_type, Extents::rank()>;

    strides_type all_strides{};
    index_type first{};
    index_type span_size{};

    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents, const strides_type& strides,
                      index_type first_index, index_type required) noexcept
        : base(extents), all_strides(strides), first(first_index), span_size(required) {}

    template <class... Indices>
    constexpr index_type operator()(Indices... indices) const noexcept {
      index_type at = first;
      [[maybe_unused]] std::size_t r = 0;
      ((at =
            static_cast<index_type>(at + static_cast<index_type>(indices) * all_strides[r++])),
       ...);
      return at;
    }
    constexpr index_type required_span_size() const noexcept { return span_size; }
    constexpr index_type stride(std::size_t r) const noexcept { return all_strides[r]; }
    static constexpr bool is_always_strided() noexcept { return true; }
    static constexpr bool is_strided() noexcept { return true; }
    friend constexpr bool operator==(const mapping& a, const mapping& b) noexcept {
      return a.all_extents == b.all_extents && a.all_strides == b.all_strides &&
             a.first == b.first;
    }
  };
};

/// A user's strided layout that is made from extents and strides, as `layout_stride` is; takes
/// the array of strides and does not show it.
struct layout_stepped {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_stepped> {
    using base = mapping_base<Extents, layout_stepped>;
    using index_type = typename base::index_type;
    using strides_type = std::array<index_type, Extents::rank()>;

    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents, const strides_type& strides) noexcept
        : base(extents), all_strides_(strides) {}

    template <class... Indices>
    constexpr index_type operator()(Indices... indices) const noexcept {
      index_type at = 0;
      [[maybe_unused]] std::size_t r = 0;
      ((at = static_cast<index_type>(at +
                                     static_cast<index_type>(indices) * all_strides_[r++])),
       ...);
      return at;
    }
    constexpr index_type required_span_size() const noexcept {
      index_type size = 1;
      for (std::size_t r = 0; r < Extents::rank(); ++r) {
        if (this->all_extents.extent(r) == 0) return 0;
        size = static_cast<index_type>(size +
                                       (this->all_extents.extent(r) - 1) * all_strides_[r]);
      }
      return size;
    }
    constexpr index_type stride(std::size_t r) const noexcept { return all_strides_[r]; }
    static constexpr bool is_always_strided() noexcept { return true; }
    static constexpr bool is_strided() noexcept { return true; }
    friend constexpr bool operator==(const mapping& a, const mapping& b) noexcept {
      return a.all_extents == b.all_extents && a.all_strides_ == b.all_strides_;
    }

   private:
    strides_type all_strides_{};
  };
};

/// Holds signed strides whatever the index type; made from them, or from them and a switch.
template <bool Switched>
struct layout_signed {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_signed> {
    using base = mapping_base<Extents, layout_signed>;
    using index_type = typename base::index_type;
    using strides_type = std::array<std::int64_t, Extents::rank()>;

    constexpr mapping() noexcept = default;
    mapping(const Extents& extents, const strides_type& strides) noexcept
        : base(extents), strides_(strides) {}
    template <bool Takes = Switched, std::enable_if_t<Takes, int> = 0>
    mapping(const Extents& extents, const strides_type& strides, bool) noexcept
        : mapping(extents, strides) {}
    template <class... Indices>
    constexpr index_type operator()(Indices... indices) const noexcept {
      std::int64_t at = 0;
      [[maybe_unused]] std::size_t r = 0;
      ((at += static_cast<std::int64_t>(indices) * strides_[r++]), ...);
      return static_cast<index_type>(at);
    }
    constexpr index_type required_span_size() const noexcept { return index_type{512}; }
    constexpr std::int64_t stride(std::size_t r) const noexcept { return strides_[r]; }
    static constexpr bool is_always_unique() noexcept { return false; }
    static constexpr bool is_always_strided() noexcept { return true; }
    static constexpr bool is_strided() noexcept { return true; }

   private:
    strides_type strides_{};
  };
};

/// C order, made from extents and an array of numbers that are no strides.
struct layout_numbered {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_numbered> {
    using base = mapping_base<Extents, layout_numbered>;
    using index_type = typename base::index_type;

    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents,
                      const std::array<index_type, Extents::rank()>&) noexcept
        : base(extents) {}
    template <class... Indices>
    constexpr index_type operator()(Indices... indices) const noexcept {
      return this->position(indices...);
    }
    constexpr index_type stride(std::size_t r) const noexcept { return this->c_stride(r); }
    static constexpr bool is_always_strided() noexcept { return true; }
    static constexpr bool is_strided() noexcept { return true; }
    friend constexpr bool operator==(const mapping& a, const mapping& b) noexcept {
      return a.all_extents == b.all_extents;
    }
  };
};

/// Neighbours swapped in pairs: no strides, and no member `stride`.
struct layout_swapped {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_swapped> {
    using mapping_base<Extents, layout_swapped>::mapping_base;
    template <class... Indices>
    constexpr auto operator()(Indices... indices) const noexcept {
      return static_cast<typename Extents::index_type>(this->position(indices...) ^ 1);
    }
    static constexpr bool is_always_strided() noexcept { return false; }
    static constexpr bool is_strided() noexcept { return false; }
    friend constexpr bool operator==(const mapping& a, const mapping& b) noexcept {
      return a.all_extents == b.all_extents;
    }
  };
};

/// C order, or neighbours swapped: only the object knows whether it is strided.
struct layout_perhaps_swapped {
  template <class Extents>
  struct mapping : mapping_base<Extents, layout_perhaps_swapped> {
    using base = mapping_base<Extents, layout_perhaps_swapped>;

    bool swapped = false;

    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents& extents, bool swap) noexcept
        : base(extents), swapped(swap) {}

    template <class... Indices>
    constexpr auto operator()(Indices... indices) const noexcept {
      return static_cast<typename Extents::index_type>(this->position(indices...) ^
                                                       (swapped ? 1 : 0));
    }
    /// @pre `is_strided()`
    constexpr auto stride(std::size_t r) const noexcept { return this->c_stride(r); }
    static constexpr bool is_always_strided() noexcept { return false; }
    constexpr bool is_strided() const noexcept { return !swapped; }
    friend constexpr bool operator==(const mapping& a, const mapping& b) noexcept {
      return a.all_extents == b.all_extents && a.swapped == b.swapped;
    }
  };
};

/// A view of no mdspan library that says whatever a test wants it to say.
template <class Element, class Index, std::size_t Rank>
struct hand_written_view {
  using element_type = Element;
  using index_type = Index;
  using data_handle_type = Element*;
  using accessor_type = plain_accessor<Element>;

  struct mapping_type {
    using index_type = Index;
    std::array<Index, Rank> strides{};
    Index first{};

    constexpr Index stride(std::size_t r) const { return strides[r]; }
    template <class... Indices>
    constexpr Index operator()(Indices...) const {
      return first;
    }
    static constexpr bool is_always_strided() { return true; }
    static constexpr bool is_strided() { return true; }
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
