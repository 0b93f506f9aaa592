// SPDX-License-Identifier: Apache-2.0
//
// Requirements for views: any type with the interface of mdspan, from any implementation.
// Refuses other types at compile time, with a sentence. A new requirement is a step of
// `broken_rule`, and a case in tests/cpp/compile_fail.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>

#include <cstddef>
#include <type_traits>

namespace usm_dlpack {

/// Whether an accessor shows the values in memory unchanged, so that a consumer without the
/// accessor reads the same values.
///
/// True if `reference` is `element_type&` and `data_handle_type` is `element_type*`.
/// Specialise it as true for another accessor (atomic references, restrict pointers) that
/// neither changes nor moves values. One that scales or decodes would be dropped silently.
template <class Accessor>
inline constexpr bool is_plain_accessor_v =
    std::is_same_v<typename Accessor::reference, typename Accessor::element_type&> &&
    std::is_same_v<typename Accessor::data_handle_type, typename Accessor::element_type*>;

namespace detail {

/// The value of `std::dynamic_extent`, which every mdspan uses.
inline constexpr auto dynamic_extent = static_cast<std::size_t>(-1);

template <std::size_t Number>
using if_power_of_two = std::enable_if_t<Number != 0 && (Number & (Number - 1)) == 0>;

/// Whether the alignment is a non-static member. In g++, its use as a constant would be a hard
/// error.
template <class Accessor, class = void>
inline constexpr bool keeps_alignment = false;
template <class Accessor>
inline constexpr bool keeps_alignment<
    Accessor,
    std::enable_if_t<std::is_member_pointer_v<decltype(&Accessor::byte_alignment)>>> = true;

/// The alignment of the handle in bytes that an accessor promises by a constant, as
/// `std::aligned_accessor` does; otherwise 1.
template <class Accessor, class = void, bool = keeps_alignment<Accessor>>
inline constexpr std::size_t promised_alignment = 1;
template <class Accessor>
inline constexpr std::size_t
    promised_alignment<Accessor, if_power_of_two<Accessor::byte_alignment>, false> =
        static_cast<std::size_t>(Accessor::byte_alignment);

/// Whether the accessor is a `usm_accessor`: only a device query can prove its kind.
template <class Accessor>
inline constexpr bool has_usm_kind = false;

template <class View, class = void>
inline constexpr bool is_view = false;
template <class View>
inline constexpr bool is_view<
    View,
    std::void_t<typename View::element_type, decltype(std::declval<const View&>().mapping()),
                decltype(std::declval<const View&>().accessor()),
                decltype(std::declval<const View&>().data_handle()),
                decltype(std::declval<const View&>().extent(View::rank()))>> = true;

template <class View>
using mapping_of = std::decay_t<decltype(std::declval<const View&>().mapping())>;
template <class View>
using accessor_of = std::decay_t<decltype(std::declval<const View&>().accessor())>;
template <class View>
using handle_of = std::decay_t<decltype(std::declval<const View&>().data_handle())>;

template <class Handle, class Element>
inline constexpr bool points_to = false;
template <class Pointee, class Element>
inline constexpr bool points_to<Pointee*, Element> =
    std::is_same_v<std::remove_cv_t<Pointee>, std::remove_cv_t<Element>>;
template <class Pointee, class Element>
inline constexpr bool points_to<Pointee* __restrict, Element> = points_to<Pointee*, Element>;

template <class Mapping, class = void>
inline constexpr bool has_stride = false;
template <class Mapping>
inline constexpr bool has_stride<
    Mapping, std::void_t<decltype(std::declval<const Mapping&>().stride(std::size_t{}))>> =
    true;

template <class View, bool AllowPadded>
constexpr type_rule broken_rule() {
  if constexpr (!is_view<View>) {
    return type_rule::interface;
  } else if constexpr (!points_to<handle_of<View>, typename View::element_type>) {
    return type_rule::handle;
  } else if constexpr (!is_plain_accessor_v<accessor_of<View>>) {
    return type_rule::accessor;
  } else if constexpr (View::rank() != 0 && !has_stride<mapping_of<View>>) {
    return type_rule::layout;
  } else if constexpr (!has_data_type_v<typename View::element_type>) {
    return broken_dtype_rule<std::remove_cv_t<typename View::element_type>>();
  } else {
    return !AllowPadded && is_subbyte_padded_v<typename View::element_type>
               ? type_rule::padding
               : type_rule::none;
  }
}

USM_DLPACK_REFUSED_TYPE(
    type_rule::interface,
    "view: expected a type with the interface of mdspan, found another; "
    "use an mdspan, such as mdspan<float, dextents<int, 2>>(pointer, 4, 6)")
USM_DLPACK_REFUSED_TYPE(type_rule::handle,
                        "data_handle: expected element_type*, found a handle that is no such "
                        "pointer; make an mdspan over the raw pointer")
USM_DLPACK_REFUSED_TYPE(
    type_rule::accessor,
    "accessor: expected reference to be element_type&, found an accessor "
    "that may change values; specialise is_plain_accessor_v if it does not")
USM_DLPACK_REFUSED_TYPE(
    type_rule::layout,
    "layout: expected a mapping with stride(r), found one without strides; "
    "copy the elements to a strided layout first")
USM_DLPACK_REFUSED_TYPE(type_rule::padding,
                        "element_type: expected packed elements, found padded ones, which a "
                        "bare DLTensor cannot declare; export a managed tensor")

/// A default template argument of functions that take a view. A bare DLTensor cannot declare
/// padded elements.
template <class View, bool AllowPadded = true>
using required_view = std::integral_constant<int, require<broken_rule<View, AllowPadded>()>()>;
template <class View>
using required_bare_view = required_view<View, false>;

template <class View>
inline constexpr bool has_no_usm_kind = !has_usm_kind<accessor_of<View>>;

template <class View>
inline constexpr bool has_const_elements =
    std::is_const_v<typename View::element_type> ||
    std::is_const_v<std::remove_pointer_t<handle_of<View>>>;

template <class View>
using element_of = std::remove_cv_t<typename View::element_type>;

}  // namespace detail
}  // namespace usm_dlpack
