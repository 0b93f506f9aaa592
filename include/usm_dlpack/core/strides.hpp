// SPDX-License-Identifier: Apache-2.0
//
// Overflow-checked shape and stride arithmetic in elements, for host and device code. Needs no
// mdspan, device or heap. A computation that several files need belongs here; what device code
// calls refuses nothing.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace usm_dlpack::detail {

/// The absolute value; also correct for INT64_MIN.
constexpr std::uint64_t magnitude(std::int64_t value) noexcept {
  return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                   : static_cast<std::uint64_t>(value);
}

/// Writes the product. Device code may lack the builtin and does not check: it only makes
/// mappings whose preconditions exclude overflow.
/// @returns whether it overflows; `product` is then unusable
constexpr bool multiply_overflows(std::int64_t a, std::int64_t b,
                                  std::int64_t& product) noexcept {
  if constexpr (is_device_code) {
    product = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                        static_cast<std::uint64_t>(b));
    return false;
  } else {
    return __builtin_mul_overflow(a, b, &product);
  }
}

/// Like `multiply_overflows`, for the sum.
constexpr bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& sum) noexcept {
  if constexpr (is_device_code) {
    sum = a + b;
    return false;
  } else {
    return __builtin_add_overflow(a, b, &sum);
  }
}

/// Like std::is_signed, which knows 128-bit integers only in GNU mode.
template <class Integer>
inline constexpr bool is_signed_integer = static_cast<Integer>(-1) < Integer{0};

/// Whether `To` holds a value, like std::in_range of C++20, but for 128-bit integers too.
template <class To, class From>
constexpr bool fits(From value) noexcept {
  const To converted = static_cast<To>(value);
  const bool same_sign = is_signed_integer<To> == is_signed_integer<From> ||
                         (converted < To{0}) == (value < From{0});
  return static_cast<From>(converted) == value && same_sign;
}
template <class From>
constexpr bool fits_int64(From value) noexcept {
  return fits<std::int64_t>(value);
}

