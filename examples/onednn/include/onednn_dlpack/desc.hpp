// SPDX-License-Identifier: Apache-2.0
//
// DLTensor <-> dnnl::memory::desc: dtype, shape and strides. No device is queried.
#pragma once

#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <usm_dlpack/core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace onednn_dlpack {
namespace detail {

[[noreturn]] inline void refuse(usm_dlpack::errc code, std::string field, std::string expected,
                                std::string found, std::string remedy) {
  throw usm_dlpack::conversion_error(
      code, {std::move(field), std::move(expected), std::move(found), std::move(remedy)});
}

/// Calls oneDNN; its errors become refusals. ONEDNN_VERBOSE=all prints more.
template <class Call>
auto ask_onednn(const char* field, const char* expected, const char* remedy, Call&& call)
    -> decltype(call()) {
  try {
    return call();
  } catch (const dnnl::error& error) {
    const std::string number = " (" + std::to_string(error.status) + ")";
    refuse(usm_dlpack::errc::request_unsupported, field, expected,
           "the status " + std::string(dnnl_status2str(error.status)) + number, remedy);
  }
}

struct dtype_row {
  dnnl::memory::data_type onednn;
  DLDataType dlpack;
};

/// oneDNN's data types that DLPack has too; those of 4 bits are packed on both sides. DLPack
/// has no f4_e3m0, and oneDNN's C++ API no s64.
inline constexpr dtype_row dtype_rows[] = {
    {dnnl::memory::data_type::f32, {kDLFloat, 32, 1}},
    {dnnl::memory::data_type::f16, {kDLFloat, 16, 1}},
    {dnnl::memory::data_type::bf16, {kDLBfloat, 16, 1}},
    {dnnl::memory::data_type::f64, {kDLFloat, 64, 1}},
    {dnnl::memory::data_type::s32, {kDLInt, 32, 1}},
    {dnnl::memory::data_type::s8, {kDLInt, 8, 1}},
    {dnnl::memory::data_type::u8, {kDLUInt, 8, 1}},
    {dnnl::memory::data_type::s4, {kDLInt, 4, 1}},
    {dnnl::memory::data_type::u4, {kDLUInt, 4, 1}},
    {dnnl::memory::data_type::f8_e5m2, {usm_dlpack::type_code::float8_e5m2, 8, 1}},
    {dnnl::memory::data_type::f8_e4m3, {usm_dlpack::type_code::float8_e4m3fn, 8, 1}},
    {dnnl::memory::data_type::e8m0, {usm_dlpack::type_code::float8_e8m0fnu, 8, 1}},
    {dnnl::memory::data_type::f4_e2m1, {usm_dlpack::type_code::float4_e2m1fn, 4, 1}},
};

inline std::string listed(const dnnl::memory::dims& numbers) {
  std::string text = "(";
  for (const std::int64_t number : numbers) {
    text += (text.size() == 1 ? "" : ", ") + std::to_string(number);
  }
  return text + ")";
}

/// The strides for oneDNN. DLPack leaves those of dimensions without neighbours open; they
/// become those of a compact array, because oneDNN chooses its kernels by all of them.
inline dnnl::memory::dims strides_of(const DLTensor& tensor) {
  dnnl::memory::dims strides(static_cast<std::size_t>(tensor.ndim));
  std::int64_t compact = 1;
  for (std::size_t r = strides.size(); r-- > 0;) {
    const bool is_open = tensor.strides == nullptr || tensor.shape[r] == 1;
    strides[r] = is_open ? compact : tensor.strides[r];
    if (strides[r] < 0) {
      refuse(usm_dlpack::errc::layout_mismatch, "strides[" + std::to_string(r) + "]",
             "0 or more elements, as oneDNN's strides are", std::to_string(strides[r]),
             "copy the array to a compact one first");
    }
    compact = std::max(compact, strides[r] * tensor.shape[r]);
  }
  return strides;
}

}  // namespace detail

/// oneDNN's name of a dtype. @throws conversion_error `dtype_unsupported`
inline dnnl::memory::data_type to_data_type(DLDataType dtype) {
  for (const detail::dtype_row& row : detail::dtype_rows) {
    if (usm_dlpack::same_data_type(row.dlpack, dtype)) {
      return row.onednn;
    }
  }
  detail::refuse(usm_dlpack::errc::dtype_unsupported, "dtype", "a data type of oneDNN",
                 usm_dlpack::to_string(dtype),
                 "convert the array to float32, float16, bfloat16, int32, int8 or uint8");
}

