// SPDX-License-Identifier: Apache-2.0
//
// Which layouts are recognised as products of extents, and which others are not: one that only
// looks like it for small extents, or has a pitch of its own, must be asked for each stride.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/index_products.hpp>
#include <usm_dlpack/relaxed_layout.hpp>
#include <usm_dlpack/stride_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::detail::stride_rule;
using usm_dlpack::detail::stride_rule_v;
template <class Layout, class Index = int>
inline constexpr stride_rule rule =
    stride_rule_v<typename Layout::template mapping<md::dextents<Index, 4>>>;

static_assert(rule<md::layout_right> == stride_rule::right);
static_assert(rule<md::layout_left> == stride_rule::left);
static_assert(rule<md::layout_right, std::int8_t> == stride_rule::right);
static_assert(rule<md::layout_left, std::size_t> == stride_rule::left);
static_assert(rule<md::layout_stride> == stride_rule::each);
static_assert(rule<usm_dlpack::layout_relaxed> == stride_rule::each);

/// Like layout_right, and empty with static extents, but for what a derived class changes.
template <class Derived>
struct layout_like_right {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    using base = md::layout_right::mapping<Extents>;
    using typename base::index_type;
    using layout_type = Derived;
    using base::base;
    constexpr index_type stride(std::size_t r) const {
      return Derived::stride(static_cast<const base&>(*this), r);
    }
  };
};

/// The largest extent first: right for shrinking extents only.
struct largest_first : layout_like_right<largest_first> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    const auto& extents = base.extents();
    typename Base::index_type product = 1;
    for (std::size_t k = 0; k < Base::extents_type::rank(); ++k) {
      product *= extents.extent(k) < extents.extent(r) ? extents.extent(k) : 1;
    }
    return product;
  }
};
static_assert(rule<largest_first> == stride_rule::each);

/// The last dimension first, as in layout_right, and then the others from the first on.
struct last_then_first : layout_like_right<last_then_first> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    constexpr std::size_t last = Base::extents_type::rank() - 1;
    typename Base::index_type product = r == last ? 1 : base.extents().extent(last);
    for (std::size_t k = 0; r != last && k < r; ++k) {
      product *= base.extents().extent(k);
    }
    return product;
  }
};
static_assert(rule<last_then_first> == stride_rule::each);

/// Every stride is twice that of layout_right.
struct every_second : layout_like_right<every_second> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    return static_cast<typename Base::index_type>(2 * base.stride(r));
  }
};
static_assert(rule<every_second> == stride_rule::each);

/// A pitch that the object holds: with the default it looks like layout_right.
struct with_pitch {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    using base = md::layout_right::mapping<Extents>;
    using typename base::index_type;
    using layout_type = with_pitch;
    using base::base;
    constexpr index_type stride(std::size_t r) const { return pitch * base::stride(r); }
    index_type pitch = 1;
  };
};
static_assert(rule<with_pitch> == stride_rule::each);

/// layout_right, but the channels of images (the second of four dimensions) stand last.
struct channels_last : layout_like_right<channels_last> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    using index_type = typename Base::index_type;
    if constexpr (Base::extents_type::rank() == 4) {
      const index_type channels = base.extents().extent(1);
      return r == 0 ? base.stride(0) : r == 1 ? index_type{1} : channels * base.stride(r);
    } else {
      return base.stride(r);
    }
  }
};
static_assert(rule<channels_last> == stride_rule::each);
static_assert(stride_rule_v<channels_last::mapping<md::dextents<int, 3>>> ==
              stride_rule::right);

// Of every rank, as far as the index type holds a probe.
template <class Layout, std::size_t Rank, class Index = int>
inline constexpr stride_rule rule_at =
    stride_rule_v<typename Layout::template mapping<md::dextents<Index, Rank>>>;
static_assert(rule_at<md::layout_right, 0> == stride_rule::right);
static_assert(rule_at<md::layout_right, 1> == stride_rule::right);
static_assert(rule_at<md::layout_right, 2> == stride_rule::right);
static_assert(rule_at<md::layout_left, 2> == stride_rule::left);
static_assert(rule_at<md::layout_right, 8> == stride_rule::right);
static_assert(rule_at<md::layout_left, 8> == stride_rule::left);
static_assert(rule_at<md::layout_right, 5, std::int8_t> == stride_rule::each);

/// Always compact; columns stand together where the first extent is large.
struct columns_of_large : layout_like_right<columns_of_large> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    const auto& extents = base.extents();
    const bool columns = extents.extent(0) >= 64;
    typename Base::index_type product = 1;
    for (std::size_t k = 0; k < Base::extents_type::rank(); ++k) {
      const bool inner = columns ? k < r : k > r;
      product = static_cast<typename Base::index_type>(inner ? product * extents.extent(k)
                                                             : product);
    }
    return product;
  }
};
static_assert(rule<columns_of_large> == stride_rule::each);

