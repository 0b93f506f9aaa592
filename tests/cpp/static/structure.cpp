// SPDX-License-Identifier: Apache-2.0
//
// Which dtypes DLPack has, how far apart and how aligned their elements are, and how many
// bytes they span.
#include <usm_dlpack/core/structure.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

using namespace usm_dlpack::detail;
using usm_dlpack::subbyte;
namespace type_code = usm_dlpack::type_code;

constexpr DLDataType dtype(unsigned code, unsigned bits, unsigned lanes = 1) {
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
          static_cast<std::uint16_t>(lanes)};
}

static_assert(std::is_trivially_copyable_v<usm_dlpack::tensor_structure>);

// --- dtype_is_known
// -------------------------------------------------------------------------------------

constexpr bool known(unsigned code, unsigned bits, unsigned lanes = 1) {
  return dtype_is_known(dtype(code, bits, lanes));
}

static_assert(known(kDLInt, 8) && known(kDLInt, 64) && known(kDLInt, 128) && known(kDLInt, 4));
static_assert(known(kDLUInt, 1) && known(kDLUInt, 2) && known(kDLUInt, 24));
static_assert(!known(kDLInt, 3) && !known(kDLInt, 7) && !known(kDLUInt, 12));
static_assert(known(kDLFloat, 16) && known(kDLFloat, 32) && known(kDLFloat, 80));
static_assert(!known(kDLFloat, 8) && !known(kDLFloat, 4) && !known(kDLFloat, 20));
static_assert(known(kDLBfloat, 16) && !known(kDLBfloat, 32) && !known(kDLBfloat, 8));
static_assert(known(kDLComplex, 32) && known(kDLComplex, 64) && known(kDLComplex, 128));
static_assert(!known(kDLComplex, 16) && !known(kDLComplex, 40));
static_assert(known(kDLBool, 8) && !known(kDLBool, 1) && !known(kDLBool, 16));
static_assert(known(kDLOpaqueHandle, 64));
static_assert(known(kDLFloat, 32, 65535));

static_assert(known(type_code::float8_e3m4, 8) && !known(type_code::float8_e3m4, 4));
static_assert(known(type_code::float8_e8m0fnu, 8) && !known(type_code::float8_e8m0fnu, 16));
static_assert(known(type_code::float6_e2m3fn, 6) && !known(type_code::float6_e3m2fn, 8));
static_assert(known(type_code::float4_e2m1fn, 4, 2) && !known(type_code::float4_e2m1fn, 8));
static_assert(!known(18, 8) && !known(255, 8), "codes that DLPack 1.3 does not define");

constexpr bool nothing_is_known_without_bits_or_lanes() {
  for (unsigned code = 0; code < 256; ++code) {
    if (known(code, 0) || known(code, 4, 0) || known(code, 8, 0) || known(code, 64, 0)) {
      return false;
    }
  }
  return true;
}
static_assert(nothing_is_known_without_bits_or_lanes());

// By DLPack's words: the codes of floating point numbers below 16 bits and bool have one
// width each, the others whole bytes of at least so many bits, or few bits.
constexpr bool documented(unsigned code, unsigned bits) {
  if (code == kDLBfloat) return bits == 16;
  if (code == kDLBool || (code >= 7 && code <= 14)) return bits == 8;
  if (code == 15 || code == 16) return bits == 6;
  if (code == 17) return bits == 4;
  if (code == kDLComplex) return bits % 16 == 0 && bits >= 32;
  if (code == kDLFloat) return bits % 8 == 0 && bits >= 16;
  return code < 18 && bits != 0 && (bits % 8 == 0 || bits == 1 || bits == 2 || bits == 4);
}
constexpr bool what_is_documented_is_known_and_nothing_else(unsigned code) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    if (known(code, bits) != documented(code, bits) ||
        has_whole_bytes(dtype(code, bits)) != (documented(code, bits) && bits % 8 == 0)) {
      return false;
    }
  }
  return true;
}
template <std::size_t... Codes>
constexpr bool every_code_is_as_documented(std::index_sequence<Codes...>) {
  return (what_is_documented_is_known_and_nothing_else(Codes) && ...);
}
static_assert(every_code_is_as_documented(std::make_index_sequence<32>()));

// --- bits_per_element
// -----------------------------------------------------------------------------------

