// SPDX-License-Identifier: Apache-2.0
//
// How tests assert a refusal: the rule that was broken, the field, what was expected and what
// was found, and that the sentence is made of these and ends in a remedy.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <gtest/gtest.h>

#include <string>

namespace usm_dlpack_test {

inline void expect_same_refusal(const usm_dlpack::conversion_error& error,
                                usm_dlpack::errc code, const std::string& field,
                                const std::string& expected, const std::string& found) {
  EXPECT_STREQ(usm_dlpack::to_string(error.code()), usm_dlpack::to_string(code));
  EXPECT_EQ(error.field(), field);
  EXPECT_EQ(error.expected(), expected);
  EXPECT_EQ(error.found(), found);
  EXPECT_FALSE(error.remedy().empty());
  EXPECT_EQ(error.what(), error.field() + ": expected " + error.expected() + ", found " +
                              error.found() + "; " + error.remedy());
}

template <class Act>
void expect_refusal(const Act& act, usm_dlpack::errc code, const std::string& field,
                    const std::string& expected, const std::string& found) {
  try {
    act();
  } catch (const usm_dlpack::conversion_error& error) {
    expect_same_refusal(error, code, field, expected, found);
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "expected a conversion_error, found: " << error.what();
    return;
  }
  ADD_FAILURE() << "expected a conversion_error, found that nothing was thrown";
}

}  // namespace usm_dlpack_test

/// Expects that an expression throws a `conversion_error` with exactly these attributes.
#define EXPECT_REFUSAL(expression, code, field, expected, found)                           \
  do {                                                                                     \
    const ::testing::ScopedTrace trace_of_refusal(__FILE__, __LINE__, #expression);        \
    ::usm_dlpack_test::expect_refusal([&] { static_cast<void>(expression); }, code, field, \
                                      expected, found);                                    \
  } while (false)