/// Takes no static extents of more elements than a 32-bit offset reaches.
struct small_only : layout_like_right<small_only> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    using extents_type = typename Base::extents_type;
    constexpr std::uint64_t size = [] {
      std::uint64_t product = 1;
      for (std::size_t k = 0; k < extents_type::rank(); ++k) {
        const std::size_t extent = extents_type::static_extent(k);
        product *= extent == md::dynamic_extent ? 1 : extent;
      }
      return product;
    }();
    static_assert(size <= std::numeric_limits<std::int32_t>::max());
    return base.stride(r);
  }
};
static_assert(rule<small_only, std::size_t> == stride_rule::right);
static_assert(rule_at<small_only, 1, std::int64_t> == stride_rule::right);
static_assert(rule_at<small_only, 2, std::size_t> == stride_rule::right);
static_assert(rule_at<small_only, 3, std::size_t> == stride_rule::right);
static_assert(rule_at<small_only, 8, std::size_t> == stride_rule::right);
static_assert(rule<columns_of_large, std::size_t> == stride_rule::each);
static_assert(rule_at<columns_of_large, 8, std::size_t> == stride_rule::each);

/// Multiplies by counting, as many steps as each extent.
struct counting : layout_like_right<counting> {
  template <class Base>
  static constexpr auto stride(const Base& base, std::size_t r) {
    using index_type = typename Base::index_type;
    index_type product = 1;
    for (std::size_t k = r + 1; k < Base::extents_type::rank(); ++k) {
      index_type sum = 0;
      for (index_type i = 0; i < base.extents().extent(k); ++i) {
        sum += product;
      }
      product = sum;
    }
    return product;
  }
};
static_assert(rule_at<counting, 2, std::size_t> == stride_rule::right);
static_assert(rule_at<counting, 3, std::int64_t> == stride_rule::right);

/// Compact where the extents are static; rows of unknown length are padded, and it says so.
struct padded_if_dynamic {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    using base = md::layout_right::mapping<Extents>;
    using typename base::index_type;
    using layout_type = padded_if_dynamic;
    using base::base;
    static constexpr bool is_packed = Extents::rank_dynamic() == 0;
    static constexpr bool is_always_exhaustive() noexcept { return is_packed; }
    constexpr bool is_exhaustive() const noexcept { return is_packed; }
    constexpr index_type stride(std::size_t r) const {
      const bool inner = r + 1 == Extents::rank() || is_packed;
      return inner ? base::stride(r) : base::stride(r) * 2;
    }
  };
};
static_assert(rule<padded_if_dynamic> == stride_rule::each);
static_assert(stride_rule_v<padded_if_dynamic::mapping<md::extents<int, 4, 5, 6>>> ==
              stride_rule::right);

/// Refuses static extents: it is not probed, because it is not always compact.
struct dynamic_only {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    static_assert(Extents::rank_dynamic() == Extents::rank());
    using layout_type = dynamic_only;
    using md::layout_right::mapping<Extents>::mapping;
    static constexpr bool is_always_exhaustive() noexcept { return false; }
  };
};
static_assert(rule<dynamic_only> == stride_rule::each);

/// The member of that name is no padding, but what fills the gaps.
struct filled {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    static constexpr float padding_value = -1;
    using layout_type = filled;
    using md::layout_right::mapping<Extents>::mapping;
  };
};
static_assert(rule<filled> == stride_rule::right);

/// Neither is one that each mapping keeps, or that may change, known by the type.
struct kept {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    std::size_t padding_value = 4;
    using layout_type = kept;
    using md::layout_right::mapping<Extents>::mapping;
  };
};
struct variable {
  template <class Extents>
  struct mapping : md::layout_right::mapping<Extents> {
    static inline std::size_t padding_value = 4;
    using layout_type = variable;
    using md::layout_right::mapping<Extents>::mapping;
  };
};
template <class Layout,
          class Mapping = typename Layout::template mapping<md::dextents<int, 3>>>
constexpr bool is_padded = usm_dlpack::detail::has_padding<Mapping> ||
                           usm_dlpack::detail::has_static_padding<Mapping>;
static_assert(!is_padded<filled> && !is_padded<kept> && !is_padded<variable>);
static_assert(rule<kept> == stride_rule::each && rule<variable> == stride_rule::right);

/// Strides that compile time cannot read.
struct at_run_time : layout_like_right<at_run_time> {
  template <class Base>
  static auto stride(const Base& base, std::size_t r) {
    return base.stride(r);
  }
};
static_assert(rule<at_run_time> == stride_rule::each);

}  // namespace
