// SPDX-License-Identifier: Apache-2.0
//
// Producer: an mdspan-style view and the device that the caller vouches for -> a DLTensor
// wrapper.
#pragma once

#include <usm_dlpack/dlpack_tensor.hpp>
#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/stride_rule.hpp>
#include <usm_dlpack/view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

template <class Index>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_offset(Index index) {
  refuse(errc::offset_out_of_range, "element_offset",
         "a first element within reach of a pointer", digits(index),
         "correct the mapping of the view");
}

/// Address of the first element of a view that has elements.
template <class View>
constexpr auto first_element(const View& view) {
  const auto index =
      detail::first_index(view.mapping(), std::make_index_sequence<View::rank()>{});
  constexpr auto highest = std::numeric_limits<std::ptrdiff_t>::max();
  constexpr auto size = static_cast<std::int64_t>(sizeof(typename View::element_type));
  if (!fits_int64(index) || static_cast<std::int64_t>(index) > highest / size ||
      static_cast<std::int64_t>(index) < -(highest / size)) {
    detail::refuse_offset(detail::widest(index));
  }
  const auto handle = view.data_handle();
  return handle == nullptr ? handle : handle + static_cast<std::ptrdiff_t>(index);
}

template <class Mapping>
constexpr void check_strided(const Mapping& mapping) {
  if (!detail::is_strided(mapping)) {
    refuse(errc::layout_not_strided, "layout", "a mapping whose is_strided() is true",
           "one that answers false", "copy the elements to a strided layout first");
  }
}

/// What an empty view's `data` becomes: null as DLPack asks of a DLTensor, or left as it is,
/// which consumers of managed tensors need (dpctl, dpnp and PyTorch refuse null).
enum class empty_data { null, kept };

/// An integer of up to 64 bits as int64_t's bits.
template <class Integer>
constexpr std::uint64_t bits_of(Integer value) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

/// 0 where an extent is beyond doubt: from 1 to 2^62. One subtraction finds the other ones,
/// which are 0, negative, or large: what may be wrong, and what makes a view empty.
template <class Integer>
constexpr std::uint64_t doubts_of_extent(Integer extent) noexcept {
  if constexpr (sizeof(Integer) > sizeof(std::int64_t)) {
    return extent > Integer{0} && fits_int64(extent) ? 0 : 1;
  } else {
    return (bits_of(extent) - 1) >> 62U;
  }
}

/// 0 where a stride is beyond doubt.
template <class Integer>
constexpr std::uint64_t doubts_of_stride(Integer stride) noexcept {
  if constexpr (always_fits_int64<Integer> || sizeof(Integer) > sizeof(std::int64_t)) {
    return fits_int64(stride) ? 0 : 1;
  } else {
    return bits_of(stride) >> 62U;
  }
}

/// Whether a number of a view may be wrong, or an extent is 0.
///
/// From rank 4 there are shorter ways than a subtraction for each. Strides that are products
/// of the extents need but one product more, which an extent of 0 makes 0, and a look at the
/// signs; a product that is too large may be 0 too: a doubt, not an answer.
template <class Mapping, class Extent, class Step, std::size_t... Ranks>
constexpr bool is_doubtful(const std::array<Extent, sizeof...(Ranks)>& extents,
                           const std::array<Step, sizeof...(Ranks)>& steps,
                           std::index_sequence<Ranks...>) noexcept {
  constexpr std::size_t rank = sizeof...(Ranks);
  constexpr stride_rule rule = stride_rule_v<Mapping>;
  if constexpr (rank < 4 || has_padding<Mapping> || sizeof(Extent) > sizeof(std::int64_t) ||
                (rule == stride_rule::each &&
                 !(always_fits_int64<Extent> && always_fits_int64<Step>))) {
    return ((doubts_of_extent(extents[Ranks]) | doubts_of_stride(steps[Ranks])) | ...) != 0;
  } else if constexpr (rule == stride_rule::each) {
    return ((extents[Ranks] <= 0) || ...);
  } else {
    constexpr std::size_t outermost = rule == stride_rule::right ? 0 : rank - 1;
    const std::uint64_t size = bits_of(steps[outermost]) * bits_of(extents[outermost]);
    std::uint64_t signs = (bits_of(extents[Ranks]) | ...);
    if constexpr (!always_fits_int64<Step>) {
      signs |= (bits_of(steps[Ranks]) | ...);
    }
    return static_cast<std::int64_t>((size - 1) | signs) < 0;
  }
}

/// Whether the type of a compact layout says that no number is in doubt and no view empty:
/// g++ keeps what it has once been told of refusals, also where it never calls it.
template <class Mapping>
constexpr bool is_beyond_doubt() noexcept {
  bool sound = false;
  if constexpr (stride_rule_v<Mapping> != stride_rule::each && !has_padding<Mapping>) {
    using extents_type = typename Mapping::extents_type;
    std::uint64_t left = std::uint64_t{1} << 62U;
    for (std::size_t r = 0; r < extents_type::rank(); ++r) {
      const std::size_t fixed = extents_type::static_extent(r);
      left = fixed == 0 ? 0 : left / fixed;  // a dynamic one is the largest of all
    }
    sound = left != 0;
  }
  return sound;
}

/// Whether a view is empty. Refuses the first number that no DLTensor holds. The same code for
/// all ranks. Not cold: g++ would make its callers for size, with a call for each number.
template <class Extent>
[[gnu::noinline]] constexpr bool settle_extents(const Extent* extents, std::size_t rank) {
  bool empty = false;
  for (std::size_t r = 0; r < rank; ++r) {
    empty = to_extent(extents[r], r) == 0 || empty;
  }
  return empty;
}
template <class Step>
[[gnu::noinline]] constexpr void settle_strides(const Step* strides, std::size_t rank) {
  for (std::size_t r = 0; r < rank; ++r) {
    static_cast<void>(to_stride(strides[r], r));
  }
}