static_assert(bits_per_element(dtype(kDLFloat, 32), subbyte::packed) == 32);
static_assert(bits_per_element(dtype(kDLFloat, 32, 4), subbyte::padded) == 128);
static_assert(bits_per_element(dtype(type_code::float4_e2m1fn, 4), subbyte::packed) == 4);
static_assert(bits_per_element(dtype(type_code::float4_e2m1fn, 4), subbyte::padded) == 8);
static_assert(bits_per_element(dtype(type_code::float4_e2m1fn, 4, 2), subbyte::padded) == 16);
static_assert(bits_per_element(dtype(kDLInt, 255, 65535), subbyte::packed) == 255 * 65535);

// --- alignment_mask
// -------------------------------------------------------------------------------------

constexpr bool is_aligned_to(std::uintptr_t bytes, DLDataType dtype) {
  return alignment_mask(dtype) == bytes - 1;
}

static_assert(is_aligned_to(1, dtype(kDLInt, 8)));
static_assert(is_aligned_to(2, dtype(kDLFloat, 16)));
static_assert(is_aligned_to(4, dtype(kDLFloat, 32)));
static_assert(is_aligned_to(8, dtype(kDLFloat, 64)));
static_assert(is_aligned_to(16, dtype(kDLFloat, 128)));
static_assert(is_aligned_to(1, dtype(kDLUInt, 24)), "no power of two");
static_assert(is_aligned_to(4, dtype(kDLUInt, 96)));
static_assert(is_aligned_to(4, dtype(kDLComplex, 64)), "that of its parts");
static_assert(is_aligned_to(8, dtype(kDLComplex, 128)));
static_assert(is_aligned_to(4, dtype(kDLFloat, 32, 4)), "that of its scalar");
static_assert(is_aligned_to(1, dtype(type_code::float4_e2m1fn, 4, 2)));
static_assert(is_aligned_to(1, dtype(type_code::float6_e2m3fn, 6)));

// --- to_bytes
// -------------------------------------------------------------------------------------------

constexpr auto max = std::numeric_limits<std::int64_t>::max();
constexpr auto min = std::numeric_limits<std::int64_t>::min();

constexpr bool bytes_are(element_span span, std::int64_t bits, std::int64_t lowest,
                         std::int64_t past_end) {
  byte_span bytes{};
  return to_bytes(span, bits, bytes) && bytes.lowest == lowest && bytes.past_end == past_end;
}
constexpr bool bytes_overflow(element_span span, std::int64_t bits) {
  byte_span bytes{};
  return !to_bytes(span, bits, bytes);
}

static_assert(bytes_are({0, 0}, 32, 0, 4) && bytes_are({-2, 3}, 32, -8, 16));
static_assert(bytes_are({0, 0}, 4, 0, 1), "half a byte is a byte");
static_assert(bytes_are({0, 1}, 4, 0, 1) && bytes_are({0, 2}, 4, 0, 2));
static_assert(bytes_are({-1, 0}, 4, -1, 1) && bytes_are({-2, 0}, 4, -1, 1));
static_assert(bytes_are({-3, 1}, 4, -2, 1));
static_assert(bytes_are({0, 3}, 6, 0, 3) && bytes_are({-1, 0}, 6, -1, 1));
static_assert(bytes_are({0, max - 1}, 8, 0, max));
static_assert(bytes_overflow({0, max}, 8), "the end of the last element");
static_assert(bytes_overflow({0, max / 2 + 1}, 16) && bytes_overflow({min, 0}, 16));
static_assert(bytes_are({min / 2, 0}, 16, min, 2));
static_assert(bytes_overflow({0, max / 4 + 1}, 4) && bytes_overflow({min / 4 - 1, 0}, 4));
static_assert(bytes_overflow({0, max / 4}, 4), "rounding up to a whole byte");

// --- storage_of
// -----------------------------------------------------------------------------------------

static_assert(storage_of(0) == subbyte::packed && storage_of(3) == subbyte::packed);
static_assert(storage_of(4) == subbyte::padded && storage_of(7) == subbyte::padded);

// The codes behind that of floating point may have 8 bits.
static_assert(known(kDLOpaqueHandle, 8) && known(kDLOpaqueHandle, 4));

}  // namespace
