// SPDX-License-Identifier: Apache-2.0
//
// The owning forms are no bigger than a pointer, and take any owner and any view that can be
// exported.
#include <odd_views.hpp>
#include <padded_float4.hpp>

#include <usm_dlpack/core/managed.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace {

using usm_dlpack::legacy_managed_tensor;
using usm_dlpack::managed_tensor;
using usm_dlpack_test::padded_float4;

static_assert(sizeof(managed_tensor) == sizeof(void*));
static_assert(sizeof(legacy_managed_tensor) == sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<managed_tensor>);
static_assert(!std::is_copy_constructible_v<managed_tensor>, "a tensor is owned once");
static_assert(std::is_nothrow_default_constructible_v<managed_tensor>);

template <class View, class = void>
inline constexpr bool manages = false;
template <class View>
inline constexpr bool manages<
    View, std::void_t<decltype(usm_dlpack::to_managed_tensor(
              std::declval<View>(), DLDevice{}, std::declval<std::shared_ptr<int>>()))>> =
    true;

template <class Element>
using view_1d = md::mdspan<Element, md::dextents<int, 1>>;

static_assert(manages<view_1d<float>> && manages<view_1d<const float>>);
static_assert(manages<view_1d<padded_float4>>, "flags say what a bare DLTensor cannot");
static_assert(!manages<view_1d<long double>> && !manages<int> && !manages<float*>);
static_assert(!manages<md::mdspan<float, md::dextents<int, 1>, odd::layout_swapped>>);
static_assert(!manages<md::mdspan<float, md::dextents<int, 1>, md::layout_right,
                                  odd::doubling_accessor<float>>>);

// A DLTensor is described already: its overload takes flags, and no device.
static_assert(std::is_same_v<decltype(usm_dlpack::to_managed_tensor(
                                 std::declval<const DLTensor&>(), std::unique_ptr<int>())),
                             managed_tensor>);
static_assert(std::is_same_v<decltype(usm_dlpack::to_legacy_managed_tensor(
                                 std::declval<const DLTensor&>(), std::unique_ptr<int>(), 0U)),
                             legacy_managed_tensor>);

// The arrays stand right behind the block, whose size is a whole number of theirs.
template <class Managed, class Owner>
constexpr bool arrays_follow() {
  using block_type = usm_dlpack::detail::managed_block<Managed, Owner>;
  return block_type::arrays_at() == sizeof(block_type);
}
static_assert(arrays_follow<DLManagedTensorVersioned, char>());
static_assert(arrays_follow<DLManagedTensorVersioned, std::unique_ptr<int>>());
static_assert(arrays_follow<DLManagedTensor, char>());

}  // namespace
