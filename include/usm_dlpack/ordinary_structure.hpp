// SPDX-License-Identifier: Apache-2.0
//
// Consumer: which bytes an ordinary tensor spans, with every check of its structure, in one
// pass. It takes nothing that the whole check refuses, and refuses nothing itself: what it
// does not take, that one decides, with its order of checks and its sentences.
#pragma once

#include <usm_dlpack/element_storage.hpp>
#include <usm_dlpack/ordinary_strides.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace usm_dlpack::detail {

/// Whether a pointer may be null: surely, if it is. One branch for both.
inline bool may_be_null(const void* a, const void* b) noexcept {
  const auto before = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) - 1; };
  return static_cast<std::intptr_t>(before(a) | before(b)) < 0;
}

/// Whether the dimensions are those of a compact layout right; if so, `span` becomes their
/// number of elements.
[[gnu::always_inline]] constexpr bool has_compact_dimensions(const std::int64_t* shape,
                                                             const std::int64_t* strides,
                                                             std::size_t ndim,
                                                             std::uint64_t& span) noexcept {
  std::uint64_t product = 1;
  for (std::size_t r = ndim; r != 0;) {
    --r;
    if (!is_compact_step<stride_of_one::any>(shape[r], strides[r], product)) {
      return false;
    }
  }
  span = product;
  return true;
}

/// Whether each dimension steps over what those after it reach, or each over what those before
/// it do; if so, `span` becomes the number of elements from the first to the last. An extent
/// of 0 or below makes that too large for an ordinary tensor.
constexpr bool has_ordered_dimensions(const std::int64_t* shape, const std::int64_t* strides,
                                      std::size_t ndim, std::uint64_t& span) noexcept {
  const bool left = ndim != 0 && strides[0] < strides[ndim - 1];
  const std::size_t next = left ? std::size_t{1} : ~std::size_t{0};
  std::size_t r = left ? 0 : ndim - 1;
  std::uint64_t reach = 0;
  for (std::size_t rest = ndim; rest != 0; --rest, r += next) {
    const auto extent = static_cast<std::uint64_t>(shape[r]);
    const auto step = static_cast<std::uint64_t>(strides[r]);
    std::uint64_t last = 0;
    if (extent == 1) {
      continue;
    }
    if (step <= reach || __builtin_mul_overflow(extent - 1, step, &last) ||
        __builtin_add_overflow(reach, last, &reach)) {
      return false;
    }
  }
  span = reach + 1;
  return true;
}

/// The most dimensions that are sorted.
inline constexpr std::size_t most_sorted = 8;

/// The same of dimensions that are sorted by their strides first.
constexpr bool has_sorted_dimensions(const std::int64_t* shape, const std::int64_t* strides,
                                     std::size_t ndim, std::uint64_t& span) noexcept {
  if (ndim > most_sorted) {
    return false;
  }
  std::array<std::int64_t, most_sorted> sorted_shape{};
  std::array<std::int64_t, most_sorted> sorted_strides{};
  for (std::size_t taken = 0; taken < ndim; ++taken) {
    const std::size_t r = ndim - 1 - taken;
    std::size_t place = taken;
    for (; place != 0 && sorted_strides[place - 1] > strides[r]; --place) {
      sorted_shape[place] = sorted_shape[place - 1];
      sorted_strides[place] = sorted_strides[place - 1];
    }
    sorted_shape[place] = shape[r];
    sorted_strides[place] = strides[r];
  }
  return has_ordered_dimensions(sorted_shape.data(), sorted_strides.data(), ndim, span);
}

/// Bits of an address, of a byte offset and of a number of elements that leave room for their
/// sums and, because no element has 2^21 bytes, for products with its size.
inline constexpr unsigned roomy_bits_of_address = 61;
inline constexpr unsigned roomy_bits_of_span = 40;

/// Whether a tensor is ordinary; if so, `first` becomes the address of its first element,
/// which is its lowest, and `nbytes` the bytes from there to its end. No two elements overlap.
template <commonness How>
inline bool is_ordinary_structure(const DLTensor& tensor, std::uintptr_t& first,
                                  std::uint64_t& nbytes) noexcept {
  const DLDataType dtype = tensor.dtype;
  const auto ndim = static_cast<std::size_t>(tensor.ndim);
  std::uint64_t span = 1;
  if (tensor.ndim < 0 || (ndim != 0 && may_be_null(tensor.shape, tensor.strides)) ||
      !detail::has_whole_bytes(dtype) ||
      !(How == commonness::common
            ? has_compact_dimensions(tensor.shape, tensor.strides, ndim, span)
            : has_ordered_dimensions(tensor.shape, tensor.strides, ndim, span) ||
                  has_sorted_dimensions(tensor.shape, tensor.strides, ndim, span))) {
    return false;
  }
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  first = data + static_cast<std::uintptr_t>(tensor.byte_offset);
  nbytes = span * (dtype.bits / 8U * dtype.lanes);
  // Null data and a span of 0 are large numbers here.
  return ((data - 1) | tensor.byte_offset) >> roomy_bits_of_address == 0 &&
         (span - 1) >> roomy_bits_of_span == 0 && (first & detail::alignment_mask(dtype)) == 0;
}

}  // namespace usm_dlpack::detail
