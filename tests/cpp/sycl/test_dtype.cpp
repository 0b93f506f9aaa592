// SPDX-License-Identifier: Apache-2.0
//
// sycl/dtype.hpp: which of SYCL's element types have a dtype, and which. All of it is known at
// compile time; the cases give the facts names.
#include <usm_dlpack/sycl/dtype.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <cstddef>
#include <cstdint>

namespace test_dtype {

/// Two float4 in a byte: packed, with lanes of its own.
struct float4_pair {
  std::uint8_t bits;
};
/// One float4 in a byte: padded.
struct lone_float4 {
  std::uint8_t bits;
};
struct without_dtype {
  float value;
};

}  // namespace test_dtype

template <>
struct usm_dlpack::data_type_of<test_dtype::float4_pair> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 2};
};
template <>
struct usm_dlpack::data_type_of<test_dtype::lone_float4> {
  static constexpr DLDataType value{type_code::float4_e2m1fn, 4, 1};
};

namespace test_dtype {

using sycl::marray;
using sycl::vec;
using sycl::ext::oneapi::bfloat16;
using usm_dlpack::has_data_type_v;

template <class T>
constexpr bool is_dtype(std::uint8_t code, std::uint8_t bits, std::uint16_t lanes) {
  return usm_dlpack::same_data_type(usm_dlpack::data_type_v<T>, {code, bits, lanes});
}

template <class T, int Lanes>
constexpr bool is_vec_of(std::uint8_t code, std::uint8_t bits) {
  return is_dtype<vec<T, Lanes>>(code, bits, Lanes);
}

template <class T>
constexpr bool every_packed_vec_is(std::uint8_t code, std::uint8_t bits) {
  return is_vec_of<T, 1>(code, bits) && is_vec_of<T, 2>(code, bits) &&
         is_vec_of<T, 4>(code, bits) && is_vec_of<T, 8>(code, bits) &&
         is_vec_of<T, 16>(code, bits);
}

template <class T, std::size_t Lanes>
constexpr bool is_marray_of(std::uint8_t code, std::uint8_t bits) {
  return is_dtype<marray<T, Lanes>>(code, bits, static_cast<std::uint16_t>(Lanes));
}

TEST(SyclDtype, HalfAndBfloat16AreDifferentKindsOf16Bits) {
  static_assert(is_dtype<sycl::half>(kDLFloat, 16, 1));
  static_assert(is_dtype<bfloat16>(kDLBfloat, 16, 1));
}

TEST(SyclDtype, ComplexOfHalfHas32Bits) {
  static_assert(is_dtype<std::complex<sycl::half>>(kDLComplex, 32, 1));
}

TEST(SyclDtype, ComplexOfBfloat16HasNone) {
  static_assert(!has_data_type_v<std::complex<bfloat16>>);
}

TEST(SyclDtype, ConstAndVolatileAreIgnored) {
  static_assert(is_dtype<const sycl::half>(kDLFloat, 16, 1));
  static_assert(is_dtype<volatile bfloat16>(kDLBfloat, 16, 1));
  static_assert(is_dtype<const volatile vec<float, 4>>(kDLFloat, 32, 4));
  static_assert(is_dtype<const marray<int, 3>>(kDLInt, 32, 3));
}

TEST(SyclDtype, VecIsLanes) {
  static_assert(every_packed_vec_is<std::int8_t>(kDLInt, 8));
  static_assert(every_packed_vec_is<std::uint8_t>(kDLUInt, 8));
  static_assert(every_packed_vec_is<std::int16_t>(kDLInt, 16));
  static_assert(every_packed_vec_is<std::uint16_t>(kDLUInt, 16));
  static_assert(every_packed_vec_is<std::int32_t>(kDLInt, 32));
  static_assert(every_packed_vec_is<std::uint32_t>(kDLUInt, 32));
  static_assert(every_packed_vec_is<std::int64_t>(kDLInt, 64));
  static_assert(every_packed_vec_is<std::uint64_t>(kDLUInt, 64));
  static_assert(every_packed_vec_is<sycl::half>(kDLFloat, 16));
  static_assert(every_packed_vec_is<bfloat16>(kDLBfloat, 16));
  static_assert(every_packed_vec_is<float>(kDLFloat, 32));
  static_assert(every_packed_vec_is<double>(kDLFloat, 64));
  static_assert(every_packed_vec_is<bool>(kDLBool, 8));
}

TEST(SyclDtype, VecOfThreeHasNoneBecauseItIsPadded) {
  static_assert(sizeof(vec<float, 3>) == 4 * sizeof(float));
  static_assert(!has_data_type_v<vec<float, 3>>);
  static_assert(!has_data_type_v<vec<std::int8_t, 3>>);
  static_assert(!has_data_type_v<vec<double, 3>>);
}

// A user who did not specialise data_type_of is not to be told to correct a specialisation.
TEST(SyclDtype, WhatHasNoneHasNoFalseRowEither) {
  using usm_dlpack::detail::has_row;
  static_assert(has_row<vec<float, 4>> && has_row<marray<float, 3>>);
  static_assert(!has_row<vec<float, 3>>);
  static_assert(!has_row<vec<std::byte, 4>>);
  static_assert(!has_row<marray<float, 70000>>);
  static_assert(!has_row<marray<vec<float, 2>, 2>>);
}

TEST(SyclDtype, VecOfBytesHasNoneBecauseByteHasNone) {
  static_assert(!has_data_type_v<vec<std::byte, 4>>);
}

TEST(SyclDtype, MarrayIsLanesForEveryCount) {
  static_assert(is_marray_of<float, 1>(kDLFloat, 32));
  static_assert(is_marray_of<float, 2>(kDLFloat, 32));
  static_assert(is_marray_of<float, 3>(kDLFloat, 32));
  static_assert(is_marray_of<float, 5>(kDLFloat, 32));
  static_assert(is_marray_of<sycl::half, 7>(kDLFloat, 16));
  static_assert(is_marray_of<bfloat16, 3>(kDLBfloat, 16));
  static_assert(is_marray_of<bool, 9>(kDLBool, 8));
  static_assert(is_marray_of<double, 1000>(kDLFloat, 64));
}

TEST(SyclDtype, MarrayOfComplexIsLanesOfComplex) {
  static_assert(is_marray_of<std::complex<float>, 2>(kDLComplex, 64));
  static_assert(is_marray_of<std::complex<sycl::half>, 3>(kDLComplex, 32));
}

TEST(SyclDtype, LanesEndWhere16BitsEnd) {
  static_assert(is_marray_of<float, 65535>(kDLFloat, 32));
  static_assert(!has_data_type_v<marray<float, 65536>>);
  static_assert(!has_data_type_v<marray<float, 70000>>);
}

TEST(SyclDtype, MarrayOfATypeWithoutDtypeHasNone) {
  static_assert(!has_data_type_v<marray<without_dtype, 2>>);
  static_assert(!has_data_type_v<marray<char, 4>>);
  static_assert(!has_data_type_v<marray<long double, 2>>);
  static_assert(!has_data_type_v<marray<std::complex<bfloat16>, 2>>);
}

TEST(SyclDtype, LanesOfLanesHaveNone) {
  static_assert(!has_data_type_v<marray<vec<float, 2>, 2>>);
  static_assert(!has_data_type_v<marray<marray<float, 3>, 2>>);
  static_assert(has_data_type_v<float4_pair> && !has_data_type_v<marray<float4_pair, 2>>);
}

TEST(SyclDtype, LanesOfPaddedElementsHaveNone) {
  static_assert(usm_dlpack::is_subbyte_padded_v<lone_float4>);
  static_assert(!has_data_type_v<marray<lone_float4, 2>>);
}

}  // namespace test_dtype
