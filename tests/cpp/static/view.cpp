// SPDX-License-Identifier: Apache-2.0
//
// Which types count as views, decided where SFINAE sees it: by their element type, accessor
// and layout.
#include <odd_views.hpp>
#include <padded_float4.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {
struct packed_float4x2 {
  std::uint8_t bits;
};
struct false_float4 {
  std::uint16_t bits;
};
}  // namespace

template <>
struct usm_dlpack::data_type_of<packed_float4x2> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 2};
};
template <>
struct usm_dlpack::data_type_of<false_float4> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 1};
};

namespace {

using usm_dlpack::dlpack_tensor;
using usm_dlpack::is_plain_accessor_v;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack_test::padded_float4;

template <class View, class = void>
inline constexpr bool exports = false;
template <class View>
inline constexpr bool exports<View, std::void_t<decltype(to_dlpack_tensor(
                                        std::declval<View>(), std::declval<DLDevice>()))>> =
    true;

template <class Element, class Layout = md::layout_right,
          class Accessor = md::default_accessor<Element>>
using view_1d = md::mdspan<Element, md::dextents<int, 1>, Layout, Accessor>;

// --- Element types
// --------------------------------------------------------------------------------------

static_assert(exports<view_1d<float>> && exports<view_1d<const float>>);
static_assert(exports<view_1d<volatile float>> && exports<view_1d<const volatile float>>);
static_assert(exports<view_1d<bool>> && exports<view_1d<std::complex<double>>>);
static_assert(exports<view_1d<usm_dlpack::detail::float16>>);
static_assert(exports<view_1d<usm_dlpack::detail::float128>>);
static_assert(exports<view_1d<usm_dlpack::detail::int128>>);
static_assert(exports<view_1d<packed_float4x2>> && exports<view_1d<const packed_float4x2>>);

static_assert(!exports<view_1d<long double>>);
static_assert(!exports<view_1d<std::complex<int>>>);
static_assert(!exports<view_1d<char>> && !exports<view_1d<wchar_t>>);
static_assert(!exports<view_1d<char16_t>> && !exports<view_1d<char32_t>>);
#if defined(__cpp_char8_t)
static_assert(!exports<view_1d<char8_t>>);
#endif
static_assert(!exports<view_1d<std::byte>>);
static_assert(!exports<view_1d<float*>> && !exports<view_1d<const float* const>>);
static_assert(!exports<view_1d<std::string>>);
static_assert(!exports<view_1d<false_float4>>, "its specialisation is not true of it");
static_assert(!exports<view_1d<padded_float4>>, "a bare DLTensor cannot say padded");
static_assert(!exports<view_1d<const padded_float4>>);

// --- What is a view
// -------------------------------------------------------------------------------------

static_assert(exports<view_1d<float>&> && exports<const view_1d<float>&>);
static_assert(exports<md::mdspan<float, md::extents<int>>>, "rank 0");
static_assert(exports<odd::hand_written_view<float, int, 3>>);
static_assert(exports<odd::hand_written_view<float, int, 0>>);
static_assert(!exports<int> && !exports<float*> && !exports<std::vector<float>>);
static_assert(!exports<std::unique_ptr<float>> && !exports<DLTensor> && !exports<const char*>);
static_assert(!exports<view_1d<float>*>);
static_assert(!exports<dlpack_tensor<1>>, "a wrapper is a result");

// --- Accessors
// ------------------------------------------------------------------------------------------

template <template <class> class Accessor>
inline constexpr bool exports_through =
    exports<view_1d<float, md::layout_right, Accessor<float>>> &&
    exports<view_1d<const float, md::layout_right, Accessor<const float>>>;

static_assert(exports_through<odd::plain_accessor>);
static_assert(exports_through<odd::vetted_accessor>, "its author opted in");
static_assert(exports_through<odd::restrict_accessor>, "its author opted in");
static_assert(!exports_through<odd::doubling_accessor>);
static_assert(!exports_through<odd::indexed_accessor>);
static_assert(!exports_through<odd::bytes_accessor>);

static_assert(is_plain_accessor_v<md::default_accessor<float>>);
static_assert(is_plain_accessor_v<odd::plain_accessor<const float>>);
static_assert(!is_plain_accessor_v<odd::doubling_accessor<float>>);
static_assert(!is_plain_accessor_v<odd::bytes_accessor<float>>);

// An alignment is promised by a constant of the type; the name alone says nothing.
struct variable_of_that_name : md::default_accessor<float> {
  static std::size_t byte_alignment;
};
std::size_t variable_of_that_name::byte_alignment = 64;
struct function_of_that_name : md::default_accessor<float> {
  static constexpr std::size_t byte_alignment() { return 64; }
};
struct enumerator_of_that_name : md::default_accessor<float> {
  enum : int { byte_alignment = 64 };
};
template <class Number, Number Value>
struct number_of_that_name : md::default_accessor<float> {
  static constexpr Number byte_alignment = Value;
};
template <class Accessor>
inline constexpr std::size_t promised = usm_dlpack::detail::promised_alignment<Accessor>;
static_assert(promised<md::default_accessor<float>> == 1);
static_assert(promised<odd::aligned_accessor<float>> == 64);
static_assert(promised<enumerator_of_that_name> == 64);
static_assert(promised<number_of_that_name<short, 32>> == 32);
static_assert(promised<variable_of_that_name> == 1);
static_assert(promised<function_of_that_name> == 1);
static_assert(promised<number_of_that_name<int, -64>> == 1);
static_assert(promised<number_of_that_name<int, 0>> == 1);
static_assert(promised<number_of_that_name<int, 48>> == 1, "no alignment");

// --- Layouts
// --------------------------------------------------------------------------------------------

static_assert(exports<view_1d<float, md::layout_left>>);
static_assert(exports<view_1d<float, md::layout_stride>>);
static_assert(exports<view_1d<float, usm_dlpack::layout_relaxed>>);
static_assert(exports<view_1d<float, odd::layout_anchored>>);
static_assert(exports<view_1d<float, odd::layout_perhaps_swapped>>, "decided at run time");
static_assert(!exports<view_1d<float, odd::layout_swapped>>);
static_assert(exports<md::mdspan<float, md::extents<int>, odd::layout_swapped>>,
              "one element needs no strides");

}  // namespace