/// What the data of a view becomes.
template <empty_data WhenEmpty, class View>
constexpr handle_of<View> data_of(const View& view, bool empty) {
  if (!empty) {
    return detail::first_element(view);
  }
  return WhenEmpty == empty_data::kept ? view.data_handle() : handle_of<View>{};
}

/// The same, out of line, for a view of which a number is in doubt.
template <empty_data WhenEmpty, class View, std::size_t... Ranks>
[[gnu::noinline]] constexpr handle_of<View> settle_doubts(
    const View& view, std::index_sequence<Ranks...> ranks) {
  using extent_type = std::decay_t<decltype(view.extent(0))>;
  const std::array<extent_type, View::rank()> extents{view.extent(Ranks)...};
  const bool empty = detail::settle_extents(extents.data(), View::rank());
  const auto strides = detail::strides_of(view.mapping(), extents, ranks);
  if constexpr (!always_fits_int64<typename decltype(strides)::value_type>) {
    detail::settle_strides(strides.data(), View::rank());
  }
  return detail::data_of<WhenEmpty>(view, empty);
}

/// A handle as `DLTensor::data`, which has no pointer to const: constness is the managed
/// tensor's flag, or the caller's care.
constexpr void* as_data(const volatile void* first) noexcept {
  return const_cast<void*>(first);
}

/// The one reader of views: checks every extent and stride, and finds the first element.
/// `result` stands in the outermost block: g++ 12 copies one of an inner block to where the
/// caller wants it. Where data is kept, `empty` becomes true of an empty view.
template <empty_data WhenEmpty, class View, std::size_t... Ranks>
constexpr dlpack_tensor<View::rank()> describe(const View& view, DLDevice device, bool& empty,
                                               std::index_sequence<Ranks...> ranks) {
  using array_type = typename dlpack_tensor<View::rank()>::array_type;
  using extent_type = std::decay_t<decltype(view.extent(0))>;
  using mapping_type = mapping_of<View>;
  const auto& mapping = view.mapping();
  detail::check_strided(mapping);
  const std::array<extent_type, View::rank()> extents{view.extent(Ranks)...};
  const auto steps = detail::strides_of(mapping, extents, ranks);
  // Stored before the branch, so that no number has to live through it.
  dlpack_tensor<View::rank()> result(nullptr, device, data_type_v<typename View::element_type>,
                                     array_type{static_cast<std::int64_t>(extents[Ranks])...},
                                     array_type{static_cast<std::int64_t>(steps[Ranks])...});
  if constexpr (is_beyond_doubt<mapping_type>()) {
    detail::put(result, device, detail::as_data(detail::first_element(view)));
  } else if (__builtin_expect(detail::is_doubtful<mapping_type>(extents, steps, ranks),
                              false) != 0) {
    detail::put(result, device,
                detail::as_data(detail::settle_doubts<WhenEmpty>(view, ranks)));
    if constexpr (WhenEmpty == empty_data::kept) {
      empty = detail::is_empty(view, ranks);
    }
  } else {
    detail::put(result, device, detail::as_data(detail::first_element(view)));
  }
  return result;
}
/// Two numbers are settled sooner than doubted.
template <empty_data WhenEmpty, class View>
constexpr dlpack_tensor<1> describe(const View& view, DLDevice device, bool& empty,
                                    std::index_sequence<0>) {
  constexpr DLDataType dtype = data_type_v<typename View::element_type>;
  detail::check_strided(view.mapping());
  const std::int64_t extent = to_extent(view.extent(0), 0);
  const std::int64_t stride = to_stride(view.mapping().stride(0), 0);
  empty = extent == 0;
  void* const first = detail::as_data(detail::data_of<WhenEmpty>(view, empty));
  return {first, device, dtype, {extent}, {stride}};
}
template <empty_data, class View>
constexpr dlpack_tensor<0> describe(const View& view, DLDevice device, bool&,
                                    std::index_sequence<>) {
  void* const first = detail::as_data(detail::first_element(view));
  return {first, device, data_type_v<typename View::element_type>, {}, {}};
}
template <empty_data WhenEmpty, class View>
constexpr dlpack_tensor<View::rank()> describe(const View& view, DLDevice device) {
  bool empty = false;
  return detail::describe<WhenEmpty>(view, device, empty,
                                     std::make_index_sequence<View::rank()>{});
}

}  // namespace detail

/// Describes a view as a DLTensor of the given device, without a SYCL call or a heap
/// allocation.
///
/// `shape[r]` is `extent(r)`, `strides[r]` is `mapping().stride(r)` in elements, `data` is the
/// element whose indices are all zero (null if an extent is 0), `byte_offset` is 0; const and
/// volatile are cast away. A null handle is null data, also of elements. The wrapper owns
/// shape and strides; the data must outlive every use of the result. Source: DLPack
/// `DLTensor`; semantics of `cuda::to_dlpack_tensor`.
/// @param device taken as it is: the caller vouches that the memory belongs to it
/// @throws conversion_error `layout_not_strided`, `extent_out_of_range`,
///         `stride_out_of_range`, `offset_out_of_range`
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] constexpr auto to_dlpack_tensor(const View& view, DLDevice device)
    -> dlpack_tensor<View::rank()> {
  return detail::describe<detail::empty_data::null>(view, device);
}

}  // namespace usm_dlpack
