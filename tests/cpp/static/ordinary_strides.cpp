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
using usm_dlpack::detail::stride_of_one;
using usm_dlpack::detail::stride_rule;
template <std::size_t Rank>
using numbers = std::array<std::int64_t, Rank>;
constexpr auto most = std::numeric_limits<std::int64_t>::max();

// What the span is before a tensor is taken, and where one is that is not taken: no span of a
// view.
constexpr std::uint64_t no = std::uint64_t{1} << 63U | 77U;
constexpr std::uint64_t changed = no + 1;

constexpr std::uint64_t answer(bool taken, std::uint64_t span) {
  return taken || span == no ? span : changed;
}

template <std::size_t Rank>
constexpr std::uint64_t packed(numbers<Rank> shape, numbers<Rank> strides) {
  std::uint64_t span = no;
  const bool taken = has_compact_strides<stride_rule::right, stride_of_one::compact>(
      shape.data(), strides.data(), std::make_index_sequence<Rank>{}, span);
  return answer(taken, span);
}
static_assert(packed<0>({}, {}) == 1);
static_assert(packed<3>({2, 3, 4}, {12, 4, 1}) == 24);
static_assert(packed<3>({2, 3, 4}, {1, 2, 6}) == no && packed<1>({4}, {2}) == no);
static_assert(packed<2>({1, 4}, {4, 1}) == 4 && packed<2>({1, 4}, {-77, 1}) == no);
static_assert(packed<2>({2, most / 2}, {most / 2, 1}) == most - 1);
// A number that no extent may be, or a 0, shows in the span: none from 1 to the most of
// int64_t.
static_assert(packed<2>({0, 4}, {4, 1}) == 0 && packed<2>({4, 0}, {0, 1}) == 0);
static_assert(packed<2>({-1, 4}, {4, 1}) == no && packed<2>({-1, -4}, {-4, 1}) == no);
static_assert(packed<2>({1, -4}, {-4, 1}) > most && packed<2>({0, -4}, {-4, 1}) == 0);
static_assert(packed<2>({2, most / 2 + 1}, {most / 2 + 1, 1}) > most);
static_assert(packed<2>({4, most / 2 + 1}, {most / 2 + 1, 1}) == no, "overflow");

template <stride_rule Rule, std::size_t Rank>
constexpr std::uint64_t compact(numbers<Rank> shape, numbers<Rank> strides) {
  std::uint64_t size = no;
  const bool taken = has_compact_strides<Rule, stride_of_one::any>(
      shape.data(), strides.data(), std::make_index_sequence<Rank>{}, size);
  return answer(taken, size);
}
constexpr auto right = stride_rule::right;
constexpr auto left = stride_rule::left;

static_assert(compact<right, 0>({}, {}) == 1);
static_assert(compact<right, 3>({2, 3, 4}, {12, 4, 1}) == 24);
static_assert(compact<left, 3>({2, 3, 4}, {1, 2, 6}) == 24);
static_assert(compact<left, 3>({2, 3, 4}, {12, 4, 1}) == no);
static_assert(compact<right, 3>({2, 3, 4}, {12, 4, 2}) == no);
static_assert(compact<right, 2>({1, 4}, {-77, 1}) == 4, "free where the extent is 1");
static_assert(compact<right, 2>({0, 4}, {5, 1}) == no, "and nowhere else");
static_assert(compact<right, 2>({0, 4}, {4, 1}) == 0 && compact<left, 2>({0, 4}, {1, 0}) == 0);
static_assert(compact<right, 2>({-1, 4}, {4, 1}) == no);
static_assert(compact<right, 2>({-1, -4}, {-4, 1}) == no);
static_assert(compact<right, 2>({1, -4}, {7, 1}) > most);
static_assert(compact<right, 2>({2, most / 2}, {most / 2, 1}) == most - 1);
static_assert(compact<right, 2>({2, most / 2 + 1}, {most / 2 + 1, 1}) > most);
static_assert(compact<right, 2>({4, most / 2 + 1}, {most / 2 + 1, 1}) == no, "overflow");

template <stride_rule Rule, std::size_t Rank>
constexpr std::uint64_t nested(numbers<Rank> shape, numbers<Rank> strides) {
  std::uint64_t reach = no;
  const bool taken = has_nested_strides<Rule>(shape.data(), strides.data(),
                                              std::make_index_sequence<Rank>{}, reach);
  return answer(taken, reach);
}
static_assert(nested<right, 0>({}, {}) == 1);
static_assert(nested<right, 2>({3, 4}, {4, 1}) == 12);
static_assert(nested<right, 2>({3, 4}, {8, 2}) == 24);
static_assert(nested<right, 2>({3, 4}, {7, 2}) == no, "interleaved");
static_assert(nested<right, 2>({3, 4}, {1, 3}) == no && nested<left, 2>({3, 4}, {1, 3}) == 12);
static_assert(nested<right, 3>({3, 1, 4}, {9, 8, 2}) == 27,
              "a step beyond, without neighbours");
static_assert(nested<right, 3>({3, 1, 4}, {9, 7, 2}) == no, "none: the full checks decide");
static_assert(nested<right, 2>({3, 4}, {0, 1}) == no && nested<right, 1>({4}, {0}) == no);
static_assert(nested<right, 1>({4}, {-1}) == no && nested<right, 2>({3, 4}, {-4, 1}) == no);
static_assert(nested<right, 1>({1}, {-1}) > most && nested<right, 2>({1, 4}, {-4, 1}) > most);
static_assert(nested<right, 1>({0}, {1}) == 0 && nested<right, 2>({0, 4}, {4, 1}) == 0);
static_assert(nested<right, 2>({4, 0}, {4, 1}) == no &&
              nested<right, 2>({4, 0}, {-1, 1}) == no);
static_assert(nested<right, 1>({-2}, {-1}) == no && nested<right, 2>({-3, 4}, {4, 1}) == no);
static_assert(nested<right, 1>({2}, {most / 2 + 1}) > most);
static_assert(nested<right, 1>({4}, {most / 2 + 1}) == no, "overflow");

}  // namespace
