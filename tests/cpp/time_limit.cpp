// SPDX-License-Identifier: Apache-2.0
//
// Ends a program in which one test takes too long: what it waits for does not come.
#include <gtest/gtest.h>

#include <unistd.h>

namespace {

struct time_limit : ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { alarm(USM_DLPACK_TEST_SECONDS); }
  void OnTestEnd(const ::testing::TestInfo&) override { alarm(0); }
};

[[maybe_unused]] const bool registered =
    (::testing::UnitTest::GetInstance()->listeners().Append(new time_limit), true);

}  // namespace
