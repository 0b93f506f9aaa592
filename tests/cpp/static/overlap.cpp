// SPDX-License-Identifier: Apache-2.0
//
// What strides prove of overlap, at and beyond the ends of int64_t.
#include <usm_dlpack/core/strides.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using namespace usm_dlpack::detail;

constexpr auto max = std::numeric_limits<std::int64_t>::max();
constexpr auto min = std::numeric_limits<std::int64_t>::min();

template <std::size_t N>
using numbers = std::array<std::int64_t, N>;

// --- strides_are_unique, strides_are_nested
// ------------------------------------------------------

template <std::size_t N>
constexpr bool unique(numbers<N> shape, numbers<N> strides) {
  return strides_are_unique(shape.data(), strides.data(), N);
}

static_assert(strides_are_unique(nullptr, nullptr, 0));
static_assert(unique<2>({2, 3}, {3, 1}) && unique<2>({2, 3}, {1, 2}));
static_assert(unique<2>({2, 3}, {-3, 1}) && unique<2>({2, 3}, {3, -1}));
static_assert(unique<2>({2, 3}, {100, 7}));
static_assert(!unique<2>({2, 3}, {2, 1}), "rows share their ends");
static_assert(!unique<2>({2, 3}, {-2, 1}));
static_assert(!unique<1>({2}, {0}), "a broadcast");
static_assert(!unique<2>({3, 2}, {1, 1}), "the same step twice");
static_assert(!unique<2>({2, 2}, {5, 5}) && !unique<2>({2, 2}, {5, -5}));
static_assert(unique<2>({1, 2}, {0, 1}), "a dimension of extent 1 has no neighbours");
static_assert(unique<3>({4, 1, 5}, {5, 0, 1}));
static_assert(unique<2>({0, 2}, {0, 0}), "what has no elements has none that are shared");
static_assert(!unique<2>({3, 3}, {3, 2}), "not proved: the strides interleave");
static_assert(!unique<2>({2, 3}, {max, max}), "not proved: offsets beyond int64_t");
static_assert(unique<2>({2, 2}, {max, -1}));
static_assert(unique<1>({2}, {min}));

template <std::size_t Rank>
constexpr bool step_over_elements(numbers<Rank> shape, numbers<Rank> strides) {
  return strides_are_unique(shape.data(), strides.data(), Rank);
}
template <std::size_t Rank>
constexpr bool step_over_extents(numbers<Rank> shape, numbers<Rank> strides) {
  return strides_are_nested(shape.data(), strides.data(), Rank);
}
constexpr numbers<2> without_elements{0, 3};
constexpr numbers<2> of_three_by_two{3, 2};
constexpr numbers<3> of_two_each{2, 2, 2};

// No two elements of an empty tensor overlap; nothing is said of a span that overflows.
static_assert(step_over_elements<2>(without_elements, {0, 0}) &&
              step_over_extents<2>(without_elements, {0, 0}));
static_assert(!step_over_elements<2>(of_three_by_two, {std::int64_t{1} << 62, 1}));

// A step may fall between what the smaller ones reach and the extent of the next smaller one.
static_assert(step_over_elements<3>(of_two_each, {5, 3, 1}));
static_assert(!step_over_extents<3>(of_two_each, {5, 3, 1}));
static_assert(step_over_extents<3>(of_two_each, {6, 3, 1}));

}  // namespace
