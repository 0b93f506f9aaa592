// SPDX-License-Identifier: Apache-2.0
//
// Producer: an mdspan-style view and the device that the caller vouches for -> a DLTensor
// wrapper. What a view must be to be exported, and why others are refused at compile time,
// stands here.
#pragma once

#include <usm_dlpack/dlpack_tensor.hpp>
#include <usm_dlpack/dtype.hpp>
#include <usm_dlpack/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class Accessor>
constexpr bool accessor_is_plain() {
  using element_type = typename Accessor::element_type;
  return std::is_same_v<typename Accessor::reference, element_type&> &&
         std::is_same_v<typename Accessor::data_handle_type, element_type*>;
}

}  // namespace detail

/// Whether what an accessor shows is what stands in memory, so that a consumer who knows
/// nothing of the accessor reads the same values.
///
/// True where `reference` is `element_type&` and `data_handle_type` is `element_type*`.
/// Specialise it as true for another accessor (atomic references, restrict pointers) that
/// neither changes values nor moves them; one that scales or decodes would be dropped
/// silently.
template <class Accessor>
inline constexpr bool is_plain_accessor_v = detail::accessor_is_plain<Accessor>();

namespace detail {

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

/// The first rule that a type breaks as a view to export, or none.
enum class view_rule { none, interface, handle, accessor, layout, dtype, padding };

template <class View, bool AllowPadded>
constexpr view_rule broken_rule() {
  if constexpr (!is_view<View>) {
    return view_rule::interface;
  } else if constexpr (!points_to<handle_of<View>, typename View::element_type>) {
    return view_rule::handle;
  } else if constexpr (!is_plain_accessor_v<accessor_of<View>>) {
    return view_rule::accessor;
  } else if constexpr (View::rank() != 0 && !has_stride<mapping_of<View>>) {
    return view_rule::layout;
  } else if constexpr (!has_data_type_v<typename View::element_type>) {
    return view_rule::dtype;
  } else if constexpr (!AllowPadded && is_subbyte_padded_v<typename View::element_type>) {
    return view_rule::padding;
  } else {
    return view_rule::none;
  }
}

template <view_rule Rule, class View, bool AllowPadded>
using if_broken = std::enable_if_t<Rule == broken_rule<View, AllowPadded>(), int>;

// Each overload below but the first refuses by failing as a default template argument: an
// error in the immediate context, so SFINAE sees it; g++ prints the throw, clang the
// attribute.
template <class View, bool AllowPadded = false,
          std::enable_if_t<broken_rule<View, AllowPadded>() == view_rule::none ||
                               broken_rule<View, AllowPadded>() == view_rule::dtype,
                           int> = 0>
constexpr int require_view() noexcept {  // a dtype is require_dtype's to refuse
  return 0;
}
template <class View, bool AllowPadded = false,
          if_broken<view_rule::interface, View, AllowPadded> = 0>
USM_DLPACK_UNAVAILABLE(
    "view: expected a type with the interface of mdspan, found another; "
    "pass an mdspan by value or reference")
constexpr int require_view() {
  return throw "view: expected a type with the interface of mdspan, found another; "
               "pass an mdspan by value or reference", 0;
}
template <class View, bool AllowPadded = false,
          if_broken<view_rule::handle, View, AllowPadded> = 0>
USM_DLPACK_UNAVAILABLE(
    "data_handle: expected element_type*, found a handle that is no such pointer; "
    "make an mdspan over the raw pointer")
constexpr int require_view() {
  return throw "data_handle: expected element_type*, found a handle that is no such pointer; "
               "make an mdspan over the raw pointer", 0;
}
template <class View, bool AllowPadded = false,
          if_broken<view_rule::accessor, View, AllowPadded> = 0>
USM_DLPACK_UNAVAILABLE(
    "accessor: expected reference to be element_type&, found an accessor that "
    "may change values; specialise is_plain_accessor_v if it does not")
constexpr int require_view() {
  return throw "accessor: expected reference to be element_type&, found an accessor that "
               "may change values; specialise is_plain_accessor_v if it does not", 0;
}
template <class View, bool AllowPadded = false,
          if_broken<view_rule::layout, View, AllowPadded> = 0>
USM_DLPACK_UNAVAILABLE(
    "layout: expected a mapping with stride(r), found one without strides; "
    "copy the elements to a strided layout first")
constexpr int require_view() {
  return throw "layout: expected a mapping with stride(r), found one without strides; "
               "copy the elements to a strided layout first", 0;
}
template <class View, bool AllowPadded = false,
          if_broken<view_rule::padding, View, AllowPadded> = 0>
USM_DLPACK_UNAVAILABLE(
    "element_type: expected packed elements, found padded ones, which a bare "
    "DLTensor cannot declare; export a managed tensor")
constexpr int require_view() {
  return throw "element_type: expected packed elements, found padded ones, which a bare "
               "DLTensor cannot declare; export a managed tensor", 0;
}

template <class View>
using element_of = std::remove_cv_t<typename View::element_type>;

/// Index of the element whose indices are all zero: not 0 in every layout.
template <class Mapping, std::size_t... Zeros>
constexpr auto first_index(const Mapping& mapping, std::index_sequence<Zeros...>) {
  using index_type = typename Mapping::index_type;
  return mapping(static_cast<index_type>(Zeros * 0)...);
}

/// Address of the first element of a view that has elements.
template <class View>
constexpr auto first_element(const View& view) {
  const auto index = first_index(view.mapping(), std::make_index_sequence<View::rank()>{});
  constexpr auto highest = std::numeric_limits<std::ptrdiff_t>::max();
  constexpr auto size = static_cast<std::int64_t>(sizeof(typename View::element_type));
  if (!fits_int64(index) || static_cast<std::int64_t>(index) > highest / size ||
      static_cast<std::int64_t>(index) < -(highest / size)) {
    refuse(errc::offset_out_of_range, "element_offset",
           "a first element within reach of a pointer", digits(index),
           "correct the mapping of the view");
  }
  return view.data_handle() + static_cast<std::ptrdiff_t>(index);
}

template <class Mapping>
constexpr void check_strided(const Mapping& mapping) {
  if (Mapping::is_always_strided() || mapping.is_strided()) {
    return;
  }
  refuse(errc::layout_not_strided, "layout", "a mapping whose is_strided() is true",
         "one that answers false", "copy the elements to a strided layout first");
}

/// What an empty view's `data` becomes: null as DLPack asks of a DLTensor, or left as it is,
/// which consumers of managed tensors need (dpctl, dpnp and PyTorch refuse null).
enum class empty_data { null, kept };

/// The one reader of views: checks every extent and stride, and finds the first element.
template <class View>
constexpr dlpack_tensor<View::rank()> describe(const View& view, DLDevice device,
                                               empty_data when_empty) {
  constexpr std::size_t rank = View::rank();
  typename dlpack_tensor<rank>::array_type shape{};
  typename dlpack_tensor<rank>::array_type strides{};
  [[maybe_unused]] bool empty = false;
  if constexpr (rank != 0) {
    const auto& mapping = view.mapping();
    check_strided(mapping);
    for (std::size_t r = 0; r < rank; ++r) {
      shape[r] = to_extent(view.extent(r), r);
      empty = empty || shape[r] == 0;
    }
    for (std::size_t r = 0; r < rank; ++r) {
      strides[r] = to_stride(mapping.stride(r), r);
    }
  }
  handle_of<View> first{};
  if (!empty) {
    first = first_element(view);
  } else if (when_empty == empty_data::kept) {
    first = view.data_handle();
  }
  // DLTensor has no pointer to const: constness is the managed tensor's flag, or the caller's
  // care.
  void* data = const_cast<void*>(static_cast<const volatile void*>(first));
  return {data, device, data_type_v<typename View::element_type>, shape, strides};
}

}  // namespace detail

/// Describes a view as a DLTensor of the given device, without a SYCL call or a heap
/// allocation.
///
/// `shape[r]` is `extent(r)`, `strides[r]` is `mapping().stride(r)` in elements, `data` is the
/// element whose indices are all zero (null if an extent is 0), `byte_offset` is 0; const and
/// volatile are cast away. The wrapper owns shape and strides; the data must outlive every use
/// of the result. Source: DLPack `DLTensor`; semantics of `cuda::to_dlpack_tensor`.
/// @param device taken as it is: the caller vouches that the memory belongs to it
/// @throws conversion_error `extent_out_of_range`, `stride_out_of_range`,
/// `offset_out_of_range`,
///         `layout_not_strided`
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] constexpr auto to_dlpack_tensor(const View& view, DLDevice device)
    -> dlpack_tensor<View::rank()> {
  return detail::describe(view, device, detail::empty_data::null);
}

}  // namespace usm_dlpack
