// SPDX-License-Identifier: Apache-2.0
//
// Shape and stride arithmetic at and beyond the ends of int64_t, and what strides prove of
// overlap.
#include <usm_dlpack/core/mapping.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace static_strides {

using namespace usm_dlpack::detail;

constexpr auto max = std::numeric_limits<std::int64_t>::max();
constexpr auto min = std::numeric_limits<std::int64_t>::min();

using numbers = std::array<std::int64_t, 2>;

static_assert(magnitude(min) == std::uint64_t{1} << 63 && magnitude(-3) == 3);

static_assert(fits_int64(std::uint64_t{max}) && !fits_int64(std::uint64_t{max} + 1));
static_assert(fits<std::int8_t>(127) && !fits<std::int8_t>(128));
static_assert(fits<std::int8_t>(-128) && !fits<std::int8_t>(-129));
static_assert(fits<std::uint8_t>(255) && !fits<std::uint8_t>(256) && !fits<std::uint8_t>(-1));
static_assert(fits<std::uint64_t>(max) && !fits<std::uint64_t>(-1));
#if defined(__SIZEOF_INT128__)
static_assert(fits<int128>(min) && fits<uint128>(max) && !fits<uint128>(-1));
static_assert(fits<int128>(~std::uint64_t{0}) && !fits<std::int64_t>(std::uint64_t{max} + 1));
#endif

constexpr bool unique(numbers shape, numbers strides) {
  return strides_step_over(strided_shape<2>{shape, strides}, step_over::elements);
}
static_assert(unique({0, 3}, {0, 0}), "no elements overlap");
static_assert(unique({2, 2}, {max, -1}) && unique({1, 2}, {0, min}));
static_assert(!unique({2, 3}, {max, max}), "not proved: offsets beyond int64_t");

}  // namespace static_strides
