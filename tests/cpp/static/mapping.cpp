// SPDX-License-Identifier: Apache-2.0
//
// The strides that replace those which DLPack leaves open: one beyond all others in dimensions
// of extent 1; compact ones, of rows or else of columns, for tensors without elements.
#include <usm_dlpack/core/mapping.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using usm_dlpack::detail::strided_shape;
using numbers = std::array<std::int64_t, 3>;

constexpr bool same(const numbers& a, const numbers& b) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

template <class Stride>
constexpr bool unit_strides_become(numbers shape, numbers strides, numbers expected) {
  strided_shape<3> given{shape, strides};
  usm_dlpack::detail::normalize_unit_strides<Stride>(given);
  return same(given.strides, expected);
}
static_assert(unit_strides_become<int>({1, 3, 2}, {7, 2, 1}, {6, 2, 1}));
static_assert(unit_strides_become<int>({2, 3, 1}, {1, 2, -7}, {1, 2, 6}));
static_assert(unit_strides_become<int>({1, 1, 1}, {7, 8, 9}, {1, 1, 1}));
// Where the type of the strides does not hold it, 1 does.
static_assert(unit_strides_become<std::int8_t>({1, 64, 1}, {5, 2, 5}, {1, 2, 1}));
static_assert(unit_strides_become<std::int16_t>({1, 64, 1}, {5, 2, 5}, {128, 2, 128}));

template <class Stride>
constexpr bool empty_strides_become(numbers shape, bool held, numbers expected) {
  strided_shape<3> given{shape, {}};
  return usm_dlpack::detail::normalize_empty_strides<Stride>(given) == held &&
         same(given.strides, expected);
}
static_assert(empty_strides_become<std::int8_t>({5, 0, 3}, true, {3, 3, 1}));
static_assert(empty_strides_become<std::int8_t>({0, 0, 127}, true, {127, 127, 1}));
static_assert(empty_strides_become<std::int8_t>({0, 100, 100}, true, {1, 1, 100}));
static_assert(empty_strides_become<std::int8_t>({100, 0, 2}, true, {1, 100, 100}));
// The dimensions before the empty one reach 127, which is one element more than int8_t counts.
static_assert(empty_strides_become<std::int8_t>({2, 64, 0}, false, {1, 1, 1}));
static_assert(empty_strides_become<std::int16_t>({2, 64, 0}, true, {64, 1, 1}));
// Their reach, its count of elements, or a stride is more than int64_t holds.
constexpr std::int64_t quarter = std::int64_t{1} << 62;
static_assert(empty_strides_become<std::int64_t>({quarter, 4, 0}, false, {1, 1, 1}));
static_assert(empty_strides_become<std::int64_t>({2, quarter, 0}, false, {1, 1, 1}));
static_assert(empty_strides_become<std::int64_t>({0, quarter, 4}, true, {1, 1, quarter}));

}  // namespace
