// SPDX-License-Identifier: Apache-2.0
//
// Consumer: the strides that nearly every tensor has, recognised in one pass over shape and
// strides: no extent is 0, and each dimension steps over what the ones after it reach, or each
// over what the ones before it do. Whatever else is well formed, the full checks find out.
#pragma once

#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/stride_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace usm_dlpack::detail {

/// Whether a dimension goes on as a compact layout does, of which the dimensions so far have
/// `product` elements; adds it to them. Inlined, like the next one, because g++ leaves most of
/// a pack of eight as calls.
[[gnu::always_inline]] constexpr bool is_compact_step(std::int64_t extent,
                                                      const std::int64_t& stride,
                                                      std::int64_t& product) noexcept {
  return extent > 0 && (stride == product || extent == 1) &&
         !__builtin_mul_overflow(product, extent, &product);
}

/// Whether a dimension has neighbours and steps over what the dimensions so far reach; adds it
/// to them.
[[gnu::always_inline]] constexpr bool is_nested_step(std::int64_t extent,
                                                     const std::int64_t& stride,
                                                     std::int64_t& reach) noexcept {
  return extent > 1 && stride >= reach && !__builtin_mul_overflow(stride, extent, &reach);
}

/// The number of elements of a tensor whose strides are those of the compact layout of a rule;
/// 0 if they are others, or if the number is 0 or too large. Strides of dimensions of extent 1
/// are free.
template <stride_rule Rule, std::size_t... Steps>
constexpr std::int64_t compact_size([[maybe_unused]] const std::int64_t* shape,
                                    [[maybe_unused]] const std::int64_t* strides,
                                    std::index_sequence<Steps...>) noexcept {
  [[maybe_unused]] constexpr std::size_t last = sizeof...(Steps) - 1;
  [[maybe_unused]] constexpr bool right = Rule == stride_rule::right;
  std::int64_t product = 1;
  const bool all = (is_compact_step(shape[right ? last - Steps : Steps],
                                    strides[right ? last - Steps : Steps], product) &&
                    ...);
  return all ? product : 0;
}

/// A number that no offset of a tensor reaches whose dimensions all have neighbours, each of
/// them a whole step beyond the next one (right) or the previous one (left); 0 if they do not,
/// or if the number is too large.
template <stride_rule Rule, std::size_t... Steps>
constexpr std::int64_t nested_reach([[maybe_unused]] const std::int64_t* shape,
                                    [[maybe_unused]] const std::int64_t* strides,
                                    std::index_sequence<Steps...>) noexcept {
  [[maybe_unused]] constexpr std::size_t last = sizeof...(Steps) - 1;
  [[maybe_unused]] constexpr bool right = Rule == stride_rule::right;
  std::int64_t reach = 1;
  const bool all = (is_nested_step(shape[right ? last - Steps : Steps],
                                   strides[right ? last - Steps : Steps], reach) &&
                    ...);
  return all ? reach : 0;
}

}  // namespace usm_dlpack::detail
