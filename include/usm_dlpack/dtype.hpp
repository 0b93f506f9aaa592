// SPDX-License-Identifier: Apache-2.0
//
// The one table of C++ element types and their `DLDataType`, the customisation point by which
// users add their own.
#pragma once

#include <usm_dlpack/dtype_name.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace usm_dlpack {

/// The dtype of an element type, as a member `static constexpr DLDataType value`.
///
/// Specialise it for a type of your own (cv-qualified types are looked up without their
/// qualifiers). The primary template has no `value`: a type without a specialisation is
/// refused.
///
/// A specialisation must be true of the object in memory: `bits * lanes == 8 * sizeof(T)`,
/// which for elements of fewer than 8 bits says *packed* (two float4 in a byte: bits 4, lanes
/// 2). A type that gives each such element a byte of its own (`sizeof(T) == lanes`) is
/// *padded*; only a managed tensor can say so (`flag::is_subbyte_type_padded`).
template <class T>
struct data_type_of;

namespace detail {

template <int Code, std::size_t Bits, std::size_t Lanes = 1>
struct dtype_row {
  static constexpr DLDataType value{static_cast<std::uint8_t>(Code),
                                    static_cast<std::uint8_t>(Bits),
                                    static_cast<std::uint16_t>(Lanes)};
};

/// std::complex, known by its interface and size, as are the like of other libraries
/// (cuda::std::complex, Kokkos::complex): `<complex>` takes longer to compile than all that is
/// here.
template <class T, class = void>
struct complex_row {};
template <template <class> class Complex, class Real>
struct complex_row<
    Complex<Real>,
    std::enable_if_t<
        (std::is_same_v<Real, float> || std::is_same_v<Real, double>) &&
        std::is_same_v<typename Complex<Real>::value_type, Real> &&
        std::is_same_v<std::decay_t<decltype(std::declval<const Complex<Real>&>().real())>,
                       Real> &&
        std::is_same_v<std::decay_t<decltype(std::declval<const Complex<Real>&>().imag())>,
                       Real> &&
        sizeof(Complex<Real>) == 2 * sizeof(Real)>>
    : dtype_row<kDLComplex, 16 * sizeof(Real)> {};

template <class T, int Code>
using whole_row = dtype_row<Code, sizeof(T) * 8>;

}  // namespace detail

template <class T>
struct data_type_of : detail::complex_row<T> {};

// char, wchar_t, char8_t, std::byte and enums are no numbers; x87 long double has no code.
template <>
struct data_type_of<bool> : detail::whole_row<bool, kDLBool> {};
template <>
struct data_type_of<signed char> : detail::whole_row<signed char, kDLInt> {};
template <>
struct data_type_of<short> : detail::whole_row<short, kDLInt> {};
template <>
struct data_type_of<int> : detail::whole_row<int, kDLInt> {};
template <>
struct data_type_of<long> : detail::whole_row<long, kDLInt> {};
template <>
struct data_type_of<long long> : detail::whole_row<long long, kDLInt> {};
template <>
struct data_type_of<detail::int128> : detail::dtype_row<kDLInt, 128> {};
template <>
struct data_type_of<unsigned char> : detail::whole_row<unsigned char, kDLUInt> {};
template <>
struct data_type_of<unsigned short> : detail::whole_row<unsigned short, kDLUInt> {};
template <>
struct data_type_of<unsigned int> : detail::whole_row<unsigned int, kDLUInt> {};
template <>
struct data_type_of<unsigned long> : detail::whole_row<unsigned long, kDLUInt> {};
template <>
struct data_type_of<unsigned long long> : detail::whole_row<unsigned long long, kDLUInt> {};
template <>
struct data_type_of<detail::uint128> : detail::dtype_row<kDLUInt, 128> {};
template <>
struct data_type_of<detail::float16> : detail::dtype_row<kDLFloat, 16> {};
template <>
struct data_type_of<float> : detail::whole_row<float, kDLFloat> {};
template <>
struct data_type_of<double> : detail::whole_row<double, kDLFloat> {};
template <>
struct data_type_of<detail::float128> : detail::dtype_row<kDLFloat, 128> {};

