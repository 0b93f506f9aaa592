// SPDX-License-Identifier: Apache-2.0
//
// The wrapper can be copied as bytes, stored, and made in a constant expression; its pointers
// are made from an object that stays.
#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace static_dlpack_tensor {

using namespace usm_dlpack;

template <class Tensor, class = void>
inline constexpr bool gives_a_tensor = false;
template <class Tensor>
inline constexpr bool
    gives_a_tensor<Tensor, std::void_t<decltype(std::declval<Tensor>().get())>> = true;

template <std::size_t Rank>
constexpr bool is_a_value() {
  using tensor = dlpack_tensor<Rank>;
  return std::is_trivially_copyable_v<tensor> && std::is_standard_layout_v<tensor> &&
         std::is_default_constructible_v<tensor> && tensor::rank() == Rank &&
         gives_a_tensor<const tensor&> && !gives_a_tensor<tensor> &&
         !gives_a_tensor<const tensor>;
}
static_assert(is_a_value<0>() && is_a_value<2>() && is_a_value<64>());

constexpr DLDevice device{kDLOneAPI, 0};
float elements[24] = {};

using left_view = md::mdspan<float, md::extents<unsigned char, 2, 3, 4>, md::layout_left>;
constexpr auto left = to_dlpack_tensor(left_view(elements), device);
static_assert(std::is_same_v<decltype(left), const dlpack_tensor<3>>);
static_assert(left.shape()[0] == 2 && left.shape()[1] == 3 && left.shape()[2] == 4);
static_assert(left.strides()[0] == 1 && left.strides()[1] == 2 && left.strides()[2] == 6);

using reversed_mapping = layout_relaxed::mapping<md::extents<unsigned, 6>>;
constexpr auto reversed =
    to_dlpack_tensor(md::mdspan<float, md::extents<unsigned, 6>, layout_relaxed>(
                         elements, reversed_mapping(md::extents<unsigned, 6>(), {-1})),
                     device);
static_assert(reversed.strides()[0] == -1);

}  // namespace static_dlpack_tensor
