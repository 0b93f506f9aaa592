// SPDX-License-Identifier: Apache-2.0
//
// The table of element types, what is not in it, and the customisation point by which users
// add their own.
#include <usm_dlpack/core/dtype.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

using usm_dlpack::data_type_v;
using usm_dlpack::has_data_type_v;
using usm_dlpack::is_subbyte_padded_v;
using usm_dlpack::same_data_type;
namespace type_code = usm_dlpack::type_code;

namespace {

/// A user's type of eight bits.
struct float8 {
  std::uint8_t bits;
};
/// Two elements of four bits in one byte.
struct float4x2 {
  std::uint8_t bits;
};
/// One element of four bits in a byte of its own.
struct float4 {
  std::uint8_t bits;
};
/// Two elements of four bits, each in a byte of its own.
struct float4x2_padded {
  std::uint8_t bits[2];
};
/// Four elements of six bits in three bytes.
struct float6x4 {
  std::uint8_t bits[3];
};
/// Three floats and, as many vector types have it, room for a fourth.
struct alignas(16) float32x3 {
  float x, y, z;
};

struct says_too_few_bits {
  float value;
};
struct says_too_many_lanes {
  float value;
};
struct says_padded_bytes {
  float value;
};
struct says_no_bits {
  float value;
};
struct says_no_lanes {
  float value;
};
struct says_no_dtype {
  float value;
};
struct in_no_table {
  float value;
};

enum old_enum { old_enumerator };
enum class new_enum : int { enumerator };

}  // namespace

namespace usm_dlpack {
template <>
struct data_type_of<float8> {
  static constexpr DLDataType value{type_code::float8_e4m3fn, 8, 1};
};
template <>
struct data_type_of<float4x2> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 2};
};
template <>
struct data_type_of<float4> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 1};
};
template <>
struct data_type_of<float4x2_padded> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 2};
};
template <>
struct data_type_of<float6x4> {
  static constexpr DLDataType value{type_code::float6_e3m2fn, 6, 4};
};
template <>
struct data_type_of<float32x3> {
  static constexpr DLDataType value{kDLFloat, 32, 3};
};
template <>
struct data_type_of<says_too_few_bits> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
template <>
struct data_type_of<says_too_many_lanes> {
  static constexpr DLDataType value{kDLFloat, 32, 2};
};
template <>
struct data_type_of<says_padded_bytes> {
  static constexpr DLDataType value{kDLFloat, 16, sizeof(float)};
};
template <>
struct data_type_of<says_no_bits> {
  static constexpr DLDataType value{kDLFloat, 0, 4};
};
template <>
struct data_type_of<says_no_lanes> {
  static constexpr DLDataType value{kDLFloat, 32, 0};
};
template <>
struct data_type_of<says_no_dtype> {
  static constexpr int value = 32;
};
}  // namespace usm_dlpack

