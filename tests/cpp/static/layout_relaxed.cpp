// SPDX-License-Identifier: Apache-2.0
//
// `layout_relaxed` as a mapping: where its elements stand, what it says of itself, what it is
// made of and equal to.
#include <odd_views.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace static_layout_relaxed {

using usm_dlpack::layout_relaxed;

using any_2d = md::dextents<std::int64_t, 2>;
using fixed_2d = md::extents<int, 2, 3>;
using mapping_2d = layout_relaxed::mapping<any_2d>;
using fixed_mapping = layout_relaxed::mapping<fixed_2d>;

static_assert(std::is_trivially_copyable_v<mapping_2d>);
static_assert(mapping_2d::is_always_strided() && !mapping_2d::is_always_unique() &&
              !mapping_2d::is_always_exhaustive());

// Without strides: compact, in C order.
constexpr fixed_mapping compact;
static_assert(compact.stride(0) == 3 && compact.stride(1) == 1 && compact(1, 2) == 5 &&
              compact.element_offset() == 0);
static_assert(compact.required_span_size() == 6 && compact.is_unique() &&
              compact.is_exhaustive());

// Reversed in both dimensions: the lowest address has index 0, the first element the highest.
constexpr mapping_2d reversed(any_2d(2, 3), {-3, -1});
static_assert(reversed.element_offset() == 5 && reversed(0, 0) == 5 && reversed(1, 2) == 0);
static_assert(reversed.required_span_size() == 6 && reversed.is_unique() &&
              reversed.is_exhaustive());

// One row for all.
constexpr mapping_2d broadcast(any_2d(4, 3), {0, 1});
static_assert(broadcast(0, 2) == 2 && broadcast(3, 2) == 2 &&
              broadcast.required_span_size() == 3);
static_assert(!broadcast.is_unique() && !broadcast.is_exhaustive());

// Every second column, backwards, behind a gap.
constexpr mapping_2d sliced(any_2d(2, 3), {6, -2}, 10);
static_assert(sliced(0, 0) == 10 && sliced(0, 2) == 6 && sliced(1, 1) == 14);
static_assert(sliced.required_span_size() == 17 && sliced.is_unique() &&
              !sliced.is_exhaustive());
static_assert(!mapping_2d(any_2d(2, 3), {3, 1}, 1).is_exhaustive(), "a gap in front");
static_assert(!mapping_2d(any_2d(2, 3), {4, 1}).is_exhaustive(), "a gap between rows");

// Empty, whatever the strides; far more indices than int64_t counts; rank 0.
constexpr mapping_2d empty(any_2d(0, 3), {-3, -1});
static_assert(empty.required_span_size() == 0 && empty.element_offset() == 0);
static_assert(empty.is_unique() && empty.is_exhaustive());
constexpr mapping_2d huge(any_2d(std::int64_t{1} << 62, std::int64_t{1} << 62), {0, 0});
static_assert(huge.required_span_size() == 1 && !huge.is_unique() && !huge.is_exhaustive());
constexpr layout_relaxed::mapping<md::extents<int>> scalar;
static_assert(scalar() == 0 && scalar.required_span_size() == 1 && scalar.is_exhaustive());

// A negative stride beside an index type that has no negative values.
using small = md::dextents<std::uint8_t, 1>;
constexpr layout_relaxed::mapping<small> narrow(small(200), {-1});
static_assert(narrow.stride(0) == -1 && narrow(0) == 199 && narrow(199) == 0);
static_assert(std::is_same_v<decltype(narrow(0)), std::uint8_t>);

static_assert(std::is_invocable_v<const mapping_2d&, int, unsigned>);
static_assert(!std::is_invocable_v<const mapping_2d&, int> &&
              !std::is_invocable_v<const mapping_2d&, int, const char*>);

// --- From other mappings --------------------------------------------------------------------

using right_2d = md::layout_right::mapping<any_2d>;
using left_2d = md::layout_left::mapping<any_2d>;
using stride_2d = md::layout_stride::mapping<any_2d>;

/// Implicitly where the extents are: in C++17 some mdspans convert all of theirs so.
template <class From, class To>
inline constexpr bool converts_as_extents =
    std::is_constructible_v<To, const From&> &&
    std::is_convertible_v<const From&, To> ==
        std::is_convertible_v<const typename From::extents_type&, typename To::extents_type>;
static_assert(std::is_convertible_v<const right_2d&, mapping_2d> &&
              std::is_convertible_v<const fixed_mapping&, mapping_2d>);
