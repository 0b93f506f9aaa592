// SPDX-License-Identifier: Apache-2.0
//
// Conversions to the int64_t of DLTensor that are refused; those that succeed are constant
// expressions.
#include <refusal.hpp>

#include <usm_dlpack/core/mapping.hpp>
#include <usm_dlpack/core/strides.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::errc;
using usm_dlpack::detail::to_extent;
using usm_dlpack::detail::to_stride;

TEST(Layout, RefusesExtentsThatInt64OrTheirSignForbids) {
  const char* const rule = "an extent from 0 to 9223372036854775807 elements";
  EXPECT_REFUSAL(to_extent(std::uint64_t{1} << 63, 4), errc::extent_out_of_range, "shape[4]",
                 rule, "9223372036854775808");
  EXPECT_REFUSAL(to_extent(std::numeric_limits<std::uint64_t>::max(), 0),
                 errc::extent_out_of_range, "shape[0]", rule, "18446744073709551615");
  EXPECT_REFUSAL(to_extent(std::int8_t{-128}, 1), errc::extent_out_of_range, "shape[1]", rule,
                 "-128");
  EXPECT_REFUSAL(to_extent(-1LL, 2), errc::extent_out_of_range, "shape[2]", rule, "-1");
}

TEST(Layout, RefusesStridesThatInt64CannotHold) {
  const char* const rule =
      "a stride from -9223372036854775808 to 9223372036854775807 elements";
  EXPECT_REFUSAL(to_stride(std::uint64_t{1} << 63, 7), errc::stride_out_of_range, "strides[7]",
                 rule, "9223372036854775808");
  EXPECT_REFUSAL(to_stride(std::numeric_limits<std::uint64_t>::max(), 0),
                 errc::stride_out_of_range, "strides[0]", rule, "18446744073709551615");
}

#if defined(__SIZEOF_INT128__)
TEST(Layout, CountsAndSaysNumbersOf128Bits) {
  using usm_dlpack::detail::digits;
  using usm_dlpack::detail::fits;
  using usm_dlpack::detail::holds;
  using usm_dlpack::detail::int128;
  using usm_dlpack::detail::uint128;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(fits<int128>(most) && fits<int128>(-most - 1) && fits<uint128>(most));
  EXPECT_FALSE(fits<uint128>(-1));
  EXPECT_TRUE(holds<int128>(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_TRUE(holds<std::uint64_t>(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(holds<std::int64_t>(std::uint64_t{1} << 63));
  EXPECT_EQ(digits(0), "0");
  EXPECT_EQ(std::string(digits(std::numeric_limits<std::int64_t>::min())),
            "-9223372036854775808");
  EXPECT_EQ(std::string(digits(std::numeric_limits<std::uint64_t>::max())),
            "18446744073709551615");
  EXPECT_EQ(digits(std::int8_t{-7}), "-7");
  EXPECT_EQ(digits(int128{0}), "0");
  EXPECT_EQ(digits(int128{-7}), "-7");
  EXPECT_EQ(digits((int128{1} << 64) + 5), "18446744073709551621");
  EXPECT_EQ(std::string(digits(-(int128{1} << 126) * 2)),
            "-170141183460469231731687303715884105728");
  EXPECT_EQ(digits(uint128{0} - 1), "340282366920938463463374607431768211455");
  EXPECT_REFUSAL(to_extent((int128{1} << 64) + 5, 0), errc::extent_out_of_range, "shape[0]",
                 "an extent from 0 to 9223372036854775807 elements", "18446744073709551621");
}
#endif

}  // namespace