/// DLPack's name of a data type. @throws conversion_error `dtype_unsupported`
inline DLDataType to_dlpack_dtype(dnnl::memory::data_type type) {
  for (const detail::dtype_row& row : detail::dtype_rows) {
    if (row.onednn == type) {
      return row.dlpack;
    }
  }
  const auto code = static_cast<dnnl_data_type_t>(type);
  detail::refuse(usm_dlpack::errc::dtype_unsupported, "data_type", "one that DLPack has",
                 std::string(dnnl_dt2str(code)) + " (" + std::to_string(code) + ")",
                 "reorder to f32 first");
}

/// Describes a tensor to oneDNN: up to 12 dimensions, with strides of 0, or of at least the
/// next smaller one times its extent. Rank 0 becomes one dimension of extent 1, because oneDNN
/// takes a descriptor without dimensions for "no argument".
/// @throws conversion_error as `check_structure`; `dtype_unsupported`, `shape_mismatch`,
///         `layout_mismatch`
inline dnnl::memory::desc to_desc(const DLTensor& tensor) {
  const bool empty = usm_dlpack::check_structure(tensor).empty;
  const dnnl::memory::data_type type = to_data_type(tensor.dtype);
  if (tensor.ndim > DNNL_MAX_NDIMS) {
    detail::refuse(usm_dlpack::errc::shape_mismatch, "ndim",
                   "at most " + std::to_string(DNNL_MAX_NDIMS) + " dimensions, as oneDNN has",
                   std::to_string(tensor.ndim), "reshape the array");
  }
  if (tensor.ndim == 0) {
    return {{1}, type, dnnl::memory::dims{1}};
  }
  const dnnl::memory::dims shape(tensor.shape, tensor.shape + tensor.ndim);
  // oneDNN ignores the strides of an empty array.
  const dnnl::memory::dims strides =
      empty ? dnnl::memory::dims(shape.size(), 1) : detail::strides_of(tensor);
  try {
    return {shape, type, strides};
  } catch (const dnnl::error&) {
    detail::refuse(usm_dlpack::errc::layout_mismatch, "strides",
                   "strides of 0, or of at least the next smaller one times its extent, as "
                   "oneDNN takes them",
                   detail::listed(strides) + " for the shape " + detail::listed(shape),
                   "copy the array to a compact one first");
  }
}

/// What DLPack says of a descriptor.
struct description {
  DLDataType dtype;
  dnnl::memory::dims shape;
  dnnl::memory::dims strides;
  std::uint64_t byte_offset;
};

/// @throws conversion_error `layout_not_strided` for a format that shape and strides cannot
///         say: inner blocks, an opaque one, one that is still open; `dtype_unsupported`
inline description describe(const dnnl::memory::desc& desc) {
  const char* remedy = "reorder to a plain format first, dnnl::memory::format_tag::ab...";
  const dnnl::memory::format_kind kind = desc.get_format_kind();
  if (desc.get_ndims() == 0 || kind != dnnl::memory::format_kind::blocked) {
    detail::refuse(usm_dlpack::errc::layout_not_strided, "format_kind", "blocked",
                   dnnl_fmt_kind2str(static_cast<dnnl_format_kind_t>(kind)), remedy);
  }
  if (desc.get_inner_nblks() != 0) {
    detail::refuse(usm_dlpack::errc::layout_not_strided, "inner_nblks", "0",
                   std::to_string(desc.get_inner_nblks()) + " of the sizes " +
                       detail::listed(desc.get_inner_blks()),
                   remedy);
  }
  const DLDataType dtype = to_dlpack_dtype(desc.get_data_type());
  const std::int64_t bits = desc.get_submemory_offset() * dtype.bits;
  if (bits % 8 != 0) {
    detail::refuse(usm_dlpack::errc::out_of_range, "submemory_offset", "one of whole bytes",
                   std::to_string(bits) + " bits", "reorder to memory of its own first");
  }
  return {dtype, desc.get_dims(), desc.get_strides(), static_cast<std::uint64_t>(bits / 8)};
}

}  // namespace onednn_dlpack
