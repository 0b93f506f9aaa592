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

/// The number of elements of a tensor whose strides are those of the compact layout of a rule;
/// 0 if they are others, or if the number is 0 or too large. Strides of dimensions of extent 1
/// are free.
template <stride_rule Rule, std::size_t... Steps>
constexpr std::int64_t compact_size([[maybe_unused]] const std::int64_t* shape,
                                    [[maybe_unused]] const std::int64_t* strides,
                                    std::index_sequence<Steps...>) noexcept {
  constexpr std::size_t rank = sizeof...(Steps);
  std::int64_t product = 1;
  [[maybe_unused]] const auto takes = [&](std::size_t r) {
    const std::int64_t extent = shape[r];
    return extent > 0 && (strides[r] == product || extent == 1) &&
           !__builtin_mul_overflow(product, extent, &product);
  };
  const bool all = (takes(Rule == stride_rule::right ? rank - 1 - Steps : Steps) && ...);
  return all ? product : 0;
}

/// A number that no offset of a tensor reaches whose dimensions all have neighbours, each of
/// them a whole step beyond the next one (right) or the previous one (left); 0 if they do not,
/// or if the number is too large.
template <stride_rule Rule, std::size_t... Steps>
constexpr std::int64_t nested_reach([[maybe_unused]] const std::int64_t* shape,
                                    [[maybe_unused]] const std::int64_t* strides,
                                    std::index_sequence<Steps...>) noexcept {
  constexpr std::size_t rank = sizeof...(Steps);
  std::int64_t reach = 1;
  [[maybe_unused]] const auto takes = [&](std::size_t r) {
    return shape[r] > 1 && strides[r] >= reach &&
           !__builtin_mul_overflow(strides[r], shape[r], &reach);
  };
  const bool all = (takes(Rule == stride_rule::right ? rank - 1 - Steps : Steps) && ...);
  return all ? reach : 0;
}

}  // namespace usm_dlpack::detail
