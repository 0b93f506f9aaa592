// SPDX-License-Identifier: Apache-2.0
//
// `layout_relaxed` as a mapping: where its elements stand, and what it says of itself.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/relaxed_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

using usm_dlpack::layout_relaxed;

using any_2d = md::dextents<std::int64_t, 2>;
using mapping_2d = layout_relaxed::mapping<any_2d>;
using fixed_2d = md::extents<int, 2, 3>;

static_assert(std::is_trivially_copyable_v<mapping_2d>);
static_assert(std::is_nothrow_move_constructible_v<mapping_2d>);
static_assert(std::is_default_constructible_v<mapping_2d>);
static_assert(std::is_same_v<mapping_2d::layout_type, layout_relaxed>);
static_assert(std::is_same_v<mapping_2d::extents_type, any_2d>);
static_assert(mapping_2d::is_always_strided() && !mapping_2d::is_always_unique() &&
              !mapping_2d::is_always_exhaustive());

// Without strides: compact, in C order.
constexpr layout_relaxed::mapping<fixed_2d> compact;
static_assert(compact.stride(0) == 3 && compact.stride(1) == 1 &&
              compact.element_offset() == 0);
static_assert(compact.required_span_size() == 6 && compact.is_unique() &&
              compact.is_exhaustive());
static_assert(compact(1, 2) == 5);

// Reversed in both dimensions: the handle is the lowest address, the first element the
// highest.
constexpr mapping_2d reversed(any_2d(2, 3), {-3, -1});
static_assert(reversed.element_offset() == 5 && reversed(0, 0) == 5 && reversed(1, 2) == 0);
static_assert(reversed.required_span_size() == 6 && reversed.is_unique());
static_assert(reversed.is_exhaustive());

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

// A gap in front only.
static_assert(!mapping_2d(any_2d(2, 3), {3, 1}, 1).is_exhaustive());
static_assert(mapping_2d(any_2d(2, 3), {3, 1}, 0).is_exhaustive());

// Empty, whatever the strides.
constexpr mapping_2d empty(any_2d(0, 3), {-3, -1});
static_assert(empty.required_span_size() == 0 && empty.element_offset() == 0);
static_assert(empty.is_unique() && empty.is_exhaustive());

// Far more indices than int64_t counts, on one element.
constexpr mapping_2d huge(any_2d(std::int64_t{1} << 32, std::int64_t{1} << 32), {0, 0});
static_assert(huge.required_span_size() == 1 && huge(0, 0) == 0 && !huge.is_unique());
static_assert(!huge.is_exhaustive());

// Rank 0 is one element.
constexpr layout_relaxed::mapping<md::extents<int>> scalar;
static_assert(scalar() == 0 && scalar.required_span_size() == 1 && scalar.is_exhaustive());

// A negative stride beside an index type that has no negative values.
using small = md::dextents<std::uint8_t, 1>;
constexpr layout_relaxed::mapping<small> narrow(small(200), {-1});
static_assert(narrow.stride(0) == -1 && narrow(0) == 199 && narrow(199) == 0);
static_assert(std::is_same_v<decltype(narrow(0)), std::uint8_t>);
static_assert(std::is_same_v<decltype(narrow.stride(0)), std::int64_t>);

// Equality compares what the mapping does, also between static and dynamic extents.
static_assert(compact == mapping_2d(any_2d(2, 3), {3, 1}));
static_assert(compact != mapping_2d(any_2d(2, 3), {3, 2}));
static_assert(compact != mapping_2d(any_2d(2, 3), {3, 1}, 1));
static_assert(compact != mapping_2d(any_2d(2, 4), {3, 1}));
static_assert(reversed == reversed && !(reversed != reversed));

static_assert(std::is_invocable_v<const mapping_2d&, int, unsigned>);
static_assert(!std::is_invocable_v<const mapping_2d&, int>);
static_assert(!std::is_invocable_v<const mapping_2d&, int, int, int>);
static_assert(!std::is_invocable_v<const mapping_2d&, int, const char*>);

// Equality is looked for in every dimension, from either side.
static_assert(compact != mapping_2d(any_2d(2, 3), {4, 1}));
static_assert(mapping_2d(any_2d(2, 3), {4, 1}) != compact);
static_assert(mapping_2d(any_2d(2, 3), {3, 2}) != compact);
static_assert(mapping_2d(any_2d(2, 3), {3, 1}, 1) != compact);

// The elements are counted, and a gap between them is seen.
static_assert(mapping_2d(any_2d(2, 4), {4, 1}).is_exhaustive());
static_assert(!mapping_2d(any_2d(2, 3), {4, 1}).is_exhaustive());
static_assert(mapping_2d(any_2d(0, 3), {0, 0}).is_unique());

}  // namespace