/// Decimal digits of any integer, 128-bit ones included.
// Out of line: g++ 12 warns of "text" + std::to_string(...) in C++20 at -O3.
template <class Integer>
[[gnu::cold, gnu::noinline]] std::string digits(Integer value) {
  if constexpr (sizeof(Integer) <= sizeof(std::int64_t)) {
    return std::to_string(value);
  } else {
    std::string text;
    Integer rest = value;
    do {
      const int digit = static_cast<int>(rest % 10);
      text.insert(text.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
      rest /= 10;
    } while (rest != 0);
    return value < Integer{0} ? "-" + text : text;
  }
}

template <class Integer>
USM_DLPACK_COLD void refuse_extent(std::size_t r, Integer value) {
  refuse(errc::out_of_range, indexed("shape", r),
         "an extent from 0 to 9223372036854775807 elements", digits(value),
         "make the view smaller or correct its extents");
}

template <class Integer>
USM_DLPACK_COLD void refuse_stride(std::size_t r, Integer value) {
  refuse(errc::out_of_range, indexed("strides", r),
         "a stride from -9223372036854775808 to 9223372036854775807 elements", digits(value),
         "use a signed index type for negative strides");
}

/// Converts an mdspan extent to `DLTensor::shape[r]`.
template <class Integer>
constexpr std::int64_t to_extent(Integer value, std::size_t r) {
  if (value < Integer{0} || !fits_int64(value)) {
    detail::refuse_extent(r, value);
  }
  return static_cast<std::int64_t>(value);
}

/// Converts an mdspan stride to `DLTensor::strides[r]`.
template <class Integer>
constexpr std::int64_t to_stride(Integer value, std::size_t r) {
  if (!fits_int64(value)) {
    detail::refuse_stride(r, value);
  }
  return static_cast<std::int64_t>(value);
}

/// The offsets of a tensor's elements relative to the first one: from `lowest` (at most 0) to
/// `highest` (at least 0), inclusive; none if `empty`.
struct element_span {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  bool empty = false;
  bool overflow = false;  ///< an offset does not fit int64_t; ignore the other fields
};

/// Null strides mean compact row-major (before DLPack 1.2).
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
    // A dimension of extent 1 adds nothing, whatever its stride.
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

/// Writes compact strides, by default row-major ones. A product that overflows becomes the
/// largest int64_t; this happens only to shapes that are empty or refused later.
constexpr void write_compact_strides(const std::int64_t* shape, std::int64_t* strides,
                                     std::size_t ndim, bool column_major = false) noexcept {
  std::int64_t product = 1;
  for (std::size_t n = 0; n < ndim; ++n) {
    const std::size_t r = column_major ? n : ndim - 1 - n;
    strides[r] = product;
    if (multiply_overflows(product, shape[r] < 1 ? 1 : shape[r], product)) {
      product = std::numeric_limits<std::int64_t>::max();
    }
  }
}

template <std::size_t Rank>
struct strided_shape {
  std::array<std::int64_t, Rank> shape{};
  std::array<std::int64_t, Rank> strides{};
};

template <std::size_t Rank>
constexpr element_span span_of(const strided_shape<Rank>& array) noexcept {
  return detail::span_of(array.shape.data(), array.strides.data(), Rank);
}

/// For example `int64_t`.
template <class Integer>
std::string name_of_integer() {
  return (is_signed_integer<Integer> ? "int" : "uint") + digits(8 * sizeof(Integer)) + "_t";
}

/// @tparam Index the index type of a view, or the type of its layout's strides
template <class Index>
USM_DLPACK_COLD void refuse_index_type(std::string_view field, std::int64_t value) {
  refuse(
      errc::index_type_too_small, field,
      "a value that the view's index type " + name_of_integer<Index>() + " holds",
      digits(value),
      value < 0 && !is_signed_integer<Index>
          ? "make the array contiguous, in Python by usm_dlpack.from_dlpack(x, order=\"C\"), "
            "or in C++ use extents of a signed index type"
          : "make the array smaller, or in C++ use extents of a wider index type");
}

USM_DLPACK_COLD inline void refuse_extent_mismatch(std::size_t r, std::size_t expected,
                                                   std::int64_t found) {
  refuse(errc::shape_mismatch, indexed("shape", r),
         digits(expected) + " for the view's static extent", digits(found),
         "pass an array of that shape, or in C++ use a dynamic extent");
}

/// Whether the strides of a mapping may be queried (P0009 `[mdspan.layout.reqmts]`).
template <class Mapping>
constexpr bool is_strided(const Mapping& mapping) {
  return Mapping::is_always_strided() || mapping.is_strided();
}

/// Index of the element whose indices are all zero; not 0 in every layout.
template <class Mapping, std::size_t... Zeros>
constexpr auto origin_index(const Mapping& mapping, std::index_sequence<Zeros...>) {
  using index_type = typename Mapping::index_type;
  return mapping(static_cast<index_type>(Zeros * 0)...);
}

/// What the magnitude of each stride must step over, for `strides_step_over`.
enum class step_over {
  elements,  ///< all that smaller strides reach: then no two indices share an element
  extents,  ///< the next smaller stride times its extent (P0009 `[mdspan.layout.stride.cons]`)
};

/// Whether each stride's magnitude steps over what smaller strides reach.
/// @pre no extent is below 1, and the offsets of all dimensions fit int64_t
constexpr bool dimensions_step_over(const std::int64_t* shape, const std::int64_t* strides,
                                    std::size_t ndim, step_over what) noexcept {
  std::uint64_t reach = 0;
  for (std::size_t steps = 0;; ++steps) {
    std::size_t within = 0;  // dimensions whose stride is at most `reach`
    std::size_t next = ndim;
    for (std::size_t r = 0; r < ndim; ++r) {
      const std::uint64_t stride = magnitude(strides[r]);
      if (shape[r] > 1 && stride <= reach) {
        ++within;
      } else if (shape[r] > 1 && (next == ndim || stride < magnitude(strides[next]))) {
        next = r;
      }
    }
    if (within != steps || next == ndim) {
      return within == steps;
    }
    const std::uint64_t stride = magnitude(strides[next]);
    const std::uint64_t last = stride * static_cast<std::uint64_t>(shape[next] - 1);
    reach = what == step_over::elements ? reach + last : last + stride - 1;
  }
}

/// `dimensions_step_over` for any strides: true for an empty tensor, false on overflow.
/// @pre no extent is negative
template <std::size_t Rank>
constexpr bool strides_step_over(const strided_shape<Rank>& array, step_over what) noexcept {
  const element_span span = span_of(array);
  return span.empty ||
         (!span.overflow &&
          dimensions_step_over(array.shape.data(), array.strides.data(), Rank, what));
}

/// Recognises dimensions nested in C or F order, as in compact arrays and most slices: every
/// extent is at least 1, and every stride at least the next stride times its extent.
/// @pre `shape` and `strides` have `ndim` entries
/// @returns an upper bound of every extent, stride and index: the largest stride times its
///          extent; 0 if the dimensions are not nested
constexpr std::int64_t nested_reach(const std::int64_t* shape, const std::int64_t* strides,
                                    std::size_t ndim) noexcept {
  const bool c_order = ndim == 0 || strides[0] >= strides[ndim - 1];
  const std::size_t next = c_order ? ~std::size_t{0} : std::size_t{1};
  std::size_t r = c_order ? ndim - 1 : 0;
  std::int64_t reach = 1;
  for (std::size_t n = 0; n < ndim; ++n, r += next) {
    if (shape[r] < 1 || strides[r] < reach ||
        multiply_overflows(strides[r], shape[r], reach)) {
      return 0;
    }
  }
  return reach;
}

/// The number of elements if the strides are compact, in column-major order or in row-major;
/// otherwise, and of an empty tensor, 0.
/// @pre `shape` and `strides` have `ndim` entries
constexpr std::int64_t compact_size(const std::int64_t* shape, const std::int64_t* strides,
                                    std::size_t ndim, bool column_major) noexcept {
  std::int64_t size = 1;
  for (std::size_t n = 0; n < ndim; ++n) {
    const std::size_t r = column_major ? n : ndim - 1 - n;
    if (shape[r] < 1 || (shape[r] != 1 && strides[r] != size) ||
        multiply_overflows(shape[r], size, size)) {
      return 0;
    }
  }
  return size;
}

}  // namespace usm_dlpack::detail
