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

/// Which tensors are taken: those that are common are recognised where the conversion is
/// inlined, others in a function of their own.
enum class commonness { common, rare };

/// Whether the stride of a dimension of extent 1, which nothing depends on, may be any.
enum class stride_of_one { any, compact };

/// Whether a dimension goes on as a compact layout does, of which the dimensions so far have
/// `product` elements; multiplies that by the extent. Inlined, like all of this, because g++
/// leaves most of a pack of eight as calls.
template <stride_of_one OfOne>
[[gnu::always_inline]] constexpr bool is_compact_step(const std::int64_t& extent,
                                                      const std::int64_t& stride,
                                                      std::uint64_t& product) noexcept {
  return (__builtin_expect(static_cast<std::uint64_t>(stride) == product, true) != 0 ||
          (OfOne == stride_of_one::any && extent == 1)) &&
         !__builtin_mul_overflow(product, static_cast<std::uint64_t>(extent), &product);
}

/// Whether a dimension steps over what the dimensions so far reach, and that is more than
/// nothing; `reach` becomes what it reaches itself.
[[gnu::always_inline]] constexpr bool is_nested_step(const std::int64_t& extent,
                                                     const std::int64_t& stride,
                                                     std::uint64_t& reach) noexcept {
  const auto step = static_cast<std::uint64_t>(stride);
  return step > reach - 1 &&
         !__builtin_mul_overflow(step, static_cast<std::uint64_t>(extent), &reach);
}

// Where a tensor has such strides, `span` becomes a number of elements that no offset reaches.
// All numbers count as unsigned: what is negative is then large, and so is each product that
// has it for a factor, unless another one is 0. So wherever a span is from 1 to the most of
// int64_t, every extent is one of these numbers too, and so is every stride that is not free,
// and none is above the span.

/// The strides of the compact layout of a rule.
/// @tparam Shape a pointer to the extents, or what is indexed like it
template <stride_rule Rule, stride_of_one OfOne, class Shape, std::size_t... Steps>
[[gnu::always_inline]] inline constexpr bool has_compact_strides(
    [[maybe_unused]] Shape shape, [[maybe_unused]] const std::int64_t* strides,
    std::index_sequence<Steps...>, std::uint64_t& span) noexcept {
  [[maybe_unused]] constexpr std::size_t last = sizeof...(Steps) - 1;
  [[maybe_unused]] constexpr bool right = Rule == stride_rule::right;
  std::uint64_t product = 1;
  if (!(is_compact_step<OfOne>(shape[right ? last - Steps : Steps],
                               strides[right ? last - Steps : Steps], product) &&
        ...)) {
    return false;
  }
  span = product;
  return true;
}

/// Strides of which each is a whole step beyond the next dimension (right) or the previous one
/// (left).
template <stride_rule Rule, class Shape, std::size_t... Steps>
[[gnu::always_inline]] inline constexpr bool has_nested_strides(
    [[maybe_unused]] Shape shape, [[maybe_unused]] const std::int64_t* strides,
    std::index_sequence<Steps...>, std::uint64_t& span) noexcept {
  [[maybe_unused]] constexpr std::size_t last = sizeof...(Steps) - 1;
  [[maybe_unused]] constexpr bool right = Rule == stride_rule::right;
  std::uint64_t reach = 1;
  if (!(is_nested_step(shape[right ? last - Steps : Steps],
                       strides[right ? last - Steps : Steps], reach) &&
        ...)) {
    return false;
  }
  span = reach;
  return true;
}

}  // namespace usm_dlpack::detail
