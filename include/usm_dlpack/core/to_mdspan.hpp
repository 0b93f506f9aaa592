// SPDX-License-Identifier: Apache-2.0
//
// Consumer: checks a DLTensor and makes a view of it, of the mdspan type that the caller
// names.
//
// Queries no device: `validate` proves where the memory is. sycl/to_mdspan.hpp makes views
// whose type names the USM kind.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/mapping.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class View>
void check_element_type(const DLTensor& tensor, subbyte storage) {
  constexpr DLDataType dtype = data_type_v<typename View::element_type>;
  constexpr bool padded = is_subbyte_padded_v<typename View::element_type>;
  if (!usm_dlpack::same_data_type(tensor.dtype, dtype)) {
    const std::string name = detail::name_of(dtype);
    std::string remedy = "convert the array to " + name;
    if (detail::is_of_numpy_or_ml_dtypes(dtype) &&
        detail::is_of_numpy_or_ml_dtypes(tensor.dtype)) {
      remedy += ", in Python by usm_dlpack.from_dlpack(usm_dlpack.from_dlpack(x).numpy()";
      remedy += ".astype(" +
                (detail::is_of_numpy(dtype) ? "\"" + name + "\"" : "ml_dtypes." + name) +
                "), device=x)";
    }
    refuse(errc::dtype_mismatch, "dtype",
           usm_dlpack::to_string(dtype) + " for the view's element type",
           usm_dlpack::to_string(tensor.dtype),
           remedy + ", or in C++ use a view of its element type");
  }
  if (dtype.bits < 8 && padded != (storage == subbyte::padded)) {
    refuse(errc::dtype_mismatch, "flags",
           padded ? "padded elements for the view's element type"
                  : "packed elements for the view's element type",
           padded ? "packed ones" : "padded ones",
           std::string(padded ? "have the producer give each element a byte"
                              : "have the producer pack the elements") +
               ", or in C++ use a view of an element type stored so");
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
    refuse(errc::shape_mismatch, "ndim", digits(rank) + " for the view's rank",
           digits(tensor.ndim), "reshape the array, or in C++ use a view of its rank");
  }
}

template <class Extents, std::size_t... Ranks>
constexpr bool has_static_extents([[maybe_unused]] const std::int64_t* shape,
                                  std::index_sequence<Ranks...>) noexcept {
  return ((Extents::static_extent(Ranks) == dynamic_extent ||
           Extents::static_extent(Ranks) == static_cast<std::size_t>(shape[Ranks])) &&
          ...);
}

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
    refuse_alignment(
        "data + byte_offset aligned to " + digits(alignment) + " bytes, as the element type",
        structure.first % alignment);
  }
}

/// @pre `ndim` is the rank
template <std::size_t Rank>
strided_shape<Rank> read_strides(const DLTensor& tensor) {
  strided_shape<Rank> array;
  if constexpr (Rank != 0) {  // g++ 12 warns of a copy of nothing to null
    detail::copy_strides(tensor, array.shape.data(), array.strides.data());
  }
  return array;
}

/// Checks that the index type holds every extent, and the elements from lowest to highest.
template <class Index, std::size_t Rank>
void check_index_type(const strided_shape<Rank>& array, bool empty) {
  for (std::size_t r = 0; r < Rank; ++r) {
    if (!fits<Index>(array.shape[r])) {
      refuse_index_type<Index>(indexed("shape", r), array.shape[r]);
    }
  }
  const element_span span = span_of(array);
  const std::int64_t size = empty ? 0 : span.highest - span.lowest + 1;
  if (!fits<Index>(size)) {
    refuse_index_type<Index>("shape", size);
  }
}

/// Checks that the index type holds the index of every element: an unsigned type wraps below
/// 0, and a layout may begin above 0.
template <class Index, std::size_t Rank>
void check_indices(std::int64_t origin, const strided_shape<Rank>& array) {
  const element_span span = span_of(array);
  for (const std::int64_t offset : {span.lowest, span.highest}) {
    std::int64_t index = 0;
    if (add_overflows(origin, offset, index) || !fits<Index>(index)) {
      refuse_index_type<Index>("strides", index);
    }
  }
}

