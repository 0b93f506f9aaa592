// SPDX-License-Identifier: Apache-2.0
//
// Which dimensions are ordinary, and how many elements they reach, at and beyond the ends of
// int64_t.
#include <usm_dlpack/ordinary_structure.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using namespace usm_dlpack::detail;

template <std::size_t Rank>
using numbers = std::array<std::int64_t, Rank>;
constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();
/// The answer no. An ordinary tensor has fewer elements than `too_many`.
constexpr std::uint64_t no = std::numeric_limits<std::uint64_t>::max() - 1;
constexpr std::uint64_t too_many = std::uint64_t{1} << 40;

using test_of_dimensions = bool (*)(const std::int64_t*, const std::int64_t*, std::size_t,
                                    std::uint64_t&);
/// The span that a test finds, or no.
template <std::size_t Rank>
constexpr std::uint64_t span_by(test_of_dimensions holds, const numbers<Rank>& shape,
                                const numbers<Rank>& strides) {
  std::uint64_t span = no;
  const bool taken = holds(shape.data(), strides.data(), Rank, span);
  return taken ? span : span == no ? no : throw "a no leaves the span as it is";
}

template <std::size_t Rank>
constexpr std::uint64_t compact(numbers<Rank> shape, numbers<Rank> strides) {
  return span_by(&has_compact_dimensions, shape, strides);
}
static_assert(compact<0>({}, {}) == 1);
static_assert(compact<1>({7}, {1}) == 7 && compact<1>({7}, {2}) == no);
static_assert(compact<3>({2, 3, 4}, {12, 4, 1}) == 24);
static_assert(compact<3>({2, 3, 4}, {1, 2, 6}) == no, "columns");
static_assert(compact<3>({2, 3, 4}, {13, 4, 1}) == no, "a slice");
static_assert(compact<3>({2, 1, 4}, {4, 0, 1}) == 8, "a step that nobody takes");
static_assert(compact<2>({0, 4}, {4, 1}) == 0 && compact<2>({4, 0}, {0, 1}) == 0);
static_assert(compact<2>({-1, 4}, {4, 1}) == no, "overflow");
static_assert(compact<1>({-1}, {1}) - 1 >= too_many &&
              compact<1>({least}, {1}) - 1 >= too_many);
static_assert(compact<2>({4, most}, {most, 1}) == no, "overflow");

template <std::size_t Rank>
constexpr std::uint64_t ordered(numbers<Rank> shape, numbers<Rank> strides) {
  return span_by(&has_ordered_dimensions, shape, strides);
}
static_assert(ordered<0>({}, {}) == 1);
static_assert(ordered<1>({7}, {1}) == 7 && ordered<1>({7}, {3}) == 19);
static_assert(ordered<2>({2, 3}, {3, 1}) == 6 && ordered<2>({2, 3}, {9, 4}) == 18);
static_assert(ordered<2>({2, 3}, {1, 2}) == 6 && ordered<2>({2, 3}, {3, 4}) == 12, "columns");
static_assert(ordered<2>({3, 2}, {2, 5}) == 10 && ordered<2>({3, 2}, {2, 4}) == no);
static_assert(ordered<3>({2, 2, 2}, {5, 3, 1}) == 10, "between the others' elements");
static_assert(ordered<3>({2, 1, 3}, {3, 0, 1}) == 6, "a step that nobody takes");
static_assert(ordered<3>({1, 1, 1}, {least, 0, most}) == 1);
static_assert(ordered<3>({1, 2, 3}, {1, 3, 1}) == 6);
static_assert(ordered<2>({2, 3}, {2, 1}) == no, "rows share their ends");
static_assert(ordered<2>({2, 2}, {3, 3}) == no && ordered<1>({2}, {0}) == no);
static_assert(ordered<3>({2, 2, 2}, {4, 1, 2}) == no, "in neither order");
static_assert(ordered<1>({2}, {-1}) - 1 >= too_many && ordered<1>({3}, {-1}) == no);
static_assert(ordered<1>({0}, {1}) - 1 >= too_many && ordered<1>({0}, {2}) == no);
static_assert(ordered<1>({least}, {1}) - 1 >= too_many);
static_assert(ordered<2>({2, 0}, {2, 1}) == no && ordered<2>({0, 2}, {2, 1}) == no);
static_assert(ordered<1>({most}, {2}) - 1 >= too_many && ordered<1>({most}, {3}) == no);
static_assert(ordered<2>({2, 2}, {-2, -3}) == no, "a sum beyond uint64_t");

template <std::size_t Rank>
constexpr std::uint64_t sorted(numbers<Rank> shape, numbers<Rank> strides) {
  return span_by(&has_sorted_dimensions, shape, strides);
}
static_assert(sorted<0>({}, {}) == 1);
static_assert(sorted<3>({2, 3, 4}, {12, 4, 1}) == 24 && sorted<3>({2, 3, 4}, {1, 2, 6}) == 24);
static_assert(sorted<3>({3, 2, 4}, {4, 12, 1}) == 24 &&
              sorted<3>({4, 2, 3}, {1, 12, 4}) == 24);
static_assert(sorted<3>({2, 4, 3}, {12, 1, 4}) == 24 &&
              sorted<3>({3, 4, 2}, {4, 1, 12}) == 24);
static_assert(sorted<4>({2, 1, 4, 3}, {12, -7, 1, 4}) == 24);
static_assert(sorted<3>({2, 2, 2}, {4, 1, 1}) == no && sorted<3>({2, 2, 3}, {4, 1, 2}) == no);
static_assert(sorted<3>({2, 2, 2}, {4, -1, 2}) == no && sorted<3>({2, 2, 0}, {4, 1, 2}) == no);
static_assert(sorted<8>({2, 2, 2, 2, 2, 2, 2, 2}, {2, 1, 8, 4, 32, 16, 128, 64}) == 256);
static_assert(sorted<9>({2, 2, 2, 2, 2, 2, 2, 2, 2}, {2, 1, 8, 4, 32, 16, 128, 64, 256}) == no,
              "more than are sorted");

}  // namespace
