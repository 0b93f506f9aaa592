// SPDX-License-Identifier: Apache-2.0
//
// Consumer: a view of an ordinary tensor, with every check that the full conversion makes, in
// one pass. It takes nothing that the full conversion refuses, and refuses nothing itself:
// what it does not take, that one decides, with its order of checks and its sentences.
#pragma once

#include <usm_dlpack/structure.hpp>
#include <usm_dlpack/to_mapping.hpp>
#include <usm_dlpack/view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Whether the strides of a layout are the extents' alone, and which.
template <class Mapping>
inline constexpr bool is_compact_layout =
    stride_rule_v<Mapping> != stride_rule::each && !has_padding<Mapping> &&
    made_from_extents<Mapping> && !made_from_strides<Mapping>;

/// Whether a view has a layout and an element type that the pass below knows.
template <class View, class Mapping = typename View::mapping_type>
inline constexpr bool may_be_ordinary =
    data_type_v<typename View::element_type>.bits >= 8 &&
    promised_alignment<accessor_of<View>> <= alignof(typename View::element_type) &&
    detail::dtype_is_known(data_type_v<typename View::element_type>) &&
    (is_compact_layout<Mapping> ||
     (made_from_strides<Mapping> && !holds_any_stride_v<Mapping>));

/// What must be equal for a view's rank and element type, compared at once.
struct rank_and_dtype {
  std::int32_t ndim;
  DLDataType dtype;
};

inline bool is_exactly(const DLTensor& tensor, const rank_and_dtype& wanted) noexcept {
  std::uint64_t bits = 0;
  std::uint64_t wanted_bits = 0;
  static_assert(sizeof(rank_and_dtype) == sizeof bits &&
                    offsetof(DLTensor, dtype) ==
                        offsetof(DLTensor, ndim) + offsetof(rank_and_dtype, dtype),
                "one comparison instead of four");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&tensor);
  std::memcpy(&bits, bytes + offsetof(DLTensor, ndim), sizeof bits);
  std::memcpy(&wanted_bits, &wanted, sizeof bits);
  return bits == wanted_bits;
}

template <class Extents, std::size_t... Ranks>
constexpr bool has_static_extents([[maybe_unused]] const std::int64_t* shape,
                                  std::index_sequence<Ranks...>) noexcept {
  return ((Extents::static_extent(Ranks) == dynamic_extent ||
           static_cast<std::uint64_t>(shape[Ranks]) == Extents::static_extent(Ranks)) &&
          ...);
}

/// The extents of a tensor that has the static ones: these are constants, and so is what is
/// computed of them. Read from a table, because g++ calls `static_extent` in what it takes for
/// rare.
template <class Extents, class Ranks = std::make_index_sequence<Extents::rank()>>
struct known_shape;
template <class Extents, std::size_t... Ranks>
struct known_shape<Extents, std::index_sequence<Ranks...>> {
  static constexpr std::array<std::size_t, sizeof...(Ranks)> fixed{
      Extents::static_extent(Ranks)...};

  const std::int64_t* extents;

  [[gnu::always_inline]] constexpr std::int64_t operator[](std::size_t r) const noexcept {
    return fixed[r] == dynamic_extent ? extents[r] : static_cast<std::int64_t>(fixed[r]);
  }
};

/// Whether the strides of a tensor are ordinary for a layout; if so, `span` becomes a number
/// of elements that no offset reaches.
template <class Mapping, commonness How, class Shape, class Ranks>
inline constexpr bool has_ordinary_strides(Shape shape, const std::int64_t* strides,
                                           Ranks ranks, std::uint64_t& span) noexcept {
  if constexpr (is_compact_layout<Mapping>) {
    return has_compact_strides<stride_rule_v<Mapping>, stride_of_one::any>(shape, strides,
                                                                           ranks, span);
  } else if constexpr (How == commonness::common) {
    return __builtin_expect(has_compact_strides<stride_rule::right, stride_of_one::compact>(
                                shape, strides, ranks, span),
                            true) != 0 ||
           has_nested_strides<stride_rule::right>(shape, strides, ranks, span);
  } else {
    return has_nested_strides<stride_rule::left>(shape, strides, ranks, span);
  }
}

/// The smallest of some integer types' largest values, as far as uint64_t has them.
template <class... Integers>
constexpr std::uint64_t most_of_all() noexcept {
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto bound = [&](std::uint64_t other) { most = other < most ? other : most; };
  (bound(sizeof(Integers) > sizeof most
             ? most
             : static_cast<std::uint64_t>(std::numeric_limits<Integers>::max())),
   ...);
  return most;
}

/// The most that extents and strides of a mapping may be.
template <class Mapping>
constexpr std::uint64_t most_of_mapping() noexcept {
  using index_type = typename Mapping::extents_type::index_type;
  if constexpr (is_compact_layout<Mapping> || Mapping::extents_type::rank() == 0) {
    return most_of_all<index_type>();
  } else {
    using stride_type = std::decay_t<decltype(std::declval<const Mapping&>().stride(0))>;
    return most_of_all<index_type, stride_type, stride_argument<Mapping>>();
  }
}

