// SPDX-License-Identifier: Apache-2.0
//
// Strides of dimensions of extent 1 become one past all others, whatever they were; those
// of tensors without elements become compact ones, of rows or else of columns, or all 1.
#include <usm_dlpack/core/mapping.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using usm_dlpack::detail::strided_shape;

template <class Stride, std::size_t Rank>
constexpr std::array<std::int64_t, Rank> closed(strided_shape<Rank> given) {
  usm_dlpack::detail::normalize_unit_strides<Stride>(given);
  return given.strides;
}

// The stride of an extent of 1 is not looked at.
static_assert(closed<int, 2>({{1, 3}, {100, 1}})[0] == 3);
static_assert(closed<int, 2>({{1, 3}, {100, 1}})[1] == 1);

// The farthest end counts, wherever it stands.
static_assert(closed<int, 3>({{1, 3, 2}, {7, 2, 1}})[0] == 6);
static_assert(closed<int, 3>({{2, 3, 1}, {1, 2, 7}})[2] == 6);
static_assert(closed<int, 3>({{1, 1, 1}, {7, 8, 9}})[1] == 1);

// Where the type of the strides does not hold it, 1 does.
static_assert(closed<std::int8_t, 2>({{1, 64}, {5, 2}})[0] == 1);
static_assert(closed<std::int16_t, 2>({{1, 64}, {5, 2}})[0] == 128);

template <std::size_t Rank>
using strides_of = std::array<std::int64_t, Rank>;

/// Whether an empty shape gets the strides that are expected of it, and the answer.
template <class Stride, std::size_t Rank>
constexpr bool closes(strides_of<Rank> shape, bool holds, strides_of<Rank> expected) {
  strided_shape<Rank> given{shape, {}};
  bool same = usm_dlpack::detail::normalize_empty_strides<Stride>(given) == holds;
  for (std::size_t r = 0; r < Rank; ++r) {
    same = same && given.strides[r] == expected[r];
  }
  return same;
}

// Of rows where their type holds them, else of columns.
static_assert(closes<std::int8_t, 3>({5, 0, 3}, true, {3, 3, 1}));
static_assert(closes<std::int8_t, 3>({0, 100, 100}, true, {1, 1, 100}));

// The dimensions before the empty one reach 127, which is one element more than int8_t counts.
static_assert(closes<std::int8_t, 3>({2, 64, 0}, false, {1, 1, 1}));
static_assert(closes<std::int16_t, 3>({2, 64, 0}, true, {64, 1, 1}));

// Their reach, its count of elements, or a stride is more than int64_t holds.
constexpr std::int64_t quarter = std::int64_t{1} << 62;
static_assert(closes<std::int64_t, 3>({quarter, 4, 0}, false, {1, 1, 1}));
static_assert(closes<std::int64_t, 3>({2, quarter, 0}, false, {1, 1, 1}));
static_assert(closes<std::int64_t, 3>({0, quarter, 4}, true, {1, 1, quarter}));

}  // namespace
