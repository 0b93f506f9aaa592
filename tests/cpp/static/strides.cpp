// SPDX-License-Identifier: Apache-2.0
//
// Shape and stride arithmetic at and beyond the ends of int64_t, and what strides prove of
// overlap.
#include <usm_dlpack/core/mapping.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using namespace usm_dlpack::detail;

constexpr auto max = std::numeric_limits<std::int64_t>::max();
constexpr auto min = std::numeric_limits<std::int64_t>::min();

using numbers = std::array<std::int64_t, 2>;

// --- Arithmetic of devices, against the compiler's own --------------------------------------

constexpr std::int64_t root = 3037000499;  // of `max`, rounded down
constexpr std::int64_t edges[] = {
    min, min + 1, min / 2, min / 2 - 1, -root - 1, -root,   -3,          -2,      -1, 0, 1,
    2,   3,       root,    root + 1,    max / 2,   max / 3, max / 2 + 1, max - 1, max};

constexpr bool same_as_the_compiler() {
  for (const std::int64_t a : edges) {
    for (const std::int64_t b : edges) {
      std::int64_t ours = 7;
      std::int64_t theirs = 7;
      const bool product_overflows = __builtin_mul_overflow(a, b, &theirs);
      if (portable_multiply(a, b, ours) != product_overflows ||
          (!product_overflows && ours != theirs)) {
        return false;
      }
      const bool sum_overflows = __builtin_add_overflow(a, b, &theirs);
      if (portable_add(a, b, ours) != sum_overflows || (!sum_overflows && ours != theirs)) {
        return false;
      }
    }
  }
  return true;
}
static_assert(same_as_the_compiler());
static_assert(magnitude(min) == std::uint64_t{1} << 63 && magnitude(-3) == 3);

// --- Which integers hold which numbers ------------------------------------------------------

static_assert(fits_int64(std::uint64_t{max}) && !fits_int64(std::uint64_t{max} + 1));
static_assert(fits<std::int8_t>(127) && !fits<std::int8_t>(128));
static_assert(fits<std::int8_t>(-128) && !fits<std::int8_t>(-129));
static_assert(fits<std::uint8_t>(255) && !fits<std::uint8_t>(256) && !fits<std::uint8_t>(-1));
static_assert(fits<std::uint64_t>(max) && !fits<std::uint64_t>(-1));
#if defined(__SIZEOF_INT128__)
static_assert(fits<int128>(min) && fits<uint128>(max) && !fits<uint128>(-1));
static_assert(holds<int128>(~std::uint64_t{0}) &&
              !holds<std::int64_t>(std::uint64_t{max} + 1));
#endif

// --- strides_step_over ----------------------------------------------------------------------

constexpr bool unique(numbers shape, numbers strides) {
  return strides_step_over(shape.data(), strides.data(), 2, step_over::elements);
}
static_assert(unique({0, 3}, {0, 0}), "no elements overlap");
static_assert(unique({2, 2}, {max, -1}) && unique({1, 2}, {0, min}));
static_assert(!unique({2, 3}, {max, max}), "not proved: offsets beyond int64_t");

}  // namespace
