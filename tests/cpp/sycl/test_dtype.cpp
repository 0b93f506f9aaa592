// SPDX-License-Identifier: Apache-2.0
//
// sycl/dtype.hpp: which of SYCL's element types have a dtype, and which. All of it is known at
// compile time.
#include <float4_types.hpp>

#include <usm_dlpack/sycl/dtype.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>

namespace test_dtype {

using sycl::marray;
using sycl::vec;
using sycl::ext::oneapi::bfloat16;
using usm_dlpack::has_data_type_v;
using usm_dlpack_test::packed_float4;
using usm_dlpack_test::padded_float4;

template <class T>
constexpr bool is_dtype(std::uint8_t code, std::uint8_t bits, std::uint16_t lanes) {
  return usm_dlpack::same_data_type(usm_dlpack::data_type_v<T>, {code, bits, lanes});
}

static_assert(is_dtype<sycl::half>(kDLFloat, 16, 1));
static_assert(is_dtype<bfloat16>(kDLBfloat, 16, 1));
static_assert(is_dtype<std::complex<sycl::half>>(kDLComplex, 32, 1));
static_assert(!has_data_type_v<std::complex<bfloat16>>);

static_assert(is_dtype<const sycl::half>(kDLFloat, 16, 1));
static_assert(is_dtype<const volatile vec<float, 4>>(kDLFloat, 32, 4));
static_assert(is_dtype<const marray<int, 3>>(kDLInt, 32, 3));

static_assert(is_dtype<vec<std::int8_t, 1>>(kDLInt, 8, 1));
static_assert(is_dtype<vec<std::uint64_t, 2>>(kDLUInt, 64, 2));
static_assert(is_dtype<vec<sycl::half, 4>>(kDLFloat, 16, 4));
static_assert(is_dtype<vec<bfloat16, 8>>(kDLBfloat, 16, 8));
static_assert(is_dtype<vec<bool, 16>>(kDLBool, 8, 16));

// A vec of three is padded; std::byte has no dtype.
static_assert(sizeof(vec<float, 3>) == 4 * sizeof(float));
static_assert(!has_data_type_v<vec<float, 3>> && !has_data_type_v<vec<std::int8_t, 3>>);
static_assert(!has_data_type_v<vec<std::byte, 4>>);

// An marray has any count of lanes, up to 16 bits of them.
static_assert(is_dtype<marray<float, 1>>(kDLFloat, 32, 1));
static_assert(is_dtype<marray<bool, 9>>(kDLBool, 8, 9));
static_assert(is_dtype<marray<std::complex<sycl::half>, 3>>(kDLComplex, 32, 3));
static_assert(is_dtype<marray<float, 65535>>(kDLFloat, 32, 65535));
static_assert(!has_data_type_v<marray<float, 65536>>);

// Lanes of what has no dtype, of lanes, and of padded elements have none.
static_assert(!has_data_type_v<marray<char, 4>>);
static_assert(!has_data_type_v<marray<long double, 2>>);
static_assert(!has_data_type_v<marray<std::complex<bfloat16>, 2>>);
static_assert(!has_data_type_v<marray<vec<float, 2>, 2>>);
static_assert(!has_data_type_v<marray<marray<float, 3>, 2>>);
static_assert(has_data_type_v<packed_float4> && !has_data_type_v<marray<packed_float4, 2>>);
static_assert(usm_dlpack::is_subbyte_padded_v<padded_float4>);
static_assert(!has_data_type_v<marray<padded_float4, 2>>);

// A user who did not specialise data_type_of is not to be told to correct a specialisation.
using usm_dlpack::detail::has_row;
static_assert(has_row<vec<float, 4>> && has_row<marray<float, 3>>);
static_assert(!has_row<vec<float, 3>> && !has_row<vec<std::byte, 4>>);
static_assert(!has_row<marray<float, 70000>> && !has_row<marray<vec<float, 2>, 2>>);

}  // namespace test_dtype
