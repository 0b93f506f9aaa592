// SPDX-License-Identifier: Apache-2.0
//
// The lists of docs/checks.md as tables: each row is a rule, how to break it alone, and what
// the refusal then says.
// tests/python/test_documented_checks.py compares the rows with the page.
#pragma once

#include <odd_views.hpp>
#include <valid_tensor.hpp>

#include <optional>
#include <string>

namespace usm_dlpack_test {

/// @tparam Subject valid when made; a row breaks one rule of it
template <class Subject>
struct breakable_rule {
  errc code;
  const char* field;
  void (*break_it)(Subject&);
  const char* expected = nullptr;  ///< null if the backend decides
  const char* found = nullptr;
};

/// Breaks a rule alone, and expects the refusal that its row says.
template <class Subject, class Act>
void expect_row(const breakable_rule<Subject>& rule, const Act& act) {
  Subject subject;
  rule.break_it(subject);
  std::optional<std::string> expected, found;
  if (rule.expected != nullptr) {
    expected = rule.expected;
  }
  if (rule.found != nullptr) {
    found = rule.found;
  }
  EXPECT_REFUSAL(act(subject), rule.code, rule.field, expected, found);
}

/// Breaks two rules, the later one first, and expects that the earlier one is refused.
template <class Subject, class Act>
void expect_earlier(const breakable_rule<Subject>& earlier,
                    const breakable_rule<Subject>& later, const Act& act) {
  Subject subject;
  later.break_it(subject);
  earlier.break_it(subject);
  const ::testing::ScopedTrace trace(__FILE__, __LINE__,
                                     "also broken: " + name_of(later.code, later.field));
  std::optional<std::string> expected;  // tells apart two rules of one code and field
  if (name_of(earlier.code, earlier.field) == name_of(later.code, later.field)) {
    expected = earlier.expected;
  }
  EXPECT_REFUSAL(act(subject), earlier.code, earlier.field, expected);
}

/// Expects that each rule of some tables alone is refused, and of any two the earlier.
template <class Subject, class Act, std::size_t... Counts>
void expect_order(const Act& act, const breakable_rule<Subject> (&... tables)[Counts]) {
  std::vector<breakable_rule<Subject>> rules;
  (rules.insert(rules.end(), tables, tables + Counts), ...);
  Subject valid;
  EXPECT_NO_THROW(act(valid)) << "nothing is broken yet";
  for (std::size_t later = 0; later < rules.size(); ++later) {
    expect_row(rules[later], act);
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      expect_earlier(rules[earlier], rules[later], act);
    }
  }
}

/// A view that can break each rule of a view, of 4 elements that it does not have.
template <class Element, class Accessor = odd::plain_accessor<Element>>
struct breakable_view : odd::hand_written_view<Element, std::uint64_t, 1, Accessor> {
  breakable_view() {
    this->extents = {4};
    this->map.strides = {1};
  }
};

inline constexpr std::uint64_t beyond_int64 = std::uint64_t{1} << 63;
inline constexpr auto farthest = std::numeric_limits<std::int64_t>::max();

/// The rules of a subject's `view`, a `breakable_view`.
template <class Subject>
inline constexpr breakable_rule<Subject> view_rules[] = {
    {errc::layout_not_strided, "layout", [](Subject& s) { s.view.map.strided = false; },
     "a mapping whose is_strided() is true", "one that answers false"},
    {errc::out_of_range, "shape[0]", [](Subject& s) { s.view.extents = {beyond_int64}; },
     "an extent from 0 to 9223372036854775807 elements", "9223372036854775808"},
    {errc::out_of_range, "strides[0]", [](Subject& s) { s.view.map.strides = {beyond_int64}; },
     "a stride from -9223372036854775808 to 9223372036854775807 elements",
     "9223372036854775808"},
    {errc::out_of_range, "element_offset", [](Subject& s) { s.view.map.first = beyond_int64; },
     "a first element within reach of a pointer", "9223372036854775808"},
};

/// The rules of a subject's `tensor` of float32, with its arrays `shape` and `strides`.
template <class Subject>
inline constexpr breakable_rule<Subject> structure_rules[] = {
    {errc::invalid_tensor, "ndim", [](Subject& s) { s.tensor.ndim = -1; },
     "0 or more dimensions", "-1"},
    {errc::invalid_tensor, "shape", [](Subject& s) { s.tensor.shape = nullptr; },
     "an array of ndim extents", "null with ndim 2"},
    {errc::dtype_unsupported, "dtype", [](Subject& s) { s.tensor.dtype.code = 18; },
     "a dtype of DLPack 1.3", "unknown (code 18, bits 32, lanes 1)"},
    {errc::invalid_tensor, "shape[1]", [](Subject& s) { s.shape[1] = -3; },
     "an extent of 0 or more elements", "-3"},
    {errc::invalid_tensor, "data", [](Subject& s) { s.tensor.data = nullptr; },
     "the address of the elements", "null"},
    {errc::out_of_range, "strides", [](Subject& s) { s.strides[0] = farthest; },
     "a view that the address space can hold", "offsets beyond it"},
    {errc::data_misaligned, "byte_offset", [](Subject& s) { s.tensor.byte_offset = 2; },
     "data + byte_offset aligned to 4 bytes", "2 bytes past such an address"},
};

}  // namespace usm_dlpack_test
