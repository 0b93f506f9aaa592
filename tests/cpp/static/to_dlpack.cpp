// SPDX-License-Identifier: Apache-2.0
//
// What the export of a view gives: its type, and shape and strides as constant expressions.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace {

using usm_dlpack::dlpack_tensor;
using usm_dlpack::to_dlpack_tensor;

template <class Element>
using view_1d = md::mdspan<Element, md::dextents<int, 1>>;

// --- The result
// -----------------------------------------------------------------------------------------

template <class View>
using result = decltype(to_dlpack_tensor(std::declval<View>(), std::declval<DLDevice>()));
static_assert(std::is_same_v<result<view_1d<const float>>, dlpack_tensor<1>>);
static_assert(std::is_same_v<result<md::mdspan<int, md::dextents<int, 8>>>, dlpack_tensor<8>>);
static_assert(std::is_same_v<result<md::mdspan<int, md::extents<int>>>, dlpack_tensor<0>>);

constexpr DLDevice device{kDLOneAPI, 0};
float elements[24] = {};

constexpr auto right =
    to_dlpack_tensor(md::mdspan<float, md::extents<int, 2, 3, 4>>(elements), device);
static_assert(right.shape()[0] == 2 && right.shape()[1] == 3 && right.shape()[2] == 4);
static_assert(right.strides()[0] == 12 && right.strides()[1] == 4 && right.strides()[2] == 1);

constexpr auto left = to_dlpack_tensor(
    md::mdspan<float, md::extents<std::uint8_t, 2, 3, 4>, md::layout_left>(elements), device);
static_assert(left.strides()[0] == 1 && left.strides()[1] == 2 && left.strides()[2] == 6);

using reversed_mapping = usm_dlpack::layout_relaxed::mapping<md::extents<unsigned, 6>>;
constexpr auto reversed =
    to_dlpack_tensor(md::mdspan<float, md::extents<unsigned, 6>, usm_dlpack::layout_relaxed>(
                         elements, reversed_mapping(md::extents<unsigned, 6>(), {-1})),
                     device);
static_assert(reversed.strides()[0] == -1);

}  // namespace
