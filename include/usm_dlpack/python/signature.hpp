// SPDX-License-Identifier: Apache-2.0
//
// The text of a view in Python signatures, made at compile time. Both bindings show the same
// text. A new property of views that callers must know is shown here.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/mapping.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/memory.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Characters up to a null, in an array that has room for more.
template <std::size_t Capacity>
struct static_text {
  char characters[Capacity + 1]{};
  std::size_t size = 0;

  constexpr static_text& add(std::string_view text) {
    for (const char c : text) {
      characters[size++] = c;
    }
    return *this;
  }
  constexpr static_text& add(std::size_t number) {
    if (number >= 10) {
      add(number / 10);
    }
    characters[size++] = static_cast<char>('0' + number % 10);
    return *this;
  }
};

/// Adds `float32`, `bool`, `bfloat16`, `float32x4`: a dtype as messages print it, without
/// numbers.
template <class Element, class Text>
constexpr void add_dtype(Text& text) {
  constexpr DLDataType dtype = data_type_v<Element>;
  text.add(type_code_rows[dtype.code].name);
  if (!is_named_by_code(dtype)) {
    text.add(std::size_t{dtype.bits});
  }
  if (dtype.lanes != 1) {
    text.add("x").add(std::size_t{dtype.lanes});
  }
}

/// `C` or `F` if the view accepts only this order; otherwise null.
template <class View>
constexpr const char* order_of() {
  using mapping = typename View::mapping_type;
  const bool is_ordered = View::rank() > 0 && !made_from_strides<mapping> &&
                          made_from_extents<mapping> && padding_of<mapping> == 0;
  return !is_ordered ? nullptr : is_left<mapping> ? "F" : "C";
}

/// `typing.Annotated[usm_dlpack.UsmArray, dict(dtype='float32', shape=(None, 3), order='C')]`
template <class View>
constexpr auto make_parameter_text() {
  using extents_type = typename View::extents_type;
  static_text<160 + 24 * View::rank()> text;
  text.add("typing.Annotated[usm_dlpack.UsmArray, dict(dtype='");
  add_dtype<element_of<View>>(text);
  text.add("', shape=(");
  for (std::size_t r = 0; r < View::rank(); ++r) {
    text.add(r == 0 ? "" : ", ");
    if (extents_type::static_extent(r) == dynamic_extent) {
      text.add("None");
    } else {
      text.add(std::size_t{extents_type::static_extent(r)});
    }
  }
  text.add(View::rank() == 1 ? ",)" : ")");
  if constexpr (constexpr const char* order = order_of<View>(); order != nullptr) {
    text.add(", order='").add(order).add("'");
  }
  constexpr sycl::usm::alloc kind = usm_kind_v<View>;
  if (kind != sycl::usm::alloc::unknown) {
    text.add(", usm_type='").add(usm_dlpack::to_string(kind)).add("'");
  }
  return text.add(has_const_elements<View> ? ", writable=False)]" : ")]");
}
template <class View>
inline constexpr auto parameter_text = make_parameter_text<View>();

/// The text as a `descr`, the type of signatures that nanobind and pybind11 each have.
template <template <std::size_t, class...> class Descr, class View, std::size_t... Is>
constexpr auto make_parameter_descr(std::index_sequence<Is...>) {
  return Descr<sizeof...(Is)>(parameter_text<View>.characters[Is]...);
}
template <template <std::size_t, class...> class Descr, class View>
inline constexpr auto parameter_descr =
    make_parameter_descr<Descr, View>(std::make_index_sequence<parameter_text<View>.size>());

}  // namespace usm_dlpack::detail
