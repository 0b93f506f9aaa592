// SPDX-License-Identifier: Apache-2.0
//
// Whether strides prove that no two indices share an element. Needs no mdspan, no device and
// no heap.
#pragma once

#include <usm_dlpack/layout.hpp>

#include <cstddef>
#include <cstdint>

namespace usm_dlpack::detail {

/// What a dimension must step over for `strides_step_over`.
enum class step_over {
  elements,  ///< all elements that the smaller steps reach: then no two indices share one
  extents,   ///< the whole extent of the next smaller step, as the standard `layout_stride`
             ///< asks
};

/// How far the dimensions taken so far extend, in elements, with one more of steps of `step`.
/// @pre the offsets of all dimensions fit int64_t
constexpr std::uint64_t reach_with(std::uint64_t reach, std::uint64_t step,
                                   std::int64_t extent, step_over what) noexcept {
  const std::uint64_t last = step * static_cast<std::uint64_t>(extent - 1);
  return what == step_over::elements ? reach + last : last + step - 1;
}

/// Whether each dimension steps over what the ones after it reach: the order of nearly all
/// tensors.
constexpr bool steps_over_the_next(const std::int64_t* shape, const std::int64_t* strides,
                                   std::size_t ndim, step_over what) noexcept {
  std::uint64_t reach = 0;
  for (std::size_t r = ndim; r-- > 0;) {
    const std::uint64_t step = magnitude(strides[r]);
    if (shape[r] > 1) {
      if (step <= reach) {
        return false;
      }
      reach = reach_with(reach, step, shape[r], what);
    }
  }
  return true;
}

/// Whether, taken by size of step, each dimension steps over what the smaller ones reach.
/// @pre no extent is below 1, and the offsets of all dimensions fit int64_t
constexpr bool dimensions_step_over(const std::int64_t* shape, const std::int64_t* strides,
                                    std::size_t ndim, step_over what) noexcept {
  if (steps_over_the_next(shape, strides, ndim, what)) {
    return true;
  }
  std::uint64_t reach = 0;
  for (std::size_t taken = 0;; ++taken) {
    std::size_t within = 0;  // dimensions that step no farther than `reach`, taken or not
    std::size_t next = ndim;
    for (std::size_t r = 0; r < ndim; ++r) {
      const std::uint64_t step = magnitude(strides[r]);
      if (shape[r] > 1 && step <= reach) {
        ++within;
      } else if (shape[r] > 1 && (next == ndim || step < magnitude(strides[next]))) {
        next = r;
      }
    }
    if (within != taken || next == ndim) {
      return within == taken;
    }
    reach = reach_with(reach, magnitude(strides[next]), shape[next], what);
  }
}

/// The same of any strides: those of an empty tensor pass, and those that overflow do not.
/// @pre no extent is negative; `strides` is not null unless `ndim` is 0
constexpr bool strides_step_over(const std::int64_t* shape, const std::int64_t* strides,
                                 std::size_t ndim, step_over what) noexcept {
  const element_span whole = span_of(shape, strides, ndim);
  if (whole.empty || whole.overflow) {
    return whole.empty;
  }
  return dimensions_step_over(shape, strides, ndim, what);
}

/// Whether the strides prove that no two indices share an element. A tensor for which this is
/// false may still have no overlap; one for which it is true has none.
constexpr bool strides_are_unique(const std::int64_t* shape, const std::int64_t* strides,
                                  std::size_t ndim) noexcept {
  return strides_step_over(shape, strides, ndim, step_over::elements);
}

/// The precondition of the standard `layout_stride` (P0009 `[mdspan.layout.stride.cons]`),
/// apart from the signs.
constexpr bool strides_are_nested(const std::int64_t* shape, const std::int64_t* strides,
                                  std::size_t ndim) noexcept {
  return strides_step_over(shape, strides, ndim, step_over::extents);
}

}  // namespace usm_dlpack::detail
