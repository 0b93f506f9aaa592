// SPDX-License-Identifier: Apache-2.0
//
// Consumer: a well-formed DLTensor -> a view of the mdspan type that the caller names.
// Everything about the view (element type, extents, index type, layout, accessor) is read off
// that type.
//
// Nothing here asks a device: where the memory is, `validate` proves. A view whose type names
// the USM kind is made by sycl/to_mdspan.hpp, which does.
#pragma once

#include <usm_dlpack/core/mapping.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/view.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class View>
void check_element_type(const DLTensor& tensor, subbyte storage) {
  constexpr DLDataType wanted = data_type_v<typename View::element_type>;
  constexpr bool padded = is_subbyte_padded_v<typename View::element_type>;
  if (!usm_dlpack::same_data_type(tensor.dtype, wanted)) {
    refuse(errc::dtype_mismatch, "dtype",
           usm_dlpack::to_string(wanted) + " for the view's element type",
           usm_dlpack::to_string(tensor.dtype),
           "convert the array, or use a view of its element type");
  }
  if (wanted.bits < 8 && padded != (storage == subbyte::padded)) {
    refuse(errc::dtype_mismatch, "flags",
           padded ? "padded elements for the view's element type"
                  : "packed elements for the view's element type",
           padded ? "packed ones" : "padded ones", "use a view of an element type stored so");
  }
}

template <class Extents, std::size_t... Ranks>
constexpr Extents make_extents([[maybe_unused]] const std::int64_t* shape,
                               std::index_sequence<Ranks...>) {
  return Extents(static_cast<typename Extents::index_type>(shape[Ranks])...);
}

template <class View>
void check_rank(const DLTensor& tensor) {
  constexpr std::size_t rank = View::rank();
  if (static_cast<std::size_t>(tensor.ndim) != rank) {
    refuse(errc::rank_mismatch, "ndim", digits(rank) + " for the view's rank",
           digits(tensor.ndim), "use a view of the tensor's rank, or reshape the array");
  }
}

/// Checks the static extents.
template <class Extents>
void check_static_extents(const DLTensor& tensor) {
  for (std::size_t r = 0; r < Extents::rank(); ++r) {
    const std::size_t fixed = Extents::static_extent(r);
    if (fixed != dynamic_extent && fixed != static_cast<std::size_t>(tensor.shape[r])) {
      refuse_extent_mismatch(r, fixed, tensor.shape[r]);
    }
  }
}

inline void check_alignment(const tensor_structure& structure, std::uintptr_t alignment) {
  if (!structure.empty && structure.first % alignment != 0) {
    refuse(
        errc::data_misaligned, "byte_offset",
        "data + byte_offset aligned to " + digits(alignment) + " bytes, as the element type",
        digits(structure.first % alignment) + " bytes past such an address",
        "copy the array to aligned memory first");
  }
}

/// Checks the alignment that the view's accessor promises for its handle.
template <std::size_t Alignment>
void check_accessor_alignment(const volatile void* handle) {
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(handle) % Alignment;
  if (past != 0) {
    refuse(errc::data_misaligned, "byte_offset",
           "elements aligned to " + digits(Alignment) + " bytes, as the view's accessor says",
           digits(past) + " bytes past such an address",
           "copy the array to aligned memory first");
  }
}

template <std::size_t Rank>
strided_shape<Rank> read_strides(const DLTensor& tensor) {
  strided_shape<Rank> given;
  for (std::size_t r = 0; r < Rank; ++r) {
    given.shape[r] = tensor.shape[r];
    given.strides[r] = tensor.strides == nullptr ? 0 : tensor.strides[r];
  }
  if (tensor.strides == nullptr) {
    write_compact_strides(given.shape.data(), given.strides.data(), Rank);
  }
  return given;
}

/// Checks that the index type holds every extent, and the number of elements from the lowest to
/// the highest.
template <class Index, std::size_t Rank>
void check_index_type(const strided_shape<Rank>& given, bool empty) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (!fits<Index>(given.shape[r])) {
      refuse_index_type(indexed("shape", r), name_of_integer<Index>(), given.shape[r]);
    }
  }
  const element_span span = span_of(given.shape.data(), given.strides.data(), Rank);
  const std::int64_t size = empty ? 0 : span.highest - span.lowest + 1;
  if (!fits<Index>(size)) {
    refuse_index_type("shape", name_of_integer<Index>(), size);
  }
}

/// Checks that the index type holds the indices of all elements: an unsigned one wraps below
/// 0, and a layout may begin at another index.
template <class Index, std::size_t Rank>
void check_indices(std::int64_t origin, const strided_shape<Rank>& given) {
  const element_span span = span_of(given.shape.data(), given.strides.data(), Rank);
  for (const std::int64_t place : {span.lowest, span.highest}) {
    std::int64_t index = 0;
    if (add_overflows(origin, place, index) || !fits<Index>(index)) {
      refuse_index_type("strides", name_of_integer<Index>(), index);
    }
  }
}

