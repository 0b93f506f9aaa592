// SPDX-License-Identifier: Apache-2.0
//
// level_zero_query.hpp: what it answers where there is no Level Zero device, as here.
#include <usm_dlpack/allocation.hpp>

#include <gtest/gtest.h>

#include "usm_memory.hpp"

namespace {

using namespace usm_dlpack_test;

TEST(LevelZeroQuery, AnOpenClPlatformIsNotAskedThroughIt) {
  const auto& entry = usm_dlpack::detail::device_table::get().platforms.at(0);
  EXPECT_EQ(entry.level_zero.query, nullptr);
  EXPECT_EQ(entry.level_zero.context, nullptr);
  EXPECT_NE(entry.opencl.query, nullptr);
}

}  // namespace
