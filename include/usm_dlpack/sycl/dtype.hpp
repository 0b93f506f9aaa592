// SPDX-License-Identifier: Apache-2.0
//
// Dtypes of SYCL's element types.
#pragma once

#include <usm_dlpack/core/dtype.hpp>

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <complex>
#include <limits>

namespace usm_dlpack {

template <>
struct data_type_of<sycl::half> : detail::dtype_constant<kDLFloat, 16> {};
template <>
struct data_type_of<sycl::ext::oneapi::bfloat16> : detail::dtype_constant<kDLBfloat, 16> {};
template <>
struct data_type_of<std::complex<sycl::half>> : detail::dtype_constant<kDLComplex, 32> {};

namespace detail {

/// Whether an object is exactly `Count` elements of one lane: no dtype if the object is padded
/// (sycl::vec of 3), or the count does not fit 16 bits.
template <class Vector, class Element, std::size_t Count>
constexpr bool has_lanes() {
  if constexpr (has_data_type_v<Element>) {
    return data_type_v<Element>.lanes == 1 && !is_subbyte_padded_v<Element> &&
           Count <= std::numeric_limits<std::uint16_t>::max() &&
           sizeof(Vector) == Count * sizeof(Element);
  } else {
    return false;
  }
}

template <class Vector, class Element, std::size_t Count,
          bool = has_lanes<Vector, Element, Count>()>
struct lanes_row {};
template <class Vector, class Element, std::size_t Count>
struct lanes_row<Vector, Element, Count, true>
    : dtype_constant<data_type_v<Element>.code, data_type_v<Element>.bits, Count> {};

}  // namespace detail

template <class Element, int Count>
struct data_type_of<sycl::vec<Element, Count>>
    : detail::lanes_row<sycl::vec<Element, Count>, Element, static_cast<std::size_t>(Count)> {
};
template <class Element, std::size_t Count>
struct data_type_of<sycl::marray<Element, Count>>
    : detail::lanes_row<sycl::marray<Element, Count>, Element, Count> {};

}  // namespace usm_dlpack