namespace detail {

template <class T, class = void>
inline constexpr bool is_specialised = false;
template <class T>
inline constexpr bool is_specialised<T, std::void_t<decltype(data_type_of<T>::value)>> = true;

/// Whether there is a value, and compile time can read it.
template <class T, class = void>
inline constexpr bool has_row = false;
template <class T>
inline constexpr bool
    has_row<T, std::void_t<std::integral_constant<int, data_type_of<T>::value.bits>>> =
        std::is_same_v<std::remove_cv_t<decltype(data_type_of<T>::value)>, DLDataType>;

template <class T>
constexpr bool row_is_packed() {
  constexpr DLDataType row = data_type_of<T>::value;
  return row.bits > 0 && row.lanes > 0 && std::size_t{row.bits} * row.lanes == 8 * sizeof(T);
}

template <class T>
constexpr bool row_is_padded() {
  constexpr DLDataType row = data_type_of<T>::value;
  return row.bits > 0 && row.bits < 8 && row.lanes == sizeof(T);
}

template <class T>
constexpr bool row_is_true() {
  if constexpr (has_row<T>) {
    return row_is_packed<T>() || row_is_padded<T>();
  } else {
    return false;
  }
}

template <class T>
constexpr bool row_is_false() {
  if constexpr (has_row<T>) {
    return !row_is_packed<T>() && !row_is_padded<T>();
  } else {
    return false;
  }
}

// The default template argument of what needs a dtype. A refusal is an error in the immediate
// context, so SFINAE sees it; g++ prints the throw, clang the attribute.
template <class T, std::enable_if_t<row_is_true<T>(), int> = 0>
constexpr int require_dtype() noexcept {
  return 0;
}
template <class T, std::enable_if_t<!is_specialised<T>, int> = 0>
USM_DLPACK_UNAVAILABLE(
    "element_type: expected a type with a DLPack dtype, found one without; "
    "use a type of the dtype table or specialise data_type_of for yours")
constexpr int require_dtype() {
  return throw "element_type: expected a type with a DLPack dtype, found one without; "
               "use a type of the dtype table or specialise data_type_of for yours", 0;
}
template <class T, std::enable_if_t<is_specialised<T> && !has_row<T>, int> = 0>
USM_DLPACK_UNAVAILABLE(
    "data_type_of: expected a static constexpr DLDataType value, found another "
    "value; correct the specialisation")
constexpr int require_dtype() {
  return throw "data_type_of: expected a static constexpr DLDataType value, found another "
               "value; correct the specialisation", 0;
}
template <class T, std::enable_if_t<row_is_false<T>(), int> = 0>
USM_DLPACK_UNAVAILABLE(
    "data_type_of: expected bits * lanes == 8 * sizeof(T), found a value that "
    "its object does not have; correct the specialisation")
constexpr int require_dtype() {
  return throw "data_type_of: expected bits * lanes == 8 * sizeof(T), found a value that "
               "its object does not have; correct the specialisation", 0;
}

}  // namespace detail

/// Whether `T`, cv ignored, has a dtype that is true of its object.
template <class T>
inline constexpr bool has_data_type_v = detail::row_is_true<std::remove_cv_t<T>>();

/// The dtype of `T`, cv ignored. Ill-formed, visibly to SFINAE, where `has_data_type_v` is
/// false.
template <class T, int = detail::require_dtype<std::remove_cv_t<T>>()>
inline constexpr DLDataType data_type_v = data_type_of<std::remove_cv_t<T>>::value;

namespace detail {

template <class T>
constexpr bool subbyte_padded() {
  if constexpr (has_data_type_v<T>) {
    return !row_is_packed<std::remove_cv_t<T>>();
  } else {
    return false;
  }
}

}  // namespace detail

/// Whether `T`, cv ignored, keeps an element of fewer than 8 bits in a byte of its own.
template <class T>
inline constexpr bool is_subbyte_padded_v = detail::subbyte_padded<T>();

/// Whether two dtypes are the same in code, bits and lanes.
constexpr bool same_data_type(DLDataType a, DLDataType b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

}  // namespace usm_dlpack
