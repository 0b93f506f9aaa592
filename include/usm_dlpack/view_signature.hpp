// SPDX-License-Identifier: Apache-2.0
//
// How a view is written in a Python signature and in the stubs made of it: as an array that
// type checkers know, annotated with what the view asks of it.
#pragma once

#include <usm_dlpack/usm_mdspan.hpp>

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>

namespace usm_dlpack::detail {

namespace nb = nanobind;

constexpr std::size_t length_of(const char* text) noexcept {
  std::size_t length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}

/// The name of a type code, as text of a signature.
template <std::uint8_t Code, std::size_t... Is>
constexpr auto code_text(std::index_sequence<Is...>) {
  return (nb::detail::const_name("") + ... +
          nb::detail::const_name(type_code_rows[Code].name[Is]));
}

/// `float32`, `bool`, `bfloat16`, `float32x4`: as messages print a dtype, without its numbers.
template <class Element>
constexpr auto dtype_text() {
  using nb::detail::const_name;
  constexpr DLDataType dtype = data_type_v<Element>;
  constexpr type_code_row row = type_code_rows[dtype.code];
  constexpr bool says_width = row.bits == dtype.bits && dtype.code != kDLBfloat;
  return code_text<dtype.code>(std::make_index_sequence<length_of(row.name)>{}) +
         const_name<says_width>(const_name(""), const_name<dtype.bits>()) +
         const_name<dtype.lanes == 1>(const_name(""),
                                      const_name("x") + const_name<dtype.lanes>());
}

template <std::size_t Extent>
constexpr auto extent_text() {
  using nb::detail::const_name;
  if constexpr (Extent == dynamic_extent) {
    return const_name("None");
  } else {
    return const_name<Extent>();
  }
}

template <class Extents, std::size_t... Ranks>
constexpr auto shape_text(std::index_sequence<Ranks...>) {
  using nb::detail::const_name;
  return const_name("(") +
         nb::detail::concat(extent_text<Extents::static_extent(Ranks)>()...) +
         const_name<sizeof...(Ranks) == 1>(",", "") + const_name(")");
}

template <sycl::usm::alloc Kind>
constexpr auto kind_text() {
  using nb::detail::const_name;
  if constexpr (Kind == sycl::usm::alloc::unknown) {
    return const_name("");
  } else if constexpr (Kind == sycl::usm::alloc::device) {
    return const_name(", usm_type='device'");
  } else if constexpr (Kind == sycl::usm::alloc::shared) {
    return const_name(", usm_type='shared'");
  } else {
    return const_name(", usm_type='host'");
  }
}

/// `typing.Annotated[usm_dlpack.UsmArray, dict(dtype='float32', shape=(None, 3))]`
template <class View>
constexpr auto parameter_text() {
  using nb::detail::const_name;
  using extents_type = typename View::extents_type;
  return const_name("typing.Annotated[usm_dlpack.UsmArray, dict(dtype='") +
         dtype_text<element_of<View>>() + const_name("', shape=") +
         shape_text<extents_type>(std::make_index_sequence<extents_type::rank()>{}) +
         kind_text<usm_kind_v<View>>() +
         const_name<has_const_elements<View>>(", writable=False", "") + const_name(")]");
}

/// A view with an owner is taken as a view, and given as a DLPackTensor.
template <class View>
constexpr auto owned_text() {
  using nb::detail::const_name;
  return const_name("@") + parameter_text<View>() + const_name("@usm_dlpack.DLPackTensor@");
}

}  // namespace usm_dlpack::detail
