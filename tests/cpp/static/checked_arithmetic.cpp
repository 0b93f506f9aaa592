// SPDX-License-Identifier: Apache-2.0
//
// What devices compute must be what the compiler's own functions say, at every edge of
// int64_t.
#include <usm_dlpack/core/strides.hpp>

#include <cstdint>
#include <limits>

namespace {

using usm_dlpack::detail::magnitude;
using usm_dlpack::detail::portable_add;
using usm_dlpack::detail::portable_multiply;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t root = 3037000499;  // of `most`, rounded down
constexpr std::int64_t edges[] = {least,     least + 1,
                                  least / 2, least / 2 - 1,
                                  -root - 1, -root,
                                  -3,        -2,
                                  -1,        0,
                                  1,         2,
                                  3,         root,
                                  root + 1,  most / 2,
                                  most / 3,  most / 2 + 1,
                                  most - 1,  most};

constexpr bool same_as_the_compiler() {
  for (const std::int64_t a : edges) {
    for (const std::int64_t b : edges) {
      std::int64_t ours = 7;
      std::int64_t theirs = 7;
      if (portable_multiply(a, b, ours) != __builtin_mul_overflow(a, b, &theirs) ||
          (!portable_multiply(a, b, ours) && ours != theirs)) {
        return false;
      }
      if (portable_add(a, b, ours) != __builtin_add_overflow(a, b, &theirs) ||
          (!portable_add(a, b, ours) && ours != theirs)) {
        return false;
      }
    }
  }
  return true;
}
static_assert(same_as_the_compiler());

static_assert(magnitude(least) == std::uint64_t{1} << 63);
static_assert(magnitude(most) == static_cast<std::uint64_t>(most));
static_assert(magnitude(-3) == 3);
static_assert(!usm_dlpack::detail::is_device_code);

}  // namespace
