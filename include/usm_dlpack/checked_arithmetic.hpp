// SPDX-License-Identifier: Apache-2.0
//
// Sums and products of int64_t that say whether they overflow, on hosts and on devices: the
// compiler's own functions for that are not to be had in SPIR-V.
#pragma once

#include <usm_dlpack/config.hpp>

#include <cstdint>
#include <limits>

namespace usm_dlpack::detail {

/// The absolute value, also of the most negative int64_t.
constexpr std::uint64_t magnitude(std::int64_t value) noexcept {
  return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                   : static_cast<std::uint64_t>(value);
}

/// `multiply` by the operations that every device has. Writes `product` if it is one.
constexpr bool portable_multiply(std::int64_t a, std::int64_t b,
                                 std::int64_t& product) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t limit = (a < 0) != (b < 0) ? most + 1 : most;
  const bool overflow = a != 0 && magnitude(b) > limit / magnitude(a);
  if (!overflow) {
    product = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                        static_cast<std::uint64_t>(b));
  }
  return overflow;
}

/// `add` by the operations that every device has. Writes `sum` if it is one.
constexpr bool portable_add(std::int64_t a, std::int64_t b, std::int64_t& sum) noexcept {
  const bool overflow = b < 0 ? a < std::numeric_limits<std::int64_t>::min() - b
                              : a > std::numeric_limits<std::int64_t>::max() - b;
  if (!overflow) {
    sum = a + b;
  }
  return overflow;
}

/// Writes the product of two numbers. @return whether it overflows; it is then not to be used
constexpr bool multiply_overflows(std::int64_t a, std::int64_t b,
                                  std::int64_t& product) noexcept {
  if constexpr (is_device_code) {
    return portable_multiply(a, b, product);
  } else {
    return __builtin_mul_overflow(a, b, &product);
  }
}

/// Writes the sum of two numbers. @return whether it overflows; it is then not to be used
constexpr bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& sum) noexcept {
  if constexpr (is_device_code) {
    return portable_add(a, b, sum);
  } else {
    return __builtin_add_overflow(a, b, &sum);
  }
}

}  // namespace usm_dlpack::detail