/// Makes the view of a well-formed tensor of its rank.
/// @param structure the result of `check_structure(tensor)`
template <class View>
View make_view(const DLTensor& tensor, const tensor_structure& structure, subbyte storage) {
  using mapping_type = typename View::mapping_type;
  using extents_type = typename View::extents_type;
  using index_type = typename extents_type::index_type;
  constexpr std::size_t rank = extents_type::rank();
  constexpr std::make_index_sequence<rank> ranks{};
  detail::check_element_type<View>(tensor, storage);
  detail::check_static_extents<extents_type>(tensor);
  check_alignment(structure, alignof(typename View::element_type));
  const strided_shape<rank> array = detail::read_strides<rank>(tensor);
  check_index_type<index_type>(array, structure.empty);
  const mapping_type mapping = to_mapping<mapping_type>(
      make_extents<extents_type>(array.shape.data(), ranks), array, structure.empty);
  auto* first = reinterpret_cast<typename View::data_handle_type>(structure.first);
  if (structure.empty) {
    return View(first, mapping);
  }
  const auto origin = static_cast<std::ptrdiff_t>(detail::origin_index(mapping, ranks));
  detail::check_indices<index_type>(origin, array);
  first -= origin;
  constexpr std::size_t promised = promised_alignment<accessor_of<View>>;
  if (const auto past = reinterpret_cast<std::uintptr_t>(first) % promised; past != 0) {
    refuse_alignment(
        "elements aligned to " + digits(promised) + " bytes, as the view's accessor says",
        past);
  }
  return View(first, mapping);
}

template <class View>
[[gnu::noinline]] View convert_in_full(const DLTensor& tensor, subbyte storage) {
  detail::check_ndim(tensor);
  detail::check_rank<View>(tensor);  // before `shape` is read, which has `ndim` entries
  return detail::make_view<View>(tensor, usm_dlpack::check_structure(tensor, storage),
                                 storage);
}

/// Whether `accept_common_case` handles a view type: elements of whole bytes and a dtype of
/// DLPack, no promised alignment, a mapping made from strides or compact.
template <class View, class Mapping = typename View::mapping_type>
inline constexpr bool has_common_case =
    data_type_v<typename View::element_type>.bits >= 8 &&
    detail::dtype_is_known(data_type_v<typename View::element_type>) &&
    promised_alignment<accessor_of<View>> <= alignof(typename View::element_type) &&
    (made_from_strides<Mapping> ? !accepts_any_stride_v<Mapping>
                                : made_from_extents<Mapping> && padding_of<Mapping> == 0);

/// An upper bound of every extent, stride and index if the layout has the strides; 0 if not,
/// or if a quick check cannot tell.
template <class Mapping>
constexpr std::int64_t reach_in_layout(const DLTensor& tensor) noexcept {
  constexpr std::size_t rank = Mapping::extents_type::rank();
  if constexpr (made_from_strides<Mapping>) {
    const std::int64_t reach = detail::nested_reach(tensor.shape, tensor.strides, rank);
    return fits<stride_type<Mapping>>(reach) ? reach : 0;
  } else {
    return detail::compact_size(tensor.shape, tensor.strides, rank, is_left<Mapping>);
  }
}

/// The fast path: accepts compact tensors, or nested dimensions in a layout made from strides,
/// in aligned memory, as most are. For all others the caller runs `convert_in_full`.
/// @returns the address of the first element, or 0
template <class View>
std::uintptr_t accept_common_case(const DLTensor& tensor) noexcept {
  using element_type = typename View::element_type;
  using mapping_type = typename View::mapping_type;
  constexpr DLDataType dtype = data_type_v<element_type>;
  constexpr std::size_t rank = View::rank();
  if (tensor.ndim != static_cast<std::int32_t>(rank) || tensor.data == nullptr ||
      !usm_dlpack::same_data_type(tensor.dtype, dtype) ||
      (rank != 0 && (tensor.shape == nullptr || tensor.strides == nullptr)) ||
      !has_static_extents<typename View::extents_type>(tensor.shape,
                                                       std::make_index_sequence<rank>{})) {
    return 0;
  }
  const std::int64_t reach = reach_in_layout<mapping_type>(tensor);
  std::uintptr_t first = 0;
  std::int64_t nbytes = 0;
  std::uintptr_t end = 0;
  const bool accepted =
      reach != 0 && fits<typename View::index_type>(reach) &&
      !__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data),
                              tensor.byte_offset, &first) &&
      !multiply_overflows(reach, sizeof(element_type), nbytes) &&
      !__builtin_add_overflow(first, nbytes, &end) &&
      (first & (detail::alignment_mask(dtype) | (alignof(element_type) - 1))) == 0;
  return accepted ? first : 0;
}

template <class Mapping, std::size_t... Ranks>
Mapping mapping_in_layout(const DLTensor& tensor, std::index_sequence<Ranks...> ranks) {
  const auto extents = make_extents<typename Mapping::extents_type>(tensor.shape, ranks);
  if constexpr (made_from_strides<Mapping>) {
    return Mapping(extents, make_strides<Mapping>(tensor.strides, ranks));
  } else {
    return Mapping(extents);
  }
}

