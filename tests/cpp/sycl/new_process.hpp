// SPDX-License-Identifier: Apache-2.0
//
// Tests of what can happen only once in a process, or only with another environment: run in a
// process of their own, in which nothing of SYCL has been called yet.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace usm_dlpack_test {

using environment = std::vector<std::pair<std::string, std::string>>;

/// Ends the new process: status 0 if every check in it has passed. Nothing else prints there.
[[noreturn]] inline void exit_with_verdict() {
  const auto& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int part = 0; part < result.total_part_count(); ++part) {
    if (result.GetTestPartResult(part).failed()) {
      std::cerr << result.GetTestPartResult(part) << std::endl;
    }
  }
  std::exit(result.Failed() ? 1 : 0);
}

/// Runs a body of checks in a new process with a changed environment.
/// @pre the test has not called SYCL before: the new process runs it from its start
template <class Body>
void in_a_new_process(const environment& wanted, const Body& body) {
  environment before;
  for (const auto& [name, value] : wanted) {
    const char* const old = std::getenv(name.c_str());
    before.emplace_back(name, old == nullptr ? "" : old);
    setenv(name.c_str(), value.c_str(), 1);
  }
  const auto run = [&] {
    try {
      body();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "the body threw: " << error.what();
    }
    exit_with_verdict();
  };
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  for (const auto& [name, value] : before) {
    value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace usm_dlpack_test
