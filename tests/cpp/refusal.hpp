// SPDX-License-Identifier: Apache-2.0
//
// How tests assert a refusal: the rule that was broken and the field, and where they matter,
// what was expected and found.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace usm_dlpack_test {

inline std::string name_of(usm_dlpack::errc code, const std::string& field) {
  return std::string(usm_dlpack::to_string(code)) + " of " + field;
}

/// Returns "code of field", or "nothing" if the act throws nothing.
template <class Act>
std::string refusal_of(const Act& act) {
  try {
    act();
  } catch (const usm_dlpack::conversion_error& error) {
    return name_of(error.code(), error.field());
  }
  return "nothing";
}

template <class Act>
void expect_refusal(const Act& act, usm_dlpack::errc code, const std::string& field,
                    const std::optional<std::string>& expected = {},
                    const std::optional<std::string>& found = {},
                    const std::string& remedy = "") {
  try {
    act();
    ADD_FAILURE() << "expected " << name_of(code, field) << ", found no refusal";
  } catch (const usm_dlpack::conversion_error& error) {
    EXPECT_EQ(name_of(error.code(), error.field()), name_of(code, field));
    EXPECT_EQ(error.expected(), expected.value_or(error.expected()));
    EXPECT_EQ(error.found(), found.value_or(error.found()));
    EXPECT_NE(error.remedy().find(remedy), std::string::npos) << error.remedy();
  }
}

}  // namespace usm_dlpack_test

/// Expects that an expression throws a `conversion_error` of a code and a field, and maybe
/// with these attributes `expected` and `found`, and words of a `remedy`.
#define EXPECT_REFUSAL(expression, ...)                                                     \
  do {                                                                                      \
    const ::testing::ScopedTrace trace_of_refusal(__FILE__, __LINE__, #expression);         \
    ::usm_dlpack_test::expect_refusal([&] { static_cast<void>(expression); }, __VA_ARGS__); \
  } while (false)