/// Whether a mapping has the strides: the constructor of one made from strides may ignore
/// them.
template <class Mapping, std::size_t... Ranks>
bool has_strides([[maybe_unused]] const Mapping& mapping,
                 [[maybe_unused]] const std::int64_t* strides, std::index_sequence<Ranks...>) {
  if constexpr (made_from_strides<Mapping>) {
    return (true && ... &&
            (static_cast<std::int64_t>(mapping.stride(Ranks)) == strides[Ranks]));
  } else {
    return true;
  }
}

template <class View>
View convert(const DLTensor& tensor, subbyte storage) {
  static_assert(std::is_default_constructible_v<accessor_of<View>>,
                "accessor: expected one that is made of nothing, found another; construct the "
                "view by hand after validate");
  if constexpr (has_common_case<View>) {
    using mapping_type = typename View::mapping_type;
    constexpr std::make_index_sequence<View::rank()> ranks{};
    if (const std::uintptr_t first = detail::accept_common_case<View>(tensor); first != 0) {
      const auto mapping = mapping_in_layout<mapping_type>(tensor, ranks);
      if (detail::origin_index(mapping, ranks) == 0 &&
          has_strides(mapping, tensor.strides, ranks)) {
        return View(reinterpret_cast<typename View::data_handle_type>(first), mapping);
      }
    }
  }
  return detail::convert_in_full<View>(tensor, storage);
}

USM_DLPACK_COLD inline void refuse_read_only_view(const std::string& first = {}) {
  refuse(
      errc::read_only, "flags", "writable memory for a view of mutable elements",
      "read-only memory",
      first +
          "copy the array, in Python by usm_dlpack.from_dlpack(x, copy=True), or in C++ use "
          "a view of const elements");
}

template <class View>
void check_writable(std::uint64_t flags) {
  if (!has_const_elements<View> && (flags & flag::read_only) != 0) {
    refuse_read_only_view();
  }
}

}  // namespace detail

/// Makes a checked view of a tensor. Ignores the device. Checks, in this order
/// (docs/checks.md): `ndim` is the rank, the tensor is well formed (`check_structure`), the
/// dtype is the element type's (cv ignored, lanes included), static extents match, the first
/// element is aligned to the element type, the index type holds every extent, the span and
/// every stride, the layout holds the strides.
///
/// The view's strides may differ from the tensor's in dimensions of extent 1, and if the view
/// is empty. Zero and negative strides need `layout_relaxed`, or another layout with
/// `accepts_any_stride_v`. A bare DLTensor carries no flags: it counts as writable and packed.
/// @tparam View an mdspan type whose layout is right, left, a padded one of both, stride,
///         relaxed, or a user's, made from extents and an array of strides
/// @returns a view that borrows the memory; shape and strides are copied into its mapping
/// @throws conversion_error of the first broken rule
template <class View, class = detail::required_view<View>,
          std::enable_if_t<detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] View to_mdspan(const DLTensor& tensor) {
  return detail::convert<View>(tensor, subbyte::packed);
}

/// Makes a checked view of a managed tensor. Its major version must be 1 and its flags known.
/// Read-only memory needs const elements; padded elements need a padded element type.
/// @throws conversion_error also `version_unsupported`, `read_only`
template <class View, class = detail::required_view<View>,
          std::enable_if_t<detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] View to_mdspan(const DLManagedTensorVersioned& managed) {
  detail::check_header(managed);
  detail::check_writable<View>(managed.flags);
  return detail::convert<View>(managed.dl_tensor, detail::storage_of(managed.flags));
}

/// Makes a checked view of a legacy managed tensor, which carries neither version nor flags.
template <class View, class = detail::required_view<View>,
          std::enable_if_t<detail::has_no_usm_kind<View>, int> = 0>
[[nodiscard]] View to_mdspan(const DLManagedTensor& managed) {
  return usm_dlpack::to_mdspan<View>(managed.dl_tensor);
}

/// Refuses pointers at compile time.
template <class View, class Tensor>
View to_mdspan(const Tensor*) = delete;  // pass *tensor
template <class View, class Tensor, class Deleter>
View to_mdspan(const std::unique_ptr<Tensor, Deleter>&) = delete;  // pass *tensor

/// Refuses at compile time a type that is not a view.
template <class NoMdspan, class Tensor, class... Requirements,
          std::enable_if_t<!detail::is_view<NoMdspan>, int> = 0>
void to_mdspan(const Tensor&, const Requirements&...) = delete;  // name the type of an mdspan

}  // namespace usm_dlpack
