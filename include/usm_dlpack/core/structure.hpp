// SPDX-License-Identifier: Apache-2.0
//
// Checks that a DLTensor of any producer is well formed, and returns the bytes that it spans;
// also checks version, flags and device type. Reads only descriptors and queries no device.
// Rules that every tensor must meet belong here; those of `validate` alone in
// sycl/validate.hpp.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace usm_dlpack {

/// The bytes of a well-formed tensor. Addresses include `DLTensor::byte_offset`.
struct tensor_structure {
  std::uintptr_t first = 0;   ///< address of the first element; 0 only if empty
  std::uintptr_t lowest = 0;  ///< lowest address of the view
  std::uint64_t nbytes = 0;   ///< bytes from `lowest` to the last element's end; 0 if empty
  bool empty = false;         ///< an extent is 0
  bool unique = false;        ///< the strides prove that no elements overlap
};

namespace detail {

/// Indexed by `DLDevice::device_type`; source: `DLDeviceType`, dlpack.h 1.3.
inline constexpr const char* device_type_names[] = {
    "unknown",   "kDLCPU",      "kDLCUDA",   "kDLCUDAHost",    "kDLOpenCL",
    "unknown",   "unknown",     "kDLVulkan", "kDLMetal",       "kDLVPI",
    "kDLROCM",   "kDLROCMHost", "kDLExtDev", "kDLCUDAManaged", "kDLOneAPI",
    "kDLWebGPU", "kDLHexagon",  "kDLMAIA",   "kDLTrn",
};

/// For example `kDLCUDA (2)`.
inline std::string device_type_name(std::int32_t type) {
  const std::int32_t row = type > 0 && type < 19 ? type : 0;
  return std::string(device_type_names[row]) + " (" + digits(type) + ")";
}

/// Whether a device type means CUDA memory, which is USM of SYCL's backend cuda.
constexpr bool is_cuda(DLDeviceType type) noexcept {
  return type == kDLCUDA || type == kDLCUDAHost || type == kDLCUDAManaged;
}

inline void check_device_type(const DLDevice& device) {
  if (device.device_type != kDLOneAPI) {
    const auto type = static_cast<std::int32_t>(device.device_type);
    refuse(errc::device_type_unsupported, "device.device_type", "kDLOneAPI (14)",
           device_type_name(type),
           type == kDLCPU ? "move the array to a SYCL device first, in Python by "
                            "usm_dlpack.from_dlpack(x, device=(14, 0))"
                          : "move the array to a SYCL device first");
  }
}

inline void check_flags(std::uint64_t flags, const char* remedy) {
  if ((flags & ~flag::all) != 0) {
    refuse(errc::version_unsupported, "flags", "bits of DLPACK_FLAG_BITMASK_* only",
           digits(flags & ~flag::all), remedy);
  }
}

inline constexpr const char* older_version_remedy =
    "have the producer make a tensor of DLPack 1.0 to 1.3 (in Python: max_version=(1, 3))";

/// Checks version and flags. Nothing else may be read before the version is known.
inline void check_header(const DLManagedTensorVersioned& managed) {
  if (managed.version.major != DLPACK_MAJOR_VERSION) {
    refuse(errc::version_unsupported, "version.major", "1", digits(managed.version.major),
           older_version_remedy);
  }
  check_flags(managed.flags, older_version_remedy);
}

constexpr subbyte storage_of(std::uint64_t flags) noexcept {
  return (flags & flag::is_subbyte_type_padded) != 0 ? subbyte::padded : subbyte::packed;
}

inline void check_ndim(const DLTensor& tensor) {
  if (tensor.ndim < 0) {
    refuse(errc::invalid_tensor, "ndim", "0 or more dimensions", digits(tensor.ndim),
           "have the producer set ndim to the number of dimensions");
  }
}

inline void check_shape_and_dtype(const DLTensor& tensor) {
  check_ndim(tensor);
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    refuse(errc::invalid_tensor, "shape", "an array of ndim extents",
           "null with ndim " + digits(tensor.ndim), "have the producer fill shape");
  }
  if (!detail::dtype_is_known(tensor.dtype)) {
    refuse(errc::dtype_unsupported, "dtype", "a dtype of DLPack 1.3",
           usm_dlpack::to_string(tensor.dtype),
           "convert the array to a dtype of DLPack first");
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(tensor.ndim); ++r) {
    if (tensor.shape[r] < 0) {
      refuse(errc::invalid_tensor, indexed("shape", r), "an extent of 0 or more elements",
             digits(tensor.shape[r]), "have the producer correct shape");
    }
  }
}

