// SPDX-License-Identifier: Apache-2.0
//
// The table of element types and DLPack dtypes, dtype names, and element storage. A new dtype
// of DLPack is a row of `type_code_rows`.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace usm_dlpack {
namespace detail {

struct type_code_row {
  const char* name;
  std::uint8_t bits;                ///< the only width; 0 if several
  std::uint32_t bytes;              ///< bit n: n bytes are allowed
  std::uint8_t subbyte_widths = 0;  ///< bit n: n bits are allowed, n < 8
};

/// Indexed by `DLDataType::code`; source: `DLDataTypeCode`, dlpack.h 1.3. Widths that DLPack
/// leaves open may be whole bytes, or 1, 2 or 4 bits.
inline constexpr type_code_row type_code_rows[] = {
    {"int", 0, 0xfffffffe, 0x16},
    {"uint", 0, 0xfffffffe, 0x16},
    {"float", 0, 0xfffffffc},
    {"opaque_handle", 0, 0xfffffffe, 0x16},
    {"bfloat", 16, 0x4},
    {"complex", 0, 0x55555550},
    {"bool", 8, 0x2},
    {"float8_e3m4", 8, 0x2},
    {"float8_e4m3", 8, 0x2},
    {"float8_e4m3b11fnuz", 8, 0x2},
    {"float8_e4m3fn", 8, 0x2},
    {"float8_e4m3fnuz", 8, 0x2},
    {"float8_e5m2", 8, 0x2},
    {"float8_e5m2fnuz", 8, 0x2},
    {"float8_e8m0fnu", 8, 0x2},
    {"float6_e2m3fn", 6, 0, 0x40},
    {"float6_e3m2fn", 6, 0, 0x40},
    {"float4_e2m1fn", 4, 0, 0x10},
};
inline constexpr std::uint8_t type_code_count = 18;
static_assert(sizeof(type_code_rows) / sizeof(type_code_rows[0]) == type_code_count);

/// Whether the row's name is the full name, with no bits to append, as of `bool`.
/// @pre the code is known
constexpr bool is_named_by_code(DLDataType dtype) noexcept {
  return type_code_rows[dtype.code].bits == dtype.bits && dtype.code != kDLBfloat;
}

template <int Code, std::size_t Bits, std::size_t Lanes = 1>
struct dtype_constant {
  static constexpr DLDataType value{static_cast<std::uint8_t>(Code),
                                    static_cast<std::uint8_t>(Bits),
                                    static_cast<std::uint16_t>(Lanes)};
};

/// Matches std::complex, cuda::std::complex and Kokkos::complex by interface and size, because
/// including `<complex>` takes longer to compile than this whole header.
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
    : dtype_constant<kDLComplex, 16 * sizeof(Real)> {};

template <class T, class... Types>
inline constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

/// The code of a number's dtype, or -1. char, wchar_t, char8_t, std::byte and enums are not
/// numbers; x87 long double has no code.
template <class T>
inline constexpr int number_code =
    is_one_of<T, signed char, short, int, long, long long, int128> ? kDLInt
    : is_one_of<T, unsigned char, unsigned short, unsigned, unsigned long, unsigned long long,
                uint128>
        ? kDLUInt
    : is_one_of<T, float16, float, double, float128> ? kDLFloat
    : std::is_same_v<T, bool>                        ? kDLBool
                                                     : -1;

template <class T, bool = (number_code<T> >= 0)>
struct number_row : complex_row<T> {};
template <class T>
struct number_row<T, true> : dtype_constant<number_code<T>, sizeof(T) * 8> {};

}  // namespace detail

/// The dtype of an element type, as a member `static constexpr DLDataType value`.
///
/// The known types are bool, the language's integers (not characters), `__int128`, `_Float16`,
/// float, double, `__float128`, and complex numbers of float or double. Others are refused.
/// Specialise it for your own type, without const or volatile.
///
/// The value must match the object in memory: `bits * lanes == 8 * sizeof(T)`. For elements of
/// fewer than 8 bits this means *packed* (two float4 in a byte: bits 4, lanes 2). A type with
/// a byte for each such element (`sizeof(T) == lanes`) is *padded*; only a managed tensor can
/// declare this (`flag::is_subbyte_type_padded`).
template <class T>
struct data_type_of : detail::number_row<T> {};

