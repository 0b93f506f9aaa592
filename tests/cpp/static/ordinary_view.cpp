// SPDX-License-Identifier: Apache-2.0
//
// How large the numbers of an ordinary tensor may be for a view.
#include <usm_dlpack/ordinary_view.hpp>

#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::detail::most_of_all;
using usm_dlpack::detail::roomy_bits;

// Two sums of such numbers, and one times the size, are below 2^63.
static_assert(roomy_bits(1) == 62 && roomy_bits(2) == 61 && roomy_bits(4) == 60);
static_assert(roomy_bits(3) == 60 && roomy_bits(5) == 59, "no power of two: the next one");
static_assert(roomy_bits(16) == 58 && roomy_bits(std::size_t{1} << 20U) == 42);

constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
static_assert(most_of_all<std::uint64_t>() == all);
static_assert(most_of_all<std::int64_t>() == all / 2 && most_of_all<std::int8_t>() == 127);
static_assert(most_of_all<std::uint64_t, int>() == (std::uint64_t{1} << 31U) - 1);
static_assert(most_of_all<int, std::uint64_t>() == (std::uint64_t{1} << 31U) - 1);
static_assert(most_of_all<usm_dlpack::detail::int128>() == all, "as far as uint64_t has them");

}  // namespace
