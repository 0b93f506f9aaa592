// SPDX-License-Identifier: Apache-2.0
//
// The wrapper can be copied as bytes, stored and returned; its pointers are made from an
// object that stays.
#include <usm_dlpack/core/dlpack_tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace {

using usm_dlpack::dlpack_tensor;

template <class Tensor, class = void>
inline constexpr bool gives_a_tensor = false;
template <class Tensor>
inline constexpr bool
    gives_a_tensor<Tensor, std::void_t<decltype(std::declval<Tensor>().get())>> = true;

template <std::size_t Rank>
constexpr bool is_a_value() {
  using tensor = dlpack_tensor<Rank>;
  return std::is_trivially_copyable_v<tensor> && std::is_trivially_destructible_v<tensor> &&
         std::is_standard_layout_v<tensor> &&
         std::is_nothrow_default_constructible_v<tensor> &&
         std::is_nothrow_copy_assignable_v<tensor> && tensor::rank() == Rank &&
         gives_a_tensor<tensor&> && gives_a_tensor<const tensor&> && !gives_a_tensor<tensor> &&
         !gives_a_tensor<const tensor>;
}
static_assert(is_a_value<0>());
static_assert(is_a_value<1>());
static_assert(is_a_value<2>());
static_assert(is_a_value<8>());
static_assert(is_a_value<64>());

static_assert(noexcept(std::declval<const dlpack_tensor<2>&>().get()));
static_assert(std::is_same_v<decltype(std::declval<dlpack_tensor<2>&>().get()), DLTensor>);

// Nothing but what a DLTensor needs beside its pointers.
static_assert(sizeof(dlpack_tensor<3>) <= 6 * sizeof(std::int64_t) + sizeof(void*) +
                                              sizeof(DLDevice) + 2 * sizeof(DLDataType));

constexpr dlpack_tensor<2> made{nullptr, {kDLOneAPI, 1}, {kDLInt, 8, 1}, {4, 5}, {5, 1}};
static_assert(made.shape()[0] == 4 && made.shape()[1] == 5);
static_assert(made.strides()[0] == 5 && made.strides()[1] == 1);

constexpr dlpack_tensor<1> empty{};
static_assert(empty.shape()[0] == 0 && empty.strides()[0] == 0);

}  // namespace
