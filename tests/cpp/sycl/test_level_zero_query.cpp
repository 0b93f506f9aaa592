// SPDX-License-Identifier: Apache-2.0
//
// level_zero_query.hpp: what it answers where there is no Level Zero device, as here.
#include <usm_dlpack/allocation.hpp>

#include <gtest/gtest.h>

#include "usm_memory.hpp"

namespace {

using namespace usm_dlpack_test;
using usm_dlpack::detail::level_zero_platform;

TEST(LevelZeroQuery, AnOpenClPlatformIsNotAskedThroughIt) {
  const auto& table = usm_dlpack::detail::device_table::get();
  const level_zero_platform made =
      usm_dlpack::detail::make_level_zero_platform(table.platforms.at(0));
  EXPECT_EQ(made.query, nullptr);
  EXPECT_EQ(made.context, nullptr);
  const auto& native = usm_dlpack::detail::native_table::get().platforms.at(0);
  EXPECT_EQ(native.level_zero.query, nullptr);
  EXPECT_NE(native.opencl.query, nullptr);
}

}  // namespace
