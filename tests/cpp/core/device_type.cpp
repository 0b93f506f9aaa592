// SPDX-License-Identifier: Apache-2.0
//
// The names of device types in refusals: those of dlpack.h, and "unknown" on either side.
#include <usm_dlpack/core/structure.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::detail::device_type_name;

TEST(DeviceType, IsNamedFromTheFirstToTheLastOfDlpack) {
  EXPECT_EQ(device_type_name(1), "kDLCPU (1)");
  EXPECT_EQ(device_type_name(14), "kDLOneAPI (14)");
  EXPECT_EQ(device_type_name(18), "kDLTrn (18)");
}

TEST(DeviceType, IsUnknownOutsideOfDlpack) {
  EXPECT_EQ(device_type_name(0), "unknown (0)");
  EXPECT_EQ(device_type_name(-1), "unknown (-1)");
  EXPECT_EQ(device_type_name(19), "unknown (19)");
  EXPECT_EQ(device_type_name(std::numeric_limits<std::int32_t>::min()),
            "unknown (-2147483648)");
  EXPECT_EQ(device_type_name(std::numeric_limits<std::int32_t>::max()),
            "unknown (2147483647)");
}

}  // namespace
