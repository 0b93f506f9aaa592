// SPDX-License-Identifier: Apache-2.0
//
// Strides of dimensions of extent 1 become a step past all others, whatever they were.
#include <usm_dlpack/open_strides.hpp>

#include <array>
#include <cstdint>

namespace {

using usm_dlpack::detail::strided_shape;

template <class Stride, std::size_t Rank>
constexpr std::array<std::int64_t, Rank> closed(strided_shape<Rank> given) {
  usm_dlpack::detail::close_open_strides<Stride>(given);
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

}  // namespace
