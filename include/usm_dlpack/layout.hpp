// SPDX-License-Identifier: Apache-2.0
//
// Shape and stride arithmetic in elements, with every overflow seen: what the producers, the
// consumers and the relaxed layout have in common. Needs no mdspan, no device and no heap.
#pragma once

#include <usm_dlpack/checked_arithmetic.hpp>
#include <usm_dlpack/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>

namespace usm_dlpack::detail {

/// Whether an integer type has negative values. The trait of the standard library knows
/// 128 bits in GNU's dialect alone.
template <class Integer>
inline constexpr bool is_signed_integer = static_cast<Integer>(-1) < Integer{0};

/// Whether int64_t has every value of an integer type.
template <class Integer>
inline constexpr bool always_fits_int64 =
    sizeof(Integer) < sizeof(std::int64_t) ||
    (sizeof(Integer) == sizeof(std::int64_t) && is_signed_integer<Integer>);

/// Whether a value of any integer type is one of int64_t.
template <class Integer>
constexpr bool fits_int64(Integer value) noexcept {
  if constexpr (always_fits_int64<Integer>) {
    return true;
  } else if constexpr (is_signed_integer<Integer>) {
    return value >= std::numeric_limits<std::int64_t>::min() &&
           value <= std::numeric_limits<std::int64_t>::max();
  } else {
    return value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  }
}

/// A type that has every value of an integer type, and stands for all those whose code it
/// serves.
template <class Integer>
using widest_of = std::conditional_t<
    (sizeof(Integer) > sizeof(std::int64_t)), Integer,
    std::conditional_t<is_signed_integer<Integer>, long long, unsigned long long>>;
template <class Integer>
constexpr widest_of<Integer> widest(Integer value) noexcept {
  return value;
}

/// Decimal digits of any integer, also of one of 128 bits.
// Out of line: g++ 12 warns of "text" + std::to_string(...) in C++20 at -O3.
template <class Integer>
[[gnu::cold, gnu::noinline]] std::string digits(Integer value) {
  if constexpr (sizeof(Integer) <= sizeof(std::int64_t)) {
    return std::to_string(value);
  } else {
    std::string text;
    Integer left = value;
    do {
      const int digit = static_cast<int>(left % 10);
      text.insert(text.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
      left /= 10;
    } while (left != 0);
    return value < Integer{0} ? "-" + text : text;
  }
}

template <class Integer>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_extent(std::size_t r, Integer value) {
  refuse(errc::extent_out_of_range, indexed("shape", r),
         "an extent from 0 to 9223372036854775807 elements", digits(value),
         "make the view smaller or correct its extents");
}

template <class Integer>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_stride(std::size_t r, Integer value) {
  refuse(errc::stride_out_of_range, indexed("strides", r),
         "a stride from -9223372036854775808 to 9223372036854775807 elements", digits(value),
         "use a signed index type for negative strides");
}

/// An mdspan extent as `DLTensor::shape[r]`. @throws conversion_error `extent_out_of_range`
template <class Integer>
constexpr std::int64_t to_extent(Integer value, std::size_t r) {
  if (value < Integer{0} || !fits_int64(value)) {
    detail::refuse_extent(r, detail::widest(value));
  }
  return static_cast<std::int64_t>(value);
}

/// An mdspan stride as `DLTensor::strides[r]`. @throws conversion_error `stride_out_of_range`
template <class Integer>
constexpr std::int64_t to_stride(Integer value, std::size_t r) {
  if (!fits_int64(value)) {
    detail::refuse_stride(r, detail::widest(value));
  }
  return static_cast<std::int64_t>(value);
}

/// The elements of a tensor relative to its first one: none where `empty`, otherwise the
/// offsets from `lowest` (never above 0) to `highest` (never below 0), both inclusive.
struct element_span {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  bool empty = false;
  bool overflow =
      false;  ///< an offset does not fit int64_t; the other fields then say nothing
};

/// The span of `ndim` dimensions. Null strides mean compact row-major (before DLPack 1.2).
/// @pre `shape`, and `strides` unless null, have `ndim` entries; no extent is negative
constexpr element_span span_of(const std::int64_t* shape, const std::int64_t* strides,
                               std::size_t ndim) noexcept {
  element_span span{};
  for (std::size_t r = 0; r < ndim; ++r) {
    span.empty = span.empty || shape[r] == 0;
  }
  if (span.empty) {
    return span;
  }
  std::int64_t compact = 1;
  for (std::size_t r = ndim; r-- > 0;) {
    const std::int64_t last = shape[r] - 1;
    const std::int64_t stride = strides == nullptr ? compact : strides[r];
    std::int64_t reach = 0;
    std::int64_t& end = stride < 0 ? span.lowest : span.highest;
    // A dimension of extent 1 has no second element: whatever its stride, it adds nothing.
    if (multiply_overflows(last, stride, reach) || add_overflows(end, reach, end)) {
      span.overflow = true;
      return span;
    }
    if (strides == nullptr && multiply_overflows(compact, shape[r], compact)) {
      span.overflow = true;
      return span;
    }
  }
  return span;
}

/// Writes the strides of a compact row-major tensor. The product saturates instead of
/// overflowing, which only an empty or a refused shape can make happen.
constexpr void write_compact_strides(const std::int64_t* shape, std::int64_t* strides,
                                     std::size_t ndim) noexcept {
  std::int64_t product = 1;
  for (std::size_t r = ndim; r-- > 0;) {
    strides[r] = product;
    if (multiply_overflows(product, shape[r] < 1 ? 1 : shape[r], product)) {
      product = std::numeric_limits<std::int64_t>::max();
    }
  }
}

/// Shape and strides of a tensor of known rank.
template <std::size_t Rank>
struct strided_shape {
  std::array<std::int64_t, Rank> shape{};
  std::array<std::int64_t, Rank> strides{};
};

/// Whether an int64_t is a value of another integer type.
template <class Integer>
constexpr bool fits(std::int64_t value) noexcept {
  if constexpr (sizeof(Integer) > sizeof value) {
    return is_signed_integer<Integer> || value >= 0;
  } else if constexpr (std::is_signed_v<Integer>) {
    return value >= static_cast<std::int64_t>(std::numeric_limits<Integer>::min()) &&
           value <= static_cast<std::int64_t>(std::numeric_limits<Integer>::max());
  } else {
    return value >= 0 &&
           static_cast<std::uint64_t>(value) <= std::numeric_limits<Integer>::max();
  }
}

/// `int64_t`.
template <class Integer>
std::string name_of_integer() {
  return (is_signed_integer<Integer> ? "int" : "uint") + digits(8 * sizeof(Integer)) + "_t";
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_index_type(std::string_view field,
                                                                     const std::string& type,
                                                                     std::int64_t value) {
  refuse(errc::index_type_too_small, field,
         "a value that the view's index type " + type + " holds", digits(value),
         value < 0 && type[0] == 'u' ? "use extents of a signed index type"
                                     : "use extents of a wider index type");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_extent_mismatch(std::size_t r,
                                                                          std::size_t expected,
                                                                          std::int64_t found) {
  refuse(errc::extent_mismatch, indexed("shape", r),
         digits(expected) + " for the view's static extent", digits(found),
         "use a dynamic extent, or an array of that shape");
}

/// Whether a mapping's strides say where every element is: only then may they be asked for
/// (P0009 `[mdspan.layout.reqmts]`).
template <class Mapping>
constexpr bool is_strided(const Mapping& mapping) {
  return Mapping::is_always_strided() || mapping.is_strided();
}

}  // namespace usm_dlpack::detail
