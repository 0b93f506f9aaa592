// SPDX-License-Identifier: Apache-2.0
//
// The lists of docs/checks.md as tables: each row is a rule, and how to break it alone. That
// of any two broken rules the earlier is refused, is then one loop.
// tests/python/test_documented_checks.py compares the rows with the page.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace usm_dlpack_test {

/// @tparam Subject valid when made; a row breaks one rule of it
template <class Subject>
struct breakable_rule {
  usm_dlpack::errc code;
  const char* field;
  void (*break_it)(Subject&);
};

inline std::string name_of(usm_dlpack::errc code, const std::string& field) {
  return std::string(usm_dlpack::to_string(code)) + " of " + field;
}

/// Breaks some rules, the last of which is to be named, and expects that.
template <class Subject, class Act>
void expect_last_named(std::initializer_list<const breakable_rule<Subject>*> broken,
                       const Act& act) {
  Subject subject;
  const breakable_rule<Subject>* last = nullptr;
  std::string names;
  for (const breakable_rule<Subject>* rule : broken) {
    rule->break_it(subject);
    names += (names.empty() ? "" : ", ") + name_of(rule->code, rule->field);
    last = rule;
  }
  const ::testing::ScopedTrace trace(__FILE__, __LINE__, "broken: " + names);
  try {
    act(subject);
    ADD_FAILURE() << "expected a refusal, found none";
  } catch (const usm_dlpack::conversion_error& error) {
    EXPECT_EQ(name_of(error.code(), error.field()), name_of(last->code, last->field));
  }
}

/// Expects that each rule alone is refused, and of any two the earlier.
template <class Subject, std::size_t Count, class Act>
void expect_order(const breakable_rule<Subject> (&rules)[Count], const Act& act) {
  Subject valid;
  EXPECT_NO_THROW(act(valid)) << "nothing is broken yet";
  for (std::size_t later = 0; later < Count; ++later) {
    expect_last_named<Subject>({&rules[later]}, act);
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      expect_last_named<Subject>({&rules[later], &rules[earlier]}, act);
    }
  }
}

/// A view of no mdspan library that can break each rule of a view.
struct breakable_view {
  using element_type = float;
  using index_type = std::uint64_t;
  using data_handle_type = float*;
  struct accessor_type {
    using element_type = float;
    using reference = float&;
    using data_handle_type = float*;
    using offset_policy = accessor_type;
  };
  struct mapping_type {
    using index_type = std::uint64_t;
    std::uint64_t all_strides = 1;
    std::uint64_t first = 0;
    bool strided = true;

    std::uint64_t stride(std::size_t) const { return all_strides; }
    std::uint64_t operator()(std::uint64_t) const { return first; }
    static constexpr bool is_always_strided() { return false; }
    bool is_strided() const { return strided; }
  };

  float* handle = nullptr;
  std::uint64_t all_extents = 4;
  mapping_type map{};

  static constexpr std::size_t rank() { return 1; }
  std::uint64_t extent(std::size_t) const { return all_extents; }
  float* data_handle() const { return handle; }
  const mapping_type& mapping() const { return map; }
  static accessor_type accessor() { return {}; }
};

}  // namespace usm_dlpack_test
