// SPDX-License-Identifier: Apache-2.0
//
// The text of a view in Python signatures and in refusals, made at compile time.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/memory.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>

#include <cstddef>
#include <string_view>
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

/// `float32 view of rank 1`, or of const elements `const float32 view of rank 1`
template <class View>
constexpr auto make_view_text() {
  static_text<64> text;
  text.add(has_const_elements<View> ? "const " : "");
  add_dtype<element_of<View>>(text);
  text.add(" view of rank ").add(std::size_t{View::rank()});
  return text;
}
template <class View>
inline constexpr auto view_text = make_view_text<View>();

/// `typing.Annotated[usm_dlpack.UsmArray, dict(dtype='float32', shape=(None, 3))]`
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
