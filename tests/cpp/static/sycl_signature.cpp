// SPDX-License-Identifier: Apache-2.0
//
// Which order the signature of a view in an odd layout says. The signatures of ordinary views
// are read in tests/python/test_extensions.py.
#include <odd_views.hpp>

#include <usm_dlpack/python/signature.hpp>

#include <cstddef>
#include <string_view>

namespace static_sycl_signature {

/// Serves one rank only.
struct layout_of_volumes {
  template <class Extents>
  struct mapping : odd::layout_stepped<>::mapping<Extents> {
    static_assert(Extents::rank() == 3);
    using odd::layout_stepped<>::mapping<Extents>::mapping;
  };
};

/// Rows of a multiple of 3 elements, which P2642 calls `layout_right_padded<3>`.
struct layout_of_threes {
  template <class Extents>
  struct mapping : odd::mapping_base<Extents, layout_of_threes> {
    using odd::mapping_base<Extents, layout_of_threes>::mapping_base;
    static constexpr std::size_t padding_value = 3;
    static constexpr bool is_always_exhaustive() noexcept {
      return Extents::static_extent(1) == 3;
    }
    constexpr int stride(std::size_t r) const noexcept {
      return r == 1 ? 1 : static_cast<int>(this->all_extents.extent(1) + 2) / 3 * 3;
    }
    constexpr int operator()(int i, int j) const noexcept { return i * stride(0) + j; }
  };
};

template <class Layout, std::size_t Rank>
using view = md::mdspan<float, md::dextents<int, Rank>, Layout>;

/// As `find` says, which is not constant in GCC 12 with `-fsanitize=undefined`.
constexpr bool contains(std::string_view text, std::string_view word) {
  std::size_t at = 0;
  while (at < text.size() && text.substr(at, word.size()) != word) {
    ++at;
  }
  return at < text.size();
}
template <class View>
constexpr bool says_order =
    contains(usm_dlpack::detail::parameter_text<View>.characters, "order");
static_assert(says_order<view<md::layout_right, 2>> && says_order<view<md::layout_left, 20>>);
static_assert(!says_order<view<layout_of_volumes, 3>>);
static_assert(!says_order<view<layout_of_threes, 2>>);

}  // namespace static_sycl_signature
