// SPDX-License-Identifier: Apache-2.0
//
// The version of this library, the required dlpack.h, constants that an older dlpack.h lacks,
// and compiler differences. Only here and in sycl/config.hpp are `#if` and `#define` allowed.
#pragma once

#define USM_DLPACK_VERSION_MAJOR 0
#define USM_DLPACK_VERSION_MINOR 2
#define USM_DLPACK_VERSION_PATCH 0

#if !defined(__GNUC__) && !defined(__clang__)
#error compiler: expected g++ or clang (icpx is one), found another; \
build with one of these
#endif
#if __cplusplus < 201703L
#error compiler flags: expected C++17 or newer, found an older standard; add -std=c++17
#endif
// Device code may be compiled without exceptions.
#if !defined(__cpp_exceptions) && !defined(__SYCL_DEVICE_ONLY__)
#error compiler flags: expected exceptions, found -fno-exceptions; \
remove that flag, because every refusal is an exception
#endif

// The include guard of a dlpack.h that was included before, under any name, excludes others.
#if !defined(DLPACK_DLPACK_H_) && !defined(DLPACK_MAJOR_VERSION)
#if !__has_include(<dlpack/dlpack.h>)
#error dlpack/dlpack.h: expected version 1.0 or newer, found no such header; \
add its folder to the include path
#else
#include <dlpack/dlpack.h>
#if !defined(DLPACK_MAJOR_VERSION)
#error dlpack/dlpack.h: expected version 1.0 or newer, found one older than 1.0; \
point the include path to a newer one
#endif
#endif
#elif !defined(DLPACK_MAJOR_VERSION)
#error dlpack.h: expected version 1.0 or newer, found an older one that is included before; \
include usm_dlpack first, or point the include path to a newer one
#endif
#if defined(DLPACK_MAJOR_VERSION) && DLPACK_MAJOR_VERSION != 1
#error dlpack/dlpack.h: expected major version 1, found another; \
point the include path to a 1.x one
#endif

#include <cstdint>

// Marks a result that points into the object, so that clang warns if it dangles.
#if defined(__clang__)
#define USM_DLPACK_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define USM_DLPACK_LIFETIMEBOUND
#endif

// Marks a function that always throws, so that it is not inlined into its callers.
#define USM_DLPACK_COLD [[noreturn, gnu::cold, gnu::noinline]]

// Defines the overload of `require` that refuses a broken rule at compile time. It is
// SFINAE-friendly. clang prints the sentence of the attribute; for g++ `unavailable` would be
// a hard error, so it prints the argument of `throw_if`.
#if defined(__clang__)
#define USM_DLPACK_UNAVAILABLE(sentence) __attribute__((unavailable(sentence)))
#else
#define USM_DLPACK_UNAVAILABLE(sentence)
#endif
#define USM_DLPACK_REFUSED_TYPE(rule, sentence)                          \
  template <type_rule Broken, std::enable_if_t<Broken == rule, int> = 0> \
  USM_DLPACK_UNAVAILABLE(sentence)                                       \
  constexpr int require() {                                              \
    return throw_if(Broken == rule, sentence);                           \
  }

namespace usm_dlpack {
namespace detail {

#if defined(__SYCL_DEVICE_ONLY__)
inline constexpr bool is_device_code = true;
#else
inline constexpr bool is_device_code = false;
#endif

/// Stands for an element type that the compiler lacks; never defined.
template <int>
struct absent_type;

#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
#else
using int128 = absent_type<0>;
using uint128 = absent_type<1>;
#endif

#if defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 float16;
#else
using float16 = absent_type<2>;
#endif

// SPIR-V devices have no 128-bit floating point, and their compiler rejects the name.
#if defined(__SIZEOF_FLOAT128__) && !defined(__SYCL_DEVICE_ONLY__)
__extension__ typedef __float128 float128;
#else
using float128 = absent_type<3>;
#endif

}  // namespace detail

/// Values of `DLDataType::code` that dlpack.h 1.0 lacks, so that 1.0 is enough to build.
/// Source: `DLDataTypeCode`, dlpack.h 1.3.
namespace type_code {
inline constexpr std::uint8_t float8_e3m4 = 7;
inline constexpr std::uint8_t float8_e4m3 = 8;
inline constexpr std::uint8_t float8_e4m3b11fnuz = 9;
inline constexpr std::uint8_t float8_e4m3fn = 10;
inline constexpr std::uint8_t float8_e4m3fnuz = 11;
inline constexpr std::uint8_t float8_e5m2 = 12;
inline constexpr std::uint8_t float8_e5m2fnuz = 13;
inline constexpr std::uint8_t float8_e8m0fnu = 14;
inline constexpr std::uint8_t float6_e2m3fn = 15;
inline constexpr std::uint8_t float6_e3m2fn = 16;
inline constexpr std::uint8_t float4_e2m1fn = 17;
}  // namespace type_code

/// Bits of `DLManagedTensorVersioned::flags`. Source: `DLPACK_FLAG_BITMASK_*`, dlpack.h 1.3.
namespace flag {
/// The consumer must not write through `data`.
inline constexpr std::uint64_t read_only = 1;
/// The producer made a copy for this consumer.
inline constexpr std::uint64_t is_copied = 2;
/// Elements of fewer than 8 bits take a byte each; without this bit they are packed.
inline constexpr std::uint64_t is_subbyte_type_padded = 4;
/// Every bit that DLPack 1.3 defines.
inline constexpr std::uint64_t all = read_only | is_copied | is_subbyte_type_padded;
}  // namespace flag

}  // namespace usm_dlpack