/// Copies shape and strides; null strides are filled in.
inline void copy_strides(const DLTensor& from, std::int64_t* shape,
                         std::int64_t* strides) noexcept {
  const auto ndim = static_cast<std::size_t>(from.ndim);
  std::copy_n(from.shape, ndim, shape);
  if (from.strides == nullptr) {
    write_compact_strides(shape, strides, ndim);
  } else {
    std::copy_n(from.strides, ndim, strides);
  }
}

/// An element span in bytes, relative to the first element.
struct byte_span {
  std::int64_t lowest = 0;    ///< 0 or negative
  std::int64_t past_end = 0;  ///< above 0
};

/// @returns whether every offset fits int64_t
constexpr bool to_bytes(const element_span& span, std::int64_t element_bits,
                        byte_span& bytes) noexcept {
  std::int64_t low = 0;
  std::int64_t end = 0;
  if (element_bits % 8 == 0) {
    const std::int64_t size = element_bits / 8;
    return !__builtin_mul_overflow(span.lowest, size, &bytes.lowest) &&
           !__builtin_mul_overflow(span.highest, size, &end) &&
           !__builtin_add_overflow(end, size, &bytes.past_end);
  }
  // Packed elements share bytes: round their span outwards to whole bytes.
  if (__builtin_mul_overflow(span.lowest, element_bits, &low) ||
      __builtin_mul_overflow(span.highest, element_bits, &end) ||
      __builtin_add_overflow(end, element_bits + 7, &end)) {
    return false;
  }
  bytes.lowest = low / 8 - (low % 8 != 0 ? 1 : 0);
  bytes.past_end = end / 8;
  return true;
}

/// @param past bytes past an address that is aligned as expected
USM_DLPACK_COLD inline void refuse_alignment(std::string_view expected, std::uintptr_t past) {
  refuse(errc::data_misaligned, "byte_offset", expected,
         digits(past) + " bytes past such an address",
         "correct byte_offset, or copy the array to aligned memory");
}

USM_DLPACK_COLD inline void refuse_span() {
  refuse(errc::out_of_range, "strides", "a view that the address space can hold",
         "offsets beyond it", "correct shape, strides (in elements) or byte_offset");
}

}  // namespace detail

/// Checks that a tensor is well formed, and returns the bytes that it spans. Ignores the
/// device and allocates nothing. Checks, in this order (docs/checks.md): `ndim`, `shape` null,
/// `dtype`, negative extents, `data` null, the span in elements and bytes, the alignment of
/// the first element.
///
/// Accepts null `strides` (compact row-major before DLPack 1.2), any stride of a dimension of
/// extent 1, null `shape` and `strides` for `ndim` 0, null `data` for an empty tensor.
/// Stricter than DLPack: the first element must be aligned to its scalar, for kernels.
/// @pre `shape`, and `strides` unless null, have `ndim` readable entries
/// @throws conversion_error of the first broken rule
inline tensor_structure check_structure(const DLTensor& tensor,
                                        subbyte storage = subbyte::packed) {
  tensor_structure result;
  detail::check_shape_and_dtype(tensor);
  const auto ndim = static_cast<std::size_t>(tensor.ndim);
  const detail::element_span span = detail::span_of(tensor.shape, tensor.strides, ndim);
  result.empty = span.empty;
  result.unique = span.empty;
  if (span.empty && tensor.data == nullptr) {
    return result;
  }
  if (tensor.data == nullptr) {
    detail::refuse(errc::invalid_tensor, "data", "the address of the elements", "null",
                   "set data where the tensor is made, or an extent of shape to 0");
  }
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  detail::byte_span bytes{};
  if (span.overflow || __builtin_add_overflow(data, tensor.byte_offset, &result.first) ||
      (!span.empty &&
       !detail::to_bytes(span, detail::bits_per_element(tensor.dtype, storage), bytes))) {
    detail::refuse_span();
  }
  const std::uint64_t before = detail::magnitude(bytes.lowest);
  result.nbytes = before + static_cast<std::uint64_t>(bytes.past_end);
  result.lowest = result.first - before;
  std::uintptr_t end = 0;
  // No object is at address 0 or exceeds PTRDIFF_MAX bytes: differences would overflow.
  if (!detail::fits_int64(result.nbytes) || before >= result.first ||
      __builtin_add_overflow(result.lowest, result.nbytes, &end)) {
    detail::refuse_span();
  }
  const std::uintptr_t past = result.first & detail::alignment_mask(tensor.dtype);
  if (!span.empty && past != 0) {
    detail::refuse_alignment("data + byte_offset aligned to " +
                                 detail::digits(detail::alignment_mask(tensor.dtype) + 1) +
                                 " bytes",
                             past);
  }
  result.unique = span.empty || tensor.strides == nullptr ||
                  detail::nested_reach(tensor.shape, tensor.strides, ndim) != 0 ||
                  detail::dimensions_step_over(tensor.shape, tensor.strides, ndim,
                                               detail::step_over::elements);
  return result;
}

}  // namespace usm_dlpack