namespace {

/// Whether `data_type_v<T>` is there, as an overload set sees it.
template <class T, class = void>
inline constexpr bool visible = false;
template <class T>
inline constexpr bool visible<T, std::void_t<decltype(data_type_v<T>)>> = true;

/// `T`, with each cv qualification, has this dtype.
template <class T, int Code, int Bits, int Lanes = 1>
constexpr bool is_row() {
  constexpr DLDataType row{static_cast<std::uint8_t>(Code), static_cast<std::uint8_t>(Bits),
                           static_cast<std::uint16_t>(Lanes)};
  return visible<T> && visible<const T> && visible<volatile T> && visible<const volatile T> &&
         has_data_type_v<const T> && same_data_type(data_type_v<T>, row) &&
         same_data_type(data_type_v<const T>, row) &&
         same_data_type(data_type_v<volatile T>, row) &&
         same_data_type(data_type_v<const volatile T>, row);
}

/// `T`, with each cv qualification, is refused where SFINAE sees it.
template <class T>
inline constexpr bool refused =
    !visible<T> && !visible<const T> && !visible<volatile T> && !has_data_type_v<T> &&
    !has_data_type_v<const T> && !is_subbyte_padded_v<T>;

// --- The table
// ------------------------------------------------------------------------------------------

static_assert(is_row<bool, kDLBool, 8>());
static_assert(is_row<signed char, kDLInt, 8>());
static_assert(is_row<short, kDLInt, 16>());
static_assert(is_row<int, kDLInt, 32>());
static_assert(is_row<long, kDLInt, sizeof(long) * 8>());
static_assert(is_row<long long, kDLInt, 64>());
static_assert(is_row<unsigned char, kDLUInt, 8>());
static_assert(is_row<unsigned short, kDLUInt, 16>());
static_assert(is_row<unsigned int, kDLUInt, 32>());
static_assert(is_row<unsigned long, kDLUInt, sizeof(long) * 8>());
static_assert(is_row<unsigned long long, kDLUInt, 64>());
static_assert(is_row<usm_dlpack::detail::int128, kDLInt, 128>());
static_assert(is_row<usm_dlpack::detail::uint128, kDLUInt, 128>());
static_assert(is_row<usm_dlpack::detail::float16, kDLFloat, 16>());
static_assert(is_row<float, kDLFloat, 32>());
static_assert(is_row<double, kDLFloat, 64>());
static_assert(is_row<usm_dlpack::detail::float128, kDLFloat, 128>());
static_assert(is_row<std::complex<float>, kDLComplex, 64>());
static_assert(is_row<std::complex<double>, kDLComplex, 128>());

// The types that the compiler spells with an extension are meant, not stand-ins.
static_assert(sizeof(usm_dlpack::detail::int128) == 16);
static_assert(sizeof(usm_dlpack::detail::uint128) == 16);
static_assert(sizeof(usm_dlpack::detail::float16) == 2);
static_assert(sizeof(usm_dlpack::detail::float128) == 16);
#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 compiler_int128;
static_assert(is_row<compiler_int128, kDLInt, 128>());
#endif
#if defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 compiler_float16;
static_assert(is_row<compiler_float16, kDLFloat, 16>());
#endif
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 compiler_float128;
static_assert(is_row<compiler_float128, kDLFloat, 128>());
#endif

// The names of <cstdint> and <cstddef> are among them.
static_assert(is_row<std::int8_t, kDLInt, 8>() && is_row<std::uint8_t, kDLUInt, 8>());
static_assert(is_row<std::int64_t, kDLInt, 64>() && is_row<std::uint64_t, kDLUInt, 64>());
static_assert(is_row<std::size_t, kDLUInt, sizeof(std::size_t) * 8>());
static_assert(is_row<std::ptrdiff_t, kDLInt, sizeof(std::ptrdiff_t) * 8>());

// --- What is not in it
// ----------------------------------------------------------------------------------

static_assert(refused<long double>,
              "x87 extended precision is no IEEE type that DLPack names");
static_assert(refused<std::complex<long double>>);
static_assert(refused<std::complex<int>>);
static_assert(refused<std::complex<bool>>);
static_assert(refused<std::complex<float8>>);
// What has the interface and the size of std::complex is one.
template <class Real, std::size_t More = 0>
struct pair_of_parts {
  using value_type = Real;
  Real parts[2 + More];
  const Real& real() const;
  Real imag() const;
};
template <class Real>
struct as_complex : pair_of_parts<Real> {};
template <class Real>
struct padded_complex : pair_of_parts<Real, 1> {};
template <class Real>
struct half_complex {
  using value_type = Real;
  Real parts[2];
  Real real() const;
};
template <class Real>
struct declared_alone;
static_assert(is_row<as_complex<float>, kDLComplex, 64>());
static_assert(is_row<as_complex<double>, kDLComplex, 128>());
static_assert(refused<as_complex<long double>> && refused<as_complex<int>>);
static_assert(refused<padded_complex<float>> && refused<half_complex<float>>);
static_assert(refused<declared_alone<float>>);
static_assert(refused<char>, "its sign is the compiler's choice");
static_assert(refused<wchar_t>);
static_assert(refused<char16_t>);
static_assert(refused<char32_t>);
#if defined(__cpp_char8_t)
static_assert(refused<char8_t>);
#endif
static_assert(refused<std::byte>);
static_assert(refused<old_enum>);
static_assert(refused<new_enum>);
static_assert(refused<in_no_table>);
static_assert(refused<float*>);
static_assert(refused<const float*>);
static_assert(refused<void>);
static_assert(refused<std::nullptr_t>);
static_assert(refused<int[3]>);
static_assert(refused<std::unique_ptr<int>>);
static_assert(!visible<float&> && !visible<const float&>, "a reference is no element");
static_assert(!visible<int()>);

// --- The customisation point
// ----------------------------------------------------------------------------

static_assert(is_row<float8, type_code::float8_e4m3fn, 8>());
static_assert(!is_subbyte_padded_v<float8>);

static_assert(is_row<float4x2, type_code::float4_e2m1fn, 4, 2>());
static_assert(!is_subbyte_padded_v<float4x2>, "two in a byte are packed");
static_assert(is_row<float6x4, type_code::float6_e3m2fn, 6, 4>());
static_assert(!is_subbyte_padded_v<float6x4>, "four in three bytes are packed");

static_assert(is_row<float4, type_code::float4_e2m1fn, 4, 1>());
static_assert(is_subbyte_padded_v<float4> && is_subbyte_padded_v<const volatile float4>);
static_assert(is_row<float4x2_padded, type_code::float4_e2m1fn, 4, 2>());
static_assert(is_subbyte_padded_v<float4x2_padded>);

// A specialisation that the object contradicts is refused like a type without one.
static_assert(refused<float32x3>, "lanes leave no gap");
static_assert(refused<says_too_few_bits>);
static_assert(refused<says_too_many_lanes>);
static_assert(refused<says_padded_bytes>, "only elements of fewer than 8 bits are padded");
static_assert(refused<says_no_bits>);
static_assert(refused<says_no_lanes>);
static_assert(refused<says_no_dtype>);

// --- Codes and widths
// -----------------------------------------------------------------------------------

static_assert(same_data_type({kDLInt, 32, 1}, {kDLInt, 32, 1}));
static_assert(!same_data_type({kDLInt, 32, 1}, {kDLUInt, 32, 1}));
static_assert(!same_data_type({kDLInt, 32, 1}, {kDLInt, 16, 1}));
static_assert(!same_data_type({kDLInt, 32, 1}, {kDLInt, 32, 2}));

// Two dtypes are the same only if each number is, whichever is larger.
constexpr bool same(DLDataType a, DLDataType b) { return usm_dlpack::same_data_type(a, b); }
static_assert(same({2, 32, 1}, {2, 32, 1}));
static_assert(!same({2, 32, 1}, {1, 32, 1}) && !same({1, 32, 1}, {2, 32, 1}));
static_assert(!same({2, 32, 1}, {2, 16, 1}) && !same({2, 16, 1}, {2, 32, 1}));
static_assert(!same({2, 32, 2}, {2, 32, 1}) && !same({2, 32, 1}, {2, 32, 2}));

}  // namespace

// Padded elements are one to a byte, no fewer and no more.
namespace {
struct pads_too_few {
  unsigned char bytes[2];
};
struct pads_too_many {
  unsigned char bytes[2];
};
}  // namespace

namespace usm_dlpack {
template <>
struct data_type_of<pads_too_few> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 1};
};
template <>
struct data_type_of<pads_too_many> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 3};
};
}  // namespace usm_dlpack

static_assert(!has_data_type_v<pads_too_few> && !has_data_type_v<pads_too_many>);
