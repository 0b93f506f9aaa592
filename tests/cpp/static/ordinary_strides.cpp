// SPDX-License-Identifier: Apache-2.0
//
// Which strides are taken in one pass, and what they span.
#include <usm_dlpack/ordinary_strides.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace {

using usm_dlpack::detail::compact_size;
using usm_dlpack::detail::nested_reach;
using usm_dlpack::detail::stride_rule;
template <std::size_t Rank>
using numbers = std::array<std::int64_t, Rank>;
constexpr auto most = std::numeric_limits<std::int64_t>::max();

template <stride_rule Rule, std::size_t Rank>
constexpr std::int64_t compact(numbers<Rank> shape, numbers<Rank> strides) {
  return compact_size<Rule>(shape.data(), strides.data(), std::make_index_sequence<Rank>{});
}
constexpr auto right = stride_rule::right;
constexpr auto left = stride_rule::left;

static_assert(compact<right, 0>({}, {}) == 1);
static_assert(compact<right, 3>({2, 3, 4}, {12, 4, 1}) == 24);
static_assert(compact<left, 3>({2, 3, 4}, {1, 2, 6}) == 24);
static_assert(compact<left, 3>({2, 3, 4}, {12, 4, 1}) == 0);
static_assert(compact<right, 3>({2, 3, 4}, {12, 4, 2}) == 0);
static_assert(compact<right, 2>({1, 4}, {-77, 1}) == 4, "free where the extent is 1");
static_assert(compact<right, 2>({0, 4}, {4, 1}) == 0, "empty");
static_assert(compact<right, 2>({-1, -4}, {-4, 1}) == 0);
static_assert(compact<right, 2>({2, most / 2}, {most / 2, 1}) == most - 1);
static_assert(compact<right, 2>({2, most / 2 + 1}, {most / 2 + 1, 1}) == 0);

template <stride_rule Rule, std::size_t Rank>
constexpr std::int64_t nested(numbers<Rank> shape, numbers<Rank> strides) {
  return nested_reach<Rule>(shape.data(), strides.data(), std::make_index_sequence<Rank>{});
}
static_assert(nested<right, 0>({}, {}) == 1);
static_assert(nested<right, 2>({3, 4}, {4, 1}) == 12);
static_assert(nested<right, 2>({3, 4}, {8, 2}) == 24);
static_assert(nested<right, 2>({3, 4}, {7, 2}) == 0, "interleaved");
static_assert(nested<right, 2>({3, 4}, {1, 3}) == 0 && nested<left, 2>({3, 4}, {1, 3}) == 12);
static_assert(nested<right, 2>({3, 1}, {4, 1}) == 0, "no neighbours: the full checks decide");
static_assert(nested<right, 2>({3, 4}, {0, 1}) == 0 && nested<right, 1>({4}, {-1}) == 0);
static_assert(nested<right, 1>({0}, {1}) == 0 && nested<right, 1>({-2}, {-1}) == 0);
static_assert(nested<right, 1>({2}, {most / 2 + 1}) == 0, "overflow");

}  // namespace
