// SPDX-License-Identifier: Apache-2.0
//
// How far the first element of a view may stand from its handle: up to the last index at which
// a pointer reaches it, in either direction.
#include <odd_views.hpp>
#include <refusal.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::errc;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack_test::some_device;

/// The most elements of 8 bytes that a difference of pointers holds.
constexpr std::int64_t reach = std::numeric_limits<std::int64_t>::max() / 8;

std::uintptr_t first_of(std::uintptr_t handle, std::int64_t index) {
  using view_type = odd::hand_written_view<double, std::int64_t, 1>;
  const view_type view{reinterpret_cast<double*>(handle), {1}, {{1}, index}};
  return reinterpret_cast<std::uintptr_t>(to_dlpack_tensor(view, some_device).data());
}

TEST(ToDlpack, TakesAFirstElementAtEitherEndOfAPointersReach) {
  constexpr std::uintptr_t low = 64;
  constexpr std::uintptr_t high = ~std::uintptr_t{63};
  constexpr auto bytes = static_cast<std::uintptr_t>(reach) * 8;
  EXPECT_EQ(first_of(low, reach), low + bytes);
  EXPECT_EQ(first_of(high, -reach), high - bytes);
}

TEST(ToDlpack, RefusesAFirstElementOnePastEitherEndOfAPointersReach) {
  const char* const rule = "a first element within reach of a pointer";
  EXPECT_REFUSAL(first_of(64, reach + 1), errc::offset_out_of_range, "element_offset", rule,
                 "1152921504606846976");
  EXPECT_REFUSAL(first_of(64, -reach - 1), errc::offset_out_of_range, "element_offset", rule,
                 "-1152921504606846976");
}

TEST(ToDlpack, RefusesAnIndexThatInt64WouldTakeForANegativeOne) {
  char element = 0;
  using view_type = odd::hand_written_view<signed char, std::uint64_t, 1>;
  const view_type view{reinterpret_cast<signed char*>(&element),
                       {1},
                       {{1}, std::numeric_limits<std::uint64_t>::max()}};
  EXPECT_REFUSAL(to_dlpack_tensor(view, some_device), errc::offset_out_of_range,
                 "element_offset", "a first element within reach of a pointer",
                 "18446744073709551615");
}

}  // namespace
