// SPDX-License-Identifier: Apache-2.0
//
// The table of element types, what is not in it, and the customisation point by which users
// add their own. What is known of each dtype is compared in kokkos/oracle.cpp.
#include <usm_dlpack/core/dtype.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace static_dtype {

using namespace usm_dlpack;

/// A type of some bytes, whose dtype is declared below.
template <int Code, int Bits, int Lanes, std::size_t Bytes>
struct declared {
  std::uint8_t bytes[Bytes];
};
struct says_no_dtype {
  float value;
};
struct in_no_table {
  float value;
};
enum old_enum { old_enumerator };
enum class new_enum : int { enumerator };

}  // namespace static_dtype

template <int Code, int Bits, int Lanes, std::size_t Bytes>
struct usm_dlpack::data_type_of<static_dtype::declared<Code, Bits, Lanes, Bytes>> {
  static constexpr DLDataType value{Code, Bits, Lanes};
};
template <>
struct usm_dlpack::data_type_of<static_dtype::says_no_dtype> {
  static constexpr int value = 32;
};

namespace static_dtype {

/// Whether `data_type_v<T>` is there, as an overload set sees it.
template <class T, class = void>
inline constexpr bool visible = false;
template <class T>
inline constexpr bool visible<T, std::void_t<decltype(data_type_v<T>)>> = true;

/// `T`, with each cv qualification, has this dtype.
template <class T, int Code, int Bits, int Lanes = 1>
constexpr bool is_row() {
  constexpr DLDataType row{Code, Bits, Lanes};
  return visible<T> && has_data_type_v<const T> && same_data_type(data_type_v<T>, row) &&
         same_data_type(data_type_v<const T>, row) &&
         same_data_type(data_type_v<const volatile T>, row);
}

/// `T`, with each cv qualification, is refused where SFINAE sees it.
template <class T>
inline constexpr bool refused = !visible<T> && !visible<const T> && !has_data_type_v<T> &&
                                !has_data_type_v<const T> && !is_subbyte_padded_v<T>;

// --- The table

static_assert(is_row<bool, kDLBool, 8>());
static_assert(is_row<signed char, kDLInt, 8>() && is_row<unsigned char, kDLUInt, 8>());
static_assert(is_row<short, kDLInt, 16>() && is_row<unsigned short, kDLUInt, 16>());
static_assert(is_row<int, kDLInt, 32>() && is_row<unsigned int, kDLUInt, 32>());
static_assert(is_row<long, kDLInt, sizeof(long) * 8>());
static_assert(is_row<unsigned long, kDLUInt, sizeof(long) * 8>());
static_assert(is_row<long long, kDLInt, 64>() && is_row<unsigned long long, kDLUInt, 64>());
static_assert(is_row<float, kDLFloat, 32>() && is_row<double, kDLFloat, 64>());
static_assert(is_row<std::complex<float>, kDLComplex, 64>());
static_assert(is_row<std::complex<double>, kDLComplex, 128>());

// The types that the compiler spells with an extension.
#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 compiler_int128;
__extension__ typedef unsigned __int128 compiler_uint128;
static_assert(is_row<compiler_int128, kDLInt, 128>());
static_assert(is_row<compiler_uint128, kDLUInt, 128>());
#endif
#if defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 compiler_float16;
static_assert(is_row<compiler_float16, kDLFloat, 16>());
#endif
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 compiler_float128;
static_assert(is_row<compiler_float128, kDLFloat, 128>());
#endif

// --- What is not in it

static_assert(refused<long double>, "x87 extended precision is no type that DLPack names");
static_assert(refused<char>, "its sign is the compiler's choice");
static_assert(refused<wchar_t> && refused<char32_t> && refused<std::byte>);
#if defined(__cpp_char8_t)
static_assert(refused<char8_t>);
#endif
static_assert(refused<old_enum> && refused<new_enum> && refused<in_no_table>);
static_assert(refused<float*> && refused<void> && refused<int[3]>);
static_assert(!visible<float&>, "a reference is no element");
static_assert(refused<std::complex<long double>> && refused<std::complex<int>>);

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
static_assert(is_row<as_complex<float>, kDLComplex, 64>() && refused<as_complex<int>>);
static_assert(refused<padded_complex<float>> && refused<half_complex<float>>);

// --- The customisation point

constexpr int float4 = type_code::float4_e2m1fn;
static_assert(is_row<declared<10, 8, 1, 1>, type_code::float8_e4m3fn, 8>());
static_assert(is_row<declared<float4, 4, 2, 1>, float4, 4, 2>());
static_assert(!is_subbyte_padded_v<declared<float4, 4, 2, 1>>, "two in a byte are packed");
static_assert(!is_subbyte_padded_v<declared<16, 6, 4, 3>>, "four in three bytes are packed");
static_assert(is_subbyte_padded_v<declared<float4, 4, 1, 1>>);
static_assert(is_subbyte_padded_v<const volatile declared<float4, 4, 2, 2>>);

// A specialisation that the object contradicts is refused like a type without one.
static_assert(refused<declared<kDLFloat, 32, 3, 16>>, "lanes leave no gap");
static_assert(refused<declared<kDLFloat, 16, 1, 4>> && refused<declared<kDLFloat, 32, 2, 4>>);
static_assert(refused<declared<kDLFloat, 16, 4, 4>>, "only few bits are padded");
static_assert(refused<declared<kDLFloat, 0, 4, 4>> && refused<declared<kDLFloat, 32, 0, 4>>);
static_assert(refused<declared<float4, 4, 1, 2>> && refused<declared<float4, 4, 3, 2>>);
static_assert(refused<says_no_dtype>);

// Two dtypes are the same only if each number is, whichever is larger.
constexpr bool same(DLDataType a, DLDataType b) { return usm_dlpack::same_data_type(a, b); }
static_assert(same({2, 32, 1}, {2, 32, 1}));
static_assert(!same({2, 32, 1}, {1, 32, 1}) && !same({1, 32, 1}, {2, 32, 1}));
static_assert(!same({2, 32, 1}, {2, 16, 1}) && !same({2, 16, 1}, {2, 32, 1}));
static_assert(!same({2, 32, 2}, {2, 32, 1}) && !same({2, 32, 1}, {2, 32, 2}));

}  // namespace static_dtype