namespace detail {

template <class T, class = void>
inline constexpr bool is_specialised = false;
template <class T>
inline constexpr bool is_specialised<T, std::void_t<decltype(data_type_of<T>::value)>> = true;

/// Whether `data_type_of<T>::value` is a constant DLDataType.
template <class T, class = void>
inline constexpr bool has_row = false;
template <class T>
inline constexpr bool
    has_row<T, std::void_t<std::integral_constant<int, data_type_of<T>::value.bits>>> =
        std::is_same_v<std::remove_cv_t<decltype(data_type_of<T>::value)>, DLDataType>;

/// The first rule that a view type or an element type breaks.
enum class type_rule {
  none,
  interface,
  handle,
  accessor,
  layout,
  dtype,
  dtype_constant,
  dtype_size,
  padding
};

/// Whether the dtype, if there is one, gives each element of fewer than 8 bits its own byte.
template <class T>
constexpr bool is_padded() {
  if constexpr (has_row<T>) {
    constexpr DLDataType row = data_type_of<T>::value;
    return row.bits > 0 && row.bits < 8 && row.lanes == sizeof(T);
  } else {
    return false;
  }
}

template <class T>
constexpr type_rule broken_dtype_rule() {
  if constexpr (!is_specialised<T>) {
    return type_rule::dtype;
  } else if constexpr (!has_row<T>) {
    return type_rule::dtype_constant;
  } else {
    constexpr DLDataType row = data_type_of<T>::value;
    constexpr bool packed =
        row.bits > 0 && row.lanes > 0 && std::size_t{row.bits} * row.lanes == 8 * sizeof(T);
    return packed || is_padded<T>() ? type_rule::none : type_rule::dtype_size;
  }
}

constexpr int throw_if(bool broken, const char* sentence) {
  return broken ? throw sentence : 0;
}

/// A default template argument where a type must break no rule.
template <type_rule Broken, std::enable_if_t<Broken == type_rule::none, int> = 0>
constexpr int require() noexcept {
  return 0;
}
USM_DLPACK_REFUSED_TYPE(
    type_rule::dtype,
    "element_type: expected a type with a DLPack dtype, found one without; "
    "use a type of the dtype table or specialise data_type_of for yours")
USM_DLPACK_REFUSED_TYPE(
    type_rule::dtype_constant,
    "data_type_of: expected a static constexpr DLDataType value, found another value; "
    "correct the specialisation")
USM_DLPACK_REFUSED_TYPE(
    type_rule::dtype_size,
    "data_type_of: expected bits * lanes == 8 * sizeof(T), found a value that its object does "
    "not have; correct the specialisation")

}  // namespace detail

/// Whether `T`, cv ignored, has a dtype that matches its size.
template <class T>
inline constexpr bool has_data_type_v =
    detail::broken_dtype_rule<std::remove_cv_t<T>>() == detail::type_rule::none;

/// The dtype of `T`, cv ignored. Ill-formed (SFINAE-friendly) if `has_data_type_v` is false.
template <class T, int = detail::require<detail::broken_dtype_rule<std::remove_cv_t<T>>()>()>
inline constexpr DLDataType data_type_v = data_type_of<std::remove_cv_t<T>>::value;

/// Whether `T`, cv ignored, stores each element of fewer than 8 bits in its own byte.
template <class T>
inline constexpr bool is_subbyte_padded_v = detail::is_padded<std::remove_cv_t<T>>();

/// Compares code, bits and lanes.
constexpr bool same_data_type(DLDataType a, DLDataType b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/// Storage of elements of fewer than 8 bits: `flag::is_subbyte_type_padded`.
enum class subbyte { packed, padded };

namespace detail {

/// Bits between neighbours of stride 1, at most 255 * 65535.
constexpr std::int64_t bits_per_element(DLDataType dtype, subbyte storage) noexcept {
  const std::int64_t bits = storage == subbyte::padded && dtype.bits < 8 ? 8 : dtype.bits;
  return bits * dtype.lanes;
}

/// Whether this is a dtype of DLPack 1.3.
constexpr bool dtype_is_known(DLDataType dtype) noexcept {
  if (dtype.code >= type_code_count || dtype.lanes == 0) {
    return false;
  }
  const type_code_row& row = type_code_rows[dtype.code];
  return dtype.bits % 8 == 0 ? (row.bytes >> (dtype.bits / 8) & 1) != 0
                             : dtype.bits < 8 && (row.subbyte_widths >> dtype.bits & 1) != 0;
}

/// Mask of the address bits that are 0 if an element is aligned to its scalar. The alignment
/// is the largest power of two that divides the scalar's size, at most 16 bytes. Lanes do not
/// raise it, because the vector type that a kernel uses is unknown here.
/// @pre the dtype is known
constexpr std::uintptr_t alignment_mask(DLDataType dtype) noexcept {
  const unsigned bits = dtype.code == kDLComplex ? dtype.bits / 2U : dtype.bits;
  return ((bits - 1U) & ~bits) >> 3U;
}

/// Whether NumPy has the dtype on every machine, and by this name. @pre it is known
constexpr bool is_of_numpy(DLDataType dtype) noexcept {
  const int bits = dtype.lanes == 1 ? dtype.bits : 0;
  if (dtype.code == kDLComplex) {
    return bits == 64 || bits == 128;
  }
  return (dtype.code <= kDLFloat || dtype.code == kDLBool) &&
         (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

/// Whether NumPy has the dtype, or ml_dtypes has it without padding. @pre it is known
constexpr bool is_of_numpy_or_ml_dtypes(DLDataType dtype) noexcept {
  return is_of_numpy(dtype) || (dtype.lanes == 1 && dtype.bits >= 8 &&
                                (dtype.code == kDLBfloat || dtype.code > kDLBool));
}

/// For example `float32` or `float32x2`.
inline std::string name_of(DLDataType dtype) {
  std::string name = "unknown";
  if (dtype.code < type_code_count) {
    name = type_code_rows[dtype.code].name;
    name += is_named_by_code(dtype) ? "" : std::to_string(dtype.bits);
  }
  if (dtype.lanes != 1) {
    name.append("x").append(std::to_string(dtype.lanes));
  }
  return name;
}

}  // namespace detail

/// The name of a dtype: `float32`. If it is no scalar dtype of DLPack 1.3, with its raw
/// numbers: `float32x2 (code 2, bits 32, lanes 2)`.
inline std::string to_string(DLDataType dtype) {
  std::string name = detail::name_of(dtype);
  if (dtype.lanes == 1 && detail::dtype_is_known(dtype)) {
    return name;
  }
  name.append(" (code ").append(std::to_string(dtype.code));
  name.append(", bits ").append(std::to_string(dtype.bits));
  return name.append(", lanes ").append(std::to_string(dtype.lanes)).append(")");
}

}  // namespace usm_dlpack
