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

using usm_dlpack::detail::has_compact_strides;
using usm_dlpack::detail::has_nested_strides;
using usm_dlpack::detail::stride_rule;
template <std::size_t Rank>
using numbers = std::array<std::int64_t, Rank>;
constexpr auto most = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t no = -77;  // what the span is before a tensor is taken

template <stride_rule Rule, std::size_t Rank>
constexpr std::int64_t compact(numbers<Rank> shape, numbers<Rank> strides) {
  std::int64_t size = no;
  const bool taken = has_compact_strides<Rule>(shape.data(), strides.data(),
                                               std::make_index_sequence<Rank>{}, size);
  return taken ? size : size == no ? no : -78;
}
constexpr auto right = stride_rule::right;
constexpr auto left = stride_rule::left;

static_assert(compact<right, 0>({}, {}) == 1);
static_assert(compact<right, 3>({2, 3, 4}, {12, 4, 1}) == 24);
static_assert(compact<left, 3>({2, 3, 4}, {1, 2, 6}) == 24);
static_assert(compact<left, 3>({2, 3, 4}, {12, 4, 1}) == no);
static_assert(compact<right, 3>({2, 3, 4}, {12, 4, 2}) == no);
static_assert(compact<right, 2>({1, 4}, {-77, 1}) == 4, "free where the extent is 1");
// Extents are looked at together, by bits_of_span.
static_assert(compact<right, 2>({0, 4}, {4, 1}) == 0);
static_assert(compact<right, 2>({-1, -4}, {-4, 1}) == 4);
static_assert(compact<right, 2>({2, most / 2}, {most / 2, 1}) == most - 1);
static_assert(compact<right, 2>({2, most / 2 + 1}, {most / 2 + 1, 1}) == no);

template <stride_rule Rule, std::size_t Rank>
constexpr std::int64_t nested(numbers<Rank> shape, numbers<Rank> strides) {
  std::int64_t reach = no;
  const bool taken = has_nested_strides<Rule>(shape.data(), strides.data(),
                                              std::make_index_sequence<Rank>{}, reach);
  return taken ? reach : reach == no ? no : -78;
}
static_assert(nested<right, 0>({}, {}) == 1);
static_assert(nested<right, 2>({3, 4}, {4, 1}) == 12);
static_assert(nested<right, 2>({3, 4}, {8, 2}) == 24);
static_assert(nested<right, 2>({3, 4}, {7, 2}) == no, "interleaved");
static_assert(nested<right, 2>({3, 4}, {1, 3}) == no && nested<left, 2>({3, 4}, {1, 3}) == 12);
static_assert(nested<right, 2>({3, 1}, {4, 1}) == no, "no neighbours: the full checks decide");
static_assert(nested<right, 2>({3, 4}, {0, 1}) == no && nested<right, 1>({4}, {-1}) == no);
static_assert(nested<right, 1>({0}, {1}) == no && nested<right, 1>({-2}, {-1}) == no);
static_assert(nested<right, 1>({2}, {most / 2 + 1}) == no, "overflow");

}  // namespace
