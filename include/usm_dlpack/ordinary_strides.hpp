// SPDX-License-Identifier: Apache-2.0
//
// Consumer: the strides that nearly every tensor has, recognised in one pass over shape and
// strides: each dimension steps over what the ones after it reach, or each over what the ones
// before it do. Whatever else is well formed, the full checks find out.
#pragma once

#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/stride_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace usm_dlpack::detail {

/// Whether a dimension goes on as a compact layout does, of which the dimensions so far have
/// `product` elements; multiplies that by the extent, whatever it is. Inlined, like all of
/// this, because g++ leaves most of a pack of eight as calls.
[[gnu::always_inline]] constexpr bool is_compact_step(std::int64_t extent,
                                                      const std::int64_t& stride,
                                                      std::int64_t& product) noexcept {
  return (__builtin_expect(stride == product, 1) != 0 || extent == 1) &&
         !__builtin_mul_overflow(product, extent, &product);
}

/// Whether a dimension has neighbours and steps over what the dimensions so far reach; adds it
/// to them.
[[gnu::always_inline]] constexpr bool is_nested_step(std::int64_t extent,
                                                     const std::int64_t& stride,
                                                     std::int64_t& reach) noexcept {
  return extent > 1 && stride >= reach && !__builtin_mul_overflow(stride, extent, &reach);
}

/// Whether the strides of a tensor are those of the compact layout of a rule, where those of
/// dimensions of extent 1 are free; if so, `size` becomes the product of the extents, which no
/// one has looked at: it is the number of elements if all of them are above 0.
/// @tparam Shape a pointer to the extents, or what is indexed like it
template <stride_rule Rule, class Shape, std::size_t... Steps>
inline constexpr bool has_compact_strides([[maybe_unused]] Shape shape,
                                          [[maybe_unused]] const std::int64_t* strides,
                                          std::index_sequence<Steps...>,
                                          std::int64_t& size) noexcept {
  [[maybe_unused]] constexpr std::size_t last = sizeof...(Steps) - 1;
  [[maybe_unused]] constexpr bool right = Rule == stride_rule::right;
  std::int64_t product = 1;
  if (!(is_compact_step(shape[right ? last - Steps : Steps],
                        strides[right ? last - Steps : Steps], product) &&
        ...)) {
    return false;
  }
  size = product;
  return true;
}

/// Whether the dimensions of a tensor all have neighbours, each of them a whole step beyond
/// the next one (right) or the previous one (left); if so, `reach` becomes a number that no
/// offset reaches.
template <stride_rule Rule, class Shape, std::size_t... Steps>
inline constexpr bool has_nested_strides([[maybe_unused]] Shape shape,
                                         [[maybe_unused]] const std::int64_t* strides,
                                         std::index_sequence<Steps...>,
                                         std::int64_t& reach) noexcept {
  [[maybe_unused]] constexpr std::size_t last = sizeof...(Steps) - 1;
  [[maybe_unused]] constexpr bool right = Rule == stride_rule::right;
  std::int64_t reached = 1;
  if (!(is_nested_step(shape[right ? last - Steps : Steps],
                       strides[right ? last - Steps : Steps], reached) &&
        ...)) {
    return false;
  }
  reach = reached;
  return true;
}

}  // namespace usm_dlpack::detail
