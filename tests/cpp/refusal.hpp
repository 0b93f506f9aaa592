// SPDX-License-Identifier: Apache-2.0
//
// How tests assert a refusal: code and field, and where values are computed also what was
// expected and found; the sentence is made of these and ends in a remedy.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace usm_dlpack_test {

inline void expect_same_refusal(const usm_dlpack::conversion_error& error,
                                usm_dlpack::errc code, const std::string& field,
                                const std::optional<std::string>& expected = {},
                                const std::optional<std::string>& found = {}) {
  EXPECT_STREQ(usm_dlpack::to_string(error.code()), usm_dlpack::to_string(code));
  EXPECT_EQ(error.field(), field);
  EXPECT_EQ(error.expected(), expected.value_or(error.expected()));
  EXPECT_EQ(error.found(), found.value_or(error.found()));
  EXPECT_FALSE(error.remedy().empty());
  EXPECT_EQ(error.what(), error.field() + ": expected " + error.expected() + ", found " +
                              error.found() + "; " + error.remedy());
}

template <class Act, class... Rest>
void expect_refusal(const Act& act, usm_dlpack::errc code, const Rest&... rest) {
  try {
    act();
  } catch (const usm_dlpack::conversion_error& error) {
    expect_same_refusal(error, code, rest...);
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "expected a conversion_error, found: " << error.what();
    return;
  }
  ADD_FAILURE() << "expected a conversion_error, found that nothing was thrown";
}

}  // namespace usm_dlpack_test

/// Expects that an expression throws a `conversion_error` with these attributes: code and
/// field, and in most tests of values also `expected` and `found`.
#define EXPECT_REFUSAL(expression, ...)                                                     \
  do {                                                                                      \
    const ::testing::ScopedTrace trace_of_refusal(__FILE__, __LINE__, #expression);         \
    ::usm_dlpack_test::expect_refusal([&] { static_cast<void>(expression); }, __VA_ARGS__); \
  } while (false)
