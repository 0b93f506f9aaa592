// SPDX-License-Identifier: Apache-2.0
//
// Shape and stride arithmetic at and beyond the ends of int64_t.
#include <usm_dlpack/core/strides.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using namespace usm_dlpack::detail;

constexpr auto max = std::numeric_limits<std::int64_t>::max();
constexpr auto min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t two_to_32 = std::int64_t{1} << 32;

template <std::size_t N>
using numbers = std::array<std::int64_t, N>;

// --- fits_int64, to_extent, to_stride
// -------------------------------------------------------------------

static_assert(fits_int64(max) && fits_int64(min) && fits_int64(0));
static_assert(fits_int64(std::uint64_t{max}) && !fits_int64(std::uint64_t{max} + 1));
static_assert(!fits_int64(std::numeric_limits<std::uint64_t>::max()));
static_assert(fits_int64(std::numeric_limits<std::uint32_t>::max()));
static_assert(fits_int64(std::numeric_limits<std::int8_t>::min()));

static_assert(to_extent(std::uint64_t{max}, 0) == max);
static_assert(to_extent(std::int8_t{127}, 0) == 127);
static_assert(to_extent(std::uint8_t{255}, 0) == 255);
static_assert(to_extent(0U, 0) == 0);
static_assert(to_stride(std::int8_t{-128}, 0) == -128);
static_assert(to_stride(min, 0) == min);
static_assert(to_stride(std::uint64_t{max}, 0) == max);

// --- magnitude
// ------------------------------------------------------------------------------------------

static_assert(magnitude(0) == 0 && magnitude(-1) == 1 && magnitude(1) == 1);
static_assert(magnitude(max) == std::uint64_t{max} && magnitude(min) == std::uint64_t{1}
                                                                            << 63);

// --- span_of
// --------------------------------------------------------------------------------------------

template <std::size_t N>
constexpr bool spans(numbers<N> shape, numbers<N> strides, std::int64_t lowest,
                     std::int64_t highest) {
  const element_span span = span_of(shape.data(), strides.data(), N);
  return !span.empty && !span.overflow && span.lowest == lowest && span.highest == highest;
}
template <std::size_t N>
constexpr bool spans_compact(numbers<N> shape, std::int64_t highest) {
  const element_span span = span_of(shape.data(), nullptr, N);
  return !span.empty && !span.overflow && span.lowest == 0 && span.highest == highest;
}
template <std::size_t N>
constexpr bool is_empty(numbers<N> shape, numbers<N> strides) {
  const element_span span = span_of(shape.data(), strides.data(), N);
  const element_span compact = span_of(shape.data(), nullptr, N);
  return span.empty && !span.overflow && span.lowest == 0 && span.highest == 0 &&
         compact.empty && !compact.overflow;
}
template <std::size_t N>
constexpr bool overflows(numbers<N> shape, numbers<N> strides) {
  return span_of(shape.data(), strides.data(), N).overflow;
}
template <std::size_t N>
constexpr bool overflows_compact(numbers<N> shape) {
  return span_of(shape.data(), nullptr, N).overflow;
}

static_assert(span_of(nullptr, nullptr, 0).highest == 0 && !span_of(nullptr, nullptr, 0).empty,
              "rank 0 has one element");
static_assert(spans<2>({2, 3}, {3, 1}, 0, 5));
static_assert(spans<2>({2, 3}, {1, 2}, 0, 5));
static_assert(spans<2>({2, 3}, {-3, 1}, -3, 2));
static_assert(spans<2>({2, 3}, {-3, -1}, -5, 0));
static_assert(spans<2>({two_to_32, two_to_32}, {0, 0}, 0, 0), "a broadcast is one element");
static_assert(spans<2>({1, 3}, {max, 1}, 0, 2), "a dimension of extent 1 adds nothing");
static_assert(spans<2>({1, 3}, {min, 1}, 0, 2));
static_assert(spans<1>({2}, {max}, 0, max));
static_assert(spans<1>({2}, {min}, min, 0));
static_assert(spans<1>({max}, {1}, 0, max - 1));
static_assert(spans<2>({2, 2}, {max, -max}, -max, max), "the two ends are apart");

static_assert(is_empty<1>({0}, {1}));
static_assert(is_empty<2>({0, max}, {max, max}),
              "strides of an empty tensor are not looked at");
static_assert(is_empty<2>({max, 0}, {min, min}));
static_assert(is_empty<3>({max, max, 0}, {1, 1, 1}), "the product that overflows comes first");

static_assert(overflows<1>({3}, {max}));
static_assert(overflows<1>({3}, {min}));
static_assert(overflows<2>({2, 2}, {max, 1}));
static_assert(overflows<2>({2, 2}, {min, -1}));
static_assert(overflows<2>({two_to_32, two_to_32}, {two_to_32, 1}));

static_assert(spans_compact<3>({2, 3, 4}, 23));
static_assert(spans_compact<3>({2, 1, 4}, 7));
static_assert(spans_compact<1>({max}, max - 1));
static_assert(overflows_compact<2>({two_to_32, two_to_32}));
static_assert(overflows_compact<3>({1, two_to_32, two_to_32}));

// --- write_compact_strides
// ------------------------------------------------------------------------------

template <std::size_t N>
constexpr numbers<N> compact(numbers<N> shape) {
  numbers<N> strides{};
  write_compact_strides(shape.data(), strides.data(), N);
  return strides;
}
template <std::size_t N>
constexpr bool same(numbers<N> a, numbers<N> b) {
  for (std::size_t r = 0; r < N; ++r) {
    if (a[r] != b[r]) return false;
  }
  return true;
}

static_assert(same(compact<1>({7}), {1}));
static_assert(same(compact<3>({2, 3, 4}), {12, 4, 1}));
static_assert(same(compact<3>({2, 1, 4}), {4, 4, 1}));
static_assert(same(compact<3>({2, 0, 4}), {4, 4, 1}),
              "an empty dimension does not zero the rest");
static_assert(same(compact<3>({0, two_to_32, two_to_32}), {max, two_to_32, 1}),
              "a product beyond int64_t stops at its end");

// An int64_t fits another type from its lowest value to its highest.
template <class Integer>
constexpr bool holds(std::int64_t value) {
  return usm_dlpack::detail::fits<Integer>(value);
}
static_assert(holds<std::int8_t>(-128) && !holds<std::int8_t>(-129));
static_assert(holds<std::int8_t>(127) && !holds<std::int8_t>(128));
static_assert(holds<std::uint8_t>(0) && !holds<std::uint8_t>(-1));
static_assert(holds<std::uint8_t>(255) && !holds<std::uint8_t>(256));
static_assert(holds<std::uint64_t>(0) && !holds<std::uint64_t>(-1));

}  // namespace
