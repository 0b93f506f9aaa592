// SPDX-License-Identifier: Apache-2.0
//
// Dtypes of SYCL's element types. A new element type of SYCL is a specialisation here.
#pragma once

#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace usm_dlpack {

template <>
struct data_type_of<sycl::half> : detail::dtype_constant<kDLFloat, 16> {};
template <>
struct data_type_of<sycl::ext::oneapi::bfloat16> : detail::dtype_constant<kDLBfloat, 16> {};
template <>
struct data_type_of<std::complex<sycl::half>> : detail::dtype_constant<kDLComplex, 32> {};

namespace detail {

/// The dtype of an object that is exactly `Count` elements of one lane: none if the object is
/// padded (sycl::vec of 3), or the count does not fit 16 bits.
template <class Vector, class Element, std::size_t Count, class = void>
struct lanes_row {};
template <class Vector, class Element, std::size_t Count>
struct lanes_row<
    Vector, Element, Count,
    std::enable_if_t<data_type_v<Element>.lanes == 1 && !is_subbyte_padded_v<Element> &&
                     Count <= UINT16_MAX && sizeof(Vector) == Count * sizeof(Element)>>
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
