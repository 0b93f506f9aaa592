// SPDX-License-Identifier: Apache-2.0
//
// Which view types can be made, decided where SFINAE sees it; which layouts hold any strides;
// and the two tests of strides against every pair of indices of small shapes.
#include <odd_views.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace usm_dlpack::detail;
using usm_dlpack::accepts_any_stride_v;
using usm_dlpack::to_mdspan;

template <class View, class Tensor, class = void>
inline constexpr bool made_from = false;
template <class View, class Tensor>
inline constexpr bool made_from<
    View, Tensor, std::void_t<decltype(to_mdspan<View>(std::declval<const Tensor&>()))>> =
    true;
template <class View>
inline constexpr bool comes_back =
    made_from<View, DLTensor> && made_from<View, DLManagedTensorVersioned>;
template <class View>
inline constexpr bool never_comes_back =
    !made_from<View, DLTensor> && !made_from<View, DLManagedTensorVersioned>;

template <class Element, class Layout = md::layout_right,
          class Accessor = md::default_accessor<Element>>
using view_2d = md::mdspan<Element, md::dextents<int, 2>, Layout, Accessor>;

// --- What SFINAE sees
// -----------------------------------------------------------------------------------

static_assert(comes_back<view_2d<float>> && comes_back<view_2d<const volatile float>>);
static_assert(comes_back<md::mdspan<float, md::extents<int>>>);
static_assert(comes_back<view_2d<float, md::layout_right, odd::plain_accessor<float>>>);
static_assert(comes_back<view_2d<float, md::layout_right, odd::restrict_accessor<float>>>);

static_assert(never_comes_back<view_2d<long double>> && never_comes_back<view_2d<char>>);
static_assert(never_comes_back<view_2d<std::byte>> && never_comes_back<view_2d<float*>>);
static_assert(never_comes_back<view_2d<std::string>>);
static_assert(never_comes_back<std::vector<float>> && never_comes_back<float*>);
static_assert(
    never_comes_back<view_2d<float, md::layout_right, odd::doubling_accessor<float>>>);
static_assert(
    never_comes_back<view_2d<float, md::layout_right, odd::indexed_accessor<float>>>);
static_assert(never_comes_back<view_2d<float, md::layout_right, odd::bytes_accessor<float>>>);
static_assert(never_comes_back<view_2d<float, odd::layout_swapped>>);

static_assert(std::is_same_v<decltype(to_mdspan<view_2d<const float>>(DLTensor{})),
                             view_2d<const float>>);

// --- Which layouts hold any strides, and how each is made
// -----------------------------------------------

template <class Layout>
using mapping_2d = typename Layout::template mapping<md::dextents<int, 2>>;

static_assert(accepts_any_stride_v<mapping_2d<usm_dlpack::layout_relaxed>>);
static_assert(!accepts_any_stride_v<mapping_2d<md::layout_stride>>);
static_assert(!accepts_any_stride_v<mapping_2d<md::layout_right>>);
static_assert(!accepts_any_stride_v<mapping_2d<md::layout_left>>);
static_assert(!accepts_any_stride_v<mapping_2d<odd::layout_stepped>>);

static_assert(made_from_strides<mapping_2d<md::layout_stride>>);
static_assert(made_from_strides<mapping_2d<usm_dlpack::layout_relaxed>>);
static_assert(made_from_strides<mapping_2d<odd::layout_stepped>>);
static_assert(!made_from_strides<mapping_2d<md::layout_right>>);
static_assert(!made_from_strides<mapping_2d<md::layout_left>>);
static_assert(made_from_extents<mapping_2d<md::layout_right>>);
static_assert(made_from_extents<mapping_2d<md::layout_left>>);
static_assert(!made_from_padding<mapping_2d<md::layout_right>>);
static_assert(!made_from_strides<mapping_2d<odd::layout_anchored>> &&
              !made_from_extents<mapping_2d<odd::layout_anchored>>);

// --- fits
// -----------------------------------------------------------------------------------------------

static_assert(fits<std::int8_t>(127) && fits<std::int8_t>(-128));
static_assert(!fits<std::int8_t>(128) && !fits<std::int8_t>(-129));
static_assert(fits<std::uint8_t>(255) && fits<std::uint8_t>(0));
static_assert(!fits<std::uint8_t>(256) && !fits<std::uint8_t>(-1));
static_assert(fits<std::int64_t>(INT64_MIN) && fits<std::int64_t>(INT64_MAX));
static_assert(fits<std::uint64_t>(INT64_MAX) && !fits<std::uint64_t>(-1));

// --- Strides of two dimensions against every pair of indices
// --------------------------------------------

struct two_dimensions {
  std::array<std::int64_t, 2> shape;
  std::array<std::int64_t, 2> strides;
};

constexpr bool elements_are_apart(const two_dimensions& d) {
  const std::int64_t count = d.shape[0] * d.shape[1];
  for (std::int64_t a = 0; a < count; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      const std::int64_t rows = a / d.shape[1] - b / d.shape[1];
      const std::int64_t columns = a % d.shape[1] - b % d.shape[1];
      if (rows * d.strides[0] + columns * d.strides[1] == 0) return false;
    }
  }
  return true;
}

constexpr std::int64_t size_of(std::int64_t stride) { return stride < 0 ? -stride : stride; }

/// `[mdspan.layout.stride.cons]`, as it stands there, with sizes of strides.
constexpr bool some_order_is_nested(const two_dimensions& d) {
  const std::int64_t first = size_of(d.strides[0]);
  const std::int64_t second = size_of(d.strides[1]);
  if (d.shape[0] == 1 || d.shape[1] == 1) {  // strides of extent 1 are free
    return (d.shape[0] == 1 || first > 0) && (d.shape[1] == 1 || second > 0);
  }
  return first > 0 && second > 0 &&
         (first >= second * d.shape[1] || second >= first * d.shape[0]);
}

/// Nested is what the standard says; nested strides are unique; unique ones keep all elements
/// apart.
constexpr bool agrees(const two_dimensions& d) {
  const bool unique = strides_are_unique(d.shape.data(), d.strides.data(), 2);
  const bool nested = strides_are_nested(d.shape.data(), d.strides.data(), 2);
  const bool apart = elements_are_apart(d);
  return nested == some_order_is_nested(d) && (!nested || unique) && (!unique || apart);
}

template <std::int64_t Rows, std::int64_t Columns>
constexpr bool all_agree() {
  for (std::int64_t first = -5; first <= 5; ++first) {
    for (std::int64_t second = -5; second <= 5; ++second) {
      if (!agrees({{Rows, Columns}, {first, second}})) return false;
    }
  }
  return true;
}

static_assert(all_agree<1, 1>() && all_agree<1, 3>() && all_agree<3, 1>());
static_assert(all_agree<2, 2>() && all_agree<2, 3>() && all_agree<3, 2>());
static_assert(all_agree<3, 3>() && all_agree<2, 4>() && all_agree<5, 2>());

constexpr two_dimensions apart_not_nested{{2, 3}, {5, 2}};
static_assert(strides_are_unique(apart_not_nested.shape.data(),
                                 apart_not_nested.strides.data(), 2) &&
                  !strides_are_nested(apart_not_nested.shape.data(),
                                      apart_not_nested.strides.data(), 2),
              "rows end before the next one, less than an extent before");

}  // namespace
