// SPDX-License-Identifier: Apache-2.0
//
// Which types count as views, decided where SFINAE sees it: by their element type, accessor
// and layout; for a bare tensor, a managed one, and back.
#include <float4_types.hpp>
#include <odd_views.hpp>

#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

// Its author may vouch for the values, but not for a handle that points to no elements.
template <>
inline constexpr bool usm_dlpack::is_plain_accessor_v<odd::bytes_accessor<float>> = true;

namespace static_view {

using usm_dlpack_test::padded_float4;

template <class View>
using exported =
    decltype(usm_dlpack::to_dlpack_tensor(std::declval<View>(), std::declval<DLDevice>()));
template <class View>
using managed = decltype(usm_dlpack::to_managed_tensor(std::declval<View>(), DLDevice{},
                                                       std::declval<std::unique_ptr<int>>()));
template <class View>
using legacy = decltype(usm_dlpack::to_legacy_managed_tensor(
    std::declval<View>(), DLDevice{}, std::declval<std::unique_ptr<int>>()));
template <class View>
using from_bare = decltype(usm_dlpack::to_mdspan<View>(std::declval<const DLTensor&>()));
template <class View>
using from_managed =
    decltype(usm_dlpack::to_mdspan<View>(std::declval<const DLManagedTensorVersioned&>()));

template <template <class> class Act, class View, class = void>
inline constexpr bool can = false;
template <template <class> class Act, class View>
inline constexpr bool can<Act, View, std::void_t<Act<View>>> = true;

template <class View>
constexpr bool both_ways() {
  return can<exported, View> && can<managed, View> && can<legacy, View> &&
         std::is_same_v<from_bare<View>, View> && std::is_same_v<from_managed<View>, View>;
}
template <class View>
constexpr bool no_way() {
  return !can<exported, View> && !can<managed, View> && !can<legacy, View> &&
         !can<from_bare, View> && !can<from_managed, View>;
}

template <class Element, class Layout = md::layout_right,
          class Accessor = md::default_accessor<Element>>
using view_1d = md::mdspan<Element, md::dextents<int, 1>, Layout, Accessor>;
template <class Accessor>
using view_by = view_1d<typename Accessor::element_type, md::layout_right, Accessor>;

static_assert(both_ways<view_1d<float>>() && both_ways<view_1d<const volatile float>>());
static_assert(no_way<view_1d<long double>>() && no_way<float*>());

// Only flags say that elements are padded.
static_assert(!can<exported, view_1d<padded_float4>> && can<managed, view_1d<padded_float4>> &&
              can<from_managed, view_1d<padded_float4>>);

// --- Accessors

static_assert(both_ways<view_by<odd::plain_accessor<float>>>());
static_assert(can<exported, view_by<odd::vetted_accessor<float>>>, "its author opted in");
static_assert(both_ways<view_by<odd::restrict_accessor<float>>>(), "its author opted in");
static_assert(no_way<view_by<odd::bytes_accessor<float>>>());

// An alignment is promised by a constant of the type; the name alone says nothing.
struct variable_of_that_name : md::default_accessor<float> {
  static std::size_t byte_alignment;
};
std::size_t variable_of_that_name::byte_alignment = 64;
struct state_of_that_name : md::default_accessor<float> {
  std::size_t byte_alignment = 64;
};
struct function_of_that_name : md::default_accessor<float> {
  static constexpr std::size_t byte_alignment() { return 64; }
};
template <int Value>
struct number_of_that_name : md::default_accessor<float> {
  static constexpr int byte_alignment = Value;
};
template <class Accessor>
inline constexpr std::size_t promised = usm_dlpack::detail::promised_alignment<Accessor>;
static_assert(promised<md::default_accessor<float>> == 1);
static_assert(promised<odd::aligned_accessor<float>> == 64);
static_assert(promised<number_of_that_name<32>> == 32);
static_assert(promised<variable_of_that_name> == 1 && promised<state_of_that_name> == 1);
static_assert(promised<function_of_that_name> == 1);
static_assert(promised<number_of_that_name<-64>> == 1 &&
              promised<number_of_that_name<48>> == 1);

// --- Layouts

static_assert(can<exported, view_1d<float, odd::layout_anchored>>);
static_assert(no_way<view_1d<float, odd::layout_swapped>>());
static_assert(can<exported, md::mdspan<float, md::extents<int>, odd::layout_swapped>>,
              "one element needs no strides");

}  // namespace static_view