/// Makes the view of a well-formed tensor of its rank.
/// @param structure what `check_structure` returned for `tensor`
/// @param reach what `accept_nested` returned for it: no index exceeds it, so no check of the
///        view's integers is needed if they hold it
template <class View>
View make_view(const DLTensor& tensor, const tensor_structure& structure, subbyte storage,
               std::int64_t reach = 0) {
  static_assert(std::is_default_constructible_v<accessor_of<View>>,
                "accessor: expected one that is made of nothing, found another; construct the "
                "view by hand after validate");
  using mapping_type = typename View::mapping_type;
  using extents_type = typename View::extents_type;
  using index_type = typename extents_type::index_type;
  constexpr std::size_t rank = extents_type::rank();
  constexpr std::make_index_sequence<rank> ranks{};
  detail::check_element_type<View>(tensor, storage);
  detail::check_static_extents<extents_type>(tensor);
  check_alignment(structure, alignof(typename View::element_type));
  const strided_shape<rank> given = detail::read_strides<rank>(tensor);
  const bool is_bounded = reach != 0 && fits<index_type>(reach);
  if (!is_bounded) {
    check_index_type<index_type>(given, structure.empty);
  }
  const mapping_type mapping =
      to_mapping<mapping_type>(make_extents<extents_type>(given.shape.data(), ranks), given,
                               structure.empty, is_bounded ? reach : 0);
  auto* first = reinterpret_cast<typename View::data_handle_type>(structure.first);
  if (structure.empty) {
    return View(first, mapping);
  }
  const auto origin = static_cast<std::ptrdiff_t>(detail::origin_index(mapping, ranks));
  if (!is_bounded || origin != 0) {
    detail::check_indices<index_type>(origin, given);
    first -= origin;
  }
  check_accessor_alignment<promised_alignment<accessor_of<View>>>(first);
  return View(first, mapping);
}

template <class View>
View convert(const DLTensor& tensor, subbyte storage) {
  detail::check_ndim(tensor);
  detail::check_rank<View>(tensor);  // before `shape` is read, which has `ndim` entries
  tensor_structure structure;
  const std::int64_t reach = detail::accept_nested(tensor, structure);
  if (reach == 0) {
    detail::check_in_full(tensor, storage, structure);
  }
  return detail::make_view<View>(tensor, structure, storage, reach);
}

template <class View>
void check_writable(std::uint64_t flags) {
  if (!has_const_elements<View> && (flags & flag::read_only) != 0) {
    refuse(errc::read_only, "flags", "writable memory for a view of mutable elements",
           "read-only memory", "use a view of const elements, or copy the array");
  }
}

}  // namespace detail

/// Makes a view of a tensor, checked: `ndim` is the view's rank, the tensor is well formed
/// (`check_structure`), its dtype is that of the element type (cv ignored, lanes included),
/// the static extents are the view's, the first element is aligned to the element type, the
/// index type holds every extent, the span and every stride, and the layout holds the strides.
/// Refuses at the first broken rule, in this order (docs/checks.md).
///
/// Strides of dimensions of extent 1 and of empty tensors are free: the view may have others
/// there. Zero and negative strides need `layout_relaxed`, or another layout for which
/// `accepts_any_stride_v` is true. The tensor is taken as writable and packed: a bare DLTensor
/// carries no flags. The device is not looked at.
/// @tparam View an mdspan type whose layout is made from extents (right, left), from extents
///         and strides (stride, relaxed, a user's), or from extents and a padding
/// @returns a view that borrows the memory; shape and strides are copied into its mapping
/// @throws conversion_error of the first broken rule
template <class View, int = detail::require_view<View, true>(),
          int = detail::require_dtype<detail::element_of<View>>(),
          std::enable_if_t<detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] View to_mdspan(const DLTensor& tensor) {
  return detail::convert<View>(tensor, subbyte::packed);
}

/// The same for a managed tensor, which must be of major version 1, and whose flags are known:
/// a read-only one needs const elements, and padded elements of fewer than 8 bits a type
/// stored so.
/// @throws conversion_error also `version_unsupported`, `flags_unknown`, `read_only`
template <class View, int = detail::require_view<View, true>(),
          int = detail::require_dtype<detail::element_of<View>>(),
          std::enable_if_t<detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] View to_mdspan(const DLManagedTensorVersioned& managed) {
  detail::check_header(managed);
  detail::check_writable<View>(managed.flags);
  return detail::convert<View>(managed.dl_tensor, detail::storage_of(managed.flags));
}

/// The same for a legacy managed tensor, which carries neither version nor flags: as its
/// DLTensor.
template <class View, int = detail::require_view<View, true>(),
          int = detail::require_dtype<detail::element_of<View>>(),
          std::enable_if_t<detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] View to_mdspan(const DLManagedTensor& managed) {
  return usm_dlpack::to_mdspan<View>(managed.dl_tensor);
}

}  // namespace usm_dlpack