static_assert(converts_as_extents<right_2d, fixed_mapping> &&
              converts_as_extents<mapping_2d, fixed_mapping>);
static_assert(!std::is_constructible_v<mapping_2d, const layout_relaxed::mapping<small>&> &&
              !std::is_constructible_v<mapping_2d, const md::layout_right::mapping<small>&>);
static_assert(
    !std::is_constructible_v<fixed_mapping, layout_relaxed::mapping<md::extents<int, 2, 4>>>);
static_assert(!std::is_constructible_v<mapping_2d, any_2d> &&
              !std::is_constructible_v<mapping_2d, int>);

constexpr right_2d rows(any_2d(2, 3));
constexpr left_2d columns(any_2d(2, 3));
constexpr stride_2d gapped(any_2d(2, 3), md_array<std::int64_t, 2>{9, 2});
constexpr mapping_2d from_rows = rows;
constexpr mapping_2d from_columns = columns;
constexpr mapping_2d from_gapped = gapped;
static_assert(from_rows.stride(0) == 3 && from_rows.element_offset() == 0);
static_assert(from_columns.stride(0) == 1 && from_columns.stride(1) == 2);
static_assert(from_gapped.stride(0) == 9 && from_gapped(1, 2) == 13);

// Among themselves the offset is kept.
constexpr layout_relaxed::mapping<md::dextents<std::uint64_t, 2>> widened(sliced);
static_assert(widened.element_offset() == 10 && widened(0, 2) == 6);
static_assert(fixed_mapping(sliced).element_offset() == 10);

// The first element of another layout keeps its index.
using anchored = odd::layout_anchored::mapping<any_2d>;
constexpr anchored behind(any_2d(2, 3), {4, 1}, 5);
constexpr mapping_2d from_behind(behind);
static_assert(from_behind.element_offset() == 5 && from_behind(1, 2) == behind(1, 2));
static_assert(from_behind == behind && from_behind != anchored(any_2d(2, 3), {4, 1}, 4));

// Without elements, or with one, there are no strides to ask for.
constexpr mapping_2d of_none = right_2d(any_2d(0, 3));
static_assert(of_none.required_span_size() == 0 && of_none == right_2d(any_2d(0, 3)));
constexpr layout_relaxed::mapping<md::extents<long>> of_one =
    md::layout_right::mapping<md::extents<int>>();
static_assert(of_one() == 0 && of_one == scalar);

// --- Equal are equal extents, strides and first elements, on either side, whatever the layout
// ----

template <class A, class B>
constexpr bool differ(const A& a, const B& b) {
#if defined(USM_DLPACK_TEST_MDSPAN_CUDA) && __cplusplus < 202002L
  // With layout_stride on the right, CCCL's own `!=` is called, which answers as `==` does.
  if constexpr (std::is_same_v<typename B::layout_type, md::layout_stride>) {
    return b != a;
  }
#endif
  return a != b;
}
template <class A, class B>
constexpr bool equal(const A& a, const B& b) {
  return a == b && b == a && !differ(a, b) && !differ(b, a);
}
template <class A, class B>
constexpr bool unequal(const A& a, const B& b) {
  return differ(a, b) && differ(b, a) && !(a == b) && !(b == a);
}
static_assert(equal(from_rows, rows) && equal(from_columns, columns) &&
              equal(from_gapped, gapped) && equal(compact, from_rows) &&
              equal(widened, sliced));
static_assert(unequal(from_rows, columns) && unequal(from_gapped, rows));
static_assert(unequal(from_rows, right_2d(any_2d(2, 4))) &&
              unequal(from_rows, right_2d(any_2d(3, 3))));
static_assert(unequal(compact, mapping_2d(any_2d(2, 3), {4, 1})) &&
              unequal(compact, mapping_2d(any_2d(2, 3), {3, 2})) &&
              unequal(compact, mapping_2d(any_2d(2, 3), {3, 1}, 1)));
static_assert(unequal(mapping_2d(any_2d(2, 3), {9, 2}, 1), gapped), "starts elsewhere");

template <class A, class B, class = void>
inline constexpr bool are_comparable = false;
template <class A, class B>
inline constexpr bool
    are_comparable<A, B, std::void_t<decltype(std::declval<A>() == std::declval<B>())>> = true;
static_assert(are_comparable<left_2d, mapping_2d> && !are_comparable<mapping_2d, int>);
static_assert(!are_comparable<mapping_2d, layout_relaxed::mapping<small>> &&
              !are_comparable<md::layout_stride::mapping<small>, mapping_2d>);

}  // namespace static_layout_relaxed
