// SPDX-License-Identifier: Apache-2.0
//
// Every rule has a name of its own, and a refusal is an exception that can be copied while it
// flies.
#include <usm_dlpack/core/error.hpp>

#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <type_traits>

namespace {

using usm_dlpack::conversion_error;
using usm_dlpack::errc;

constexpr auto last = errc::runtime_error;

constexpr std::string_view name(int code) { return to_string(static_cast<errc>(code)); }

constexpr bool names_are_distinct() {
  for (int a = 1; a <= static_cast<int>(last); ++a) {
    for (int b = a + 1; b <= static_cast<int>(last); ++b) {
      if (name(a) == name(b)) return false;
    }
  }
  return true;
}

constexpr bool names_are_snake_case() {
  for (int code = 1; code <= static_cast<int>(last); ++code) {
    if (name(code).empty() || name(code) == "unknown") return false;
    for (const char c : name(code)) {
      if (c != '_' && (c < 'a' || c > 'z')) return false;
    }
  }
  return true;
}

static_assert(names_are_distinct());
static_assert(names_are_snake_case());
static_assert(name(0) == "unknown");
static_assert(name(static_cast<int>(last) + 1) == "unknown",
              "a code was added behind the last");
static_assert(name(static_cast<int>(errc::data_null)) == "data_null");
static_assert(name(static_cast<int>(last)) == "runtime_error");

static_assert(std::is_base_of_v<std::invalid_argument, conversion_error>);
static_assert(std::is_nothrow_copy_constructible_v<conversion_error>);
static_assert(noexcept(std::declval<const conversion_error&>().code()));
static_assert(noexcept(std::declval<const conversion_error&>().field()));

}  // namespace