/// How many bits of an address, of a byte offset and of a number of elements leave room for
/// their sums and for a product with a size in bytes.
constexpr unsigned roomy_bits(std::size_t size) noexcept {
  unsigned bits = 62;
  for (std::size_t power = 1; power < size; power *= 2) {
    --bits;
  }
  return bits;
}

/// Whether a tensor is ordinary and the view's type holds it; if so, `first` becomes the
/// address of its first element.
template <class View, commonness How, std::size_t... Ranks>
inline bool is_ordinary(const DLTensor& tensor, std::index_sequence<Ranks...> ranks,
                        std::uintptr_t& first) noexcept {
  using element_type = typename View::element_type;
  using mapping_type = typename View::mapping_type;
  using extents_type = typename View::extents_type;
  constexpr DLDataType wanted = data_type_v<element_type>;
  constexpr std::size_t rank = sizeof...(Ranks);
  const known_shape<extents_type> shape{tensor.shape};
  std::uint64_t span = 1;
  if (!detail::is_exactly(tensor, {static_cast<std::int32_t>(rank), wanted}) ||
      (rank != 0 && may_be_null(tensor.shape, tensor.strides)) ||
      !has_static_extents<extents_type>(tensor.shape, ranks) ||
      !has_ordinary_strides<mapping_type, How>(shape, tensor.strides, ranks, span)) {
    return false;
  }
  constexpr std::uintptr_t misaligned =
      detail::alignment_mask(wanted) | (alignof(element_type) - 1);
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  first = data + static_cast<std::uintptr_t>(tensor.byte_offset);
  // Where these are small, no sum of them and no product with the element's size overflows,
  // and neither is the data null.
  const std::uint64_t together = (data - 1) | tensor.byte_offset | (span - 1);
  constexpr unsigned bits = roomy_bits(sizeof(element_type));
  constexpr std::uint64_t most = most_of_mapping<mapping_type>();
  return (most >> bits != 0 || span <= most) &&
         ((together >> bits) | (first & misaligned)) == 0;
}

/// The shape and strides of a tensor that is ordinary.
struct ordinary_numbers {
  const std::int64_t* shape;
  const std::int64_t* strides;
};

/// The same numbers, of which the compiler does not know that they were read before: it copies
/// neighbours at once then, instead of carrying each from its check to the view.
template <class Mapping>
[[gnu::always_inline]] inline ordinary_numbers reread(ordinary_numbers given) noexcept {
  if constexpr (!is_compact_layout<Mapping>) {  // two arrays; one does not run out of
                                                // registers
    asm("" : "+r"(given.shape), "+r"(given.strides));
  }
  return given;
}

/// The extents of an ordinary tensor. Where all are static, nothing is read, because some
/// mdspans compare what they are given in a loop.
template <class Extents, std::size_t... Ranks>
[[gnu::always_inline]] inline Extents ordinary_extents([[maybe_unused]] ordinary_numbers given,
                                                       std::index_sequence<Ranks...>) {
  if constexpr (((Extents::static_extent(Ranks) != dynamic_extent) && ...)) {
    return Extents();
  } else {
    return Extents(static_cast<typename Extents::index_type>(given.shape[Ranks])...);
  }
}

/// The mapping of an ordinary tensor. Made of temporaries: g++ copies what has a name through
/// memory, by loads that wait for the stores.
template <class Mapping, std::size_t... Ranks>
[[gnu::always_inline]] inline Mapping ordinary_mapping(ordinary_numbers given,
                                                       std::index_sequence<Ranks...> ranks) {
  using extents_type = typename Mapping::extents_type;
  if constexpr (is_compact_layout<Mapping>) {
    return Mapping(ordinary_extents<extents_type>(given, ranks));
  } else {
    return Mapping(ordinary_extents<extents_type>(given, ranks),
                   make_strides<Mapping>(given.strides, ranks));
  }
}

/// Whether the mapping of an ordinary tensor begins at index 0 and has its strides: one made
/// from numbers may take them for something else.
template <class Mapping, std::size_t... Ranks>
[[gnu::always_inline]] inline bool holds_strides(ordinary_numbers given,
                                                 std::index_sequence<Ranks...> ranks) {
  const auto mapping = ordinary_mapping<Mapping>(given, ranks);
  return detail::origin_index(mapping, ranks) == 0 &&
         (is_compact_layout<Mapping> ||
          (detail::is_strided(mapping) && ... &&
           (mapping.stride(Ranks) ==
            static_cast<std::decay_t<decltype(mapping.stride(Ranks))>>(
                given.strides[Ranks]))));
}

}  // namespace usm_dlpack::detail
