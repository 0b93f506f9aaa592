// SPDX-License-Identifier: Apache-2.0
//
// The lists of docs/checks.md as tables: each row is a rule, and how to break it alone.
// tests/python/test_documented_checks.py compares the rows with the page.
#pragma once

#include <odd_views.hpp>
#include <valid_tensor.hpp>

#include <initializer_list>

namespace usm_dlpack_test {

/// @tparam Subject valid when made; a row breaks one rule of it
template <class Subject>
struct breakable_rule {
  errc code;
  const char* field;
  void (*break_it)(Subject&);
};

/// Breaks some rules and expects that the last one is refused.
template <class Subject, class Act>
void expect_last_refused(std::initializer_list<const breakable_rule<Subject>*> broken,
                         const Act& act) {
  Subject subject;
  std::string last;
  std::string all = "broken:";
  for (const breakable_rule<Subject>* rule : broken) {
    rule->break_it(subject);
    last = name_of(rule->code, rule->field);
    all += " " + last;
  }
  EXPECT_EQ(refusal_of([&] { act(subject); }), last) << all;
}

/// Expects that each rule of some tables alone is refused, and of any two the earlier.
template <class Subject, class Act, std::size_t... Counts>
void expect_order(const Act& act, const breakable_rule<Subject> (&... tables)[Counts]) {
  std::vector<breakable_rule<Subject>> rules;
  (rules.insert(rules.end(), tables, tables + Counts), ...);
  Subject valid;
  EXPECT_NO_THROW(act(valid)) << "nothing is broken yet";
  for (std::size_t later = 0; later < rules.size(); ++later) {
    expect_last_refused<Subject>({&rules[later]}, act);
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      expect_last_refused<Subject>({&rules[later], &rules[earlier]}, act);
    }
  }
}

/// A view of no mdspan library that can break each rule of a view.
struct breakable_view {
  using element_type = float;
  using index_type = std::uint64_t;
  using data_handle_type = float*;
  using accessor_type = odd::plain_accessor<float>;
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

inline constexpr std::uint64_t beyond_int64 = std::uint64_t{1} << 63;
inline constexpr auto farthest = std::numeric_limits<std::int64_t>::max();

/// The rules of a subject's `view`, a `breakable_view`.
template <class Subject>
inline constexpr breakable_rule<Subject> view_rules[] = {
    {errc::layout_not_strided, "layout", [](Subject& s) { s.view.map.strided = false; }},
    {errc::extent_out_of_range, "shape[0]",
     [](Subject& s) { s.view.all_extents = beyond_int64; }},
    {errc::stride_out_of_range, "strides[0]",
     [](Subject& s) { s.view.map.all_strides = beyond_int64; }},
    {errc::offset_out_of_range, "element_offset",
     [](Subject& s) { s.view.map.first = beyond_int64; }},
};

/// The rules of a subject's `tensor` of float32, with its arrays `shape` and `strides`.
template <class Subject>
inline constexpr breakable_rule<Subject> structure_rules[] = {
    {errc::ndim_out_of_range, "ndim", [](Subject& s) { s.tensor.ndim = -1; }},
    {errc::shape_null, "shape", [](Subject& s) { s.tensor.shape = nullptr; }},
    {errc::dtype_unsupported, "dtype", [](Subject& s) { s.tensor.dtype.code = 18; }},
    {errc::shape_negative, "shape[1]", [](Subject& s) { s.shape[1] = -3; }},
    {errc::data_null, "data", [](Subject& s) { s.tensor.data = nullptr; }},
    {errc::span_overflow, "strides", [](Subject& s) { s.strides[0] = farthest; }},
    {errc::data_misaligned, "byte_offset", [](Subject& s) { s.tensor.byte_offset = 2; }},
};

}  // namespace usm_dlpack_test
