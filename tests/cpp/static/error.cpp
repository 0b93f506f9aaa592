// SPDX-License-Identifier: Apache-2.0
//
// Every rule has a name of its own, and a refusal can be copied while it flies.
#include <usm_dlpack/core/error.hpp>

#include <string_view>
#include <type_traits>

namespace {

using usm_dlpack::errc;

constexpr auto last = static_cast<int>(errc::runtime_error);

constexpr std::string_view name(int code) { return to_string(static_cast<errc>(code)); }

constexpr bool names_are_distinct() {
  for (int a = 0; a <= last + 1; ++a) {
    for (int b = a + 1; b <= last; ++b) {
      if (name(a) == name(b)) return false;
    }
  }
  return true;
}
static_assert(names_are_distinct());
static_assert(name(0) == "unknown" && name(last + 1) == "unknown");
static_assert(to_string(errc::data_null) == std::string_view("data_null"));

static_assert(std::is_nothrow_copy_constructible_v<usm_dlpack::conversion_error>);

}  // namespace
