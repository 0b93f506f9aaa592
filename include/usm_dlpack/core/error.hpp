// SPDX-License-Identifier: Apache-2.0
//
// How this library says no: one exception type, one code for each rule, one shape of sentence.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace usm_dlpack {

/// The rule that a refused input breaks. The order is that of docs/checks.md, in which the
/// rules are checked; a code of several steps stands at the first of them.
enum class errc {
  // producer: the view
  layout_not_strided = 1,  ///< this object's mapping is not strided
  extent_out_of_range,     ///< an extent is negative or above the int64_t of `DLTensor::shape`
  stride_out_of_range,     ///< a stride is outside the int64_t of `DLTensor::strides`
  offset_out_of_range,     ///< the first element lies outside what a pointer can reach
  // consumer: the managed tensor
  version_unsupported,      ///< `DLPackVersion::major` is not 1
  flags_unknown,            ///< a bit of `flags` that DLPack does not define
  read_only,                ///< written access asked for memory that is read-only
  device_type_unsupported,  ///< `device.device_type` is not `kDLOneAPI`
  // consumer: the DLTensor
  ndim_out_of_range,  ///< `ndim` is negative
  shape_null,         ///< `shape` is null though `ndim` is not 0
  dtype_unsupported,  ///< `dtype` is not one that DLPack 1.3 defines
  shape_negative,     ///< an entry of `shape` is negative
  data_null,          ///< `data` is null though the tensor has elements
  span_overflow,      ///< the view's extent in bytes does not fit the address space
  data_misaligned,    ///< the first element is not aligned to the element type
  // consumer: the view
  rank_mismatch,         ///< `ndim` is not the view's rank
  dtype_mismatch,        ///< `dtype` is not that of the view's element type
  extent_mismatch,       ///< an entry of `shape` is not the view's static extent
  index_type_too_small,  ///< the view's index type does not hold an extent, a stride or the
                         ///< span
  layout_mismatch,       ///< the view's layout does not hold the strides
  // USM
  overlapping,             ///< elements may overlap, and the caller asked that they do not
  device_not_accepted,     ///< the root device is not the one asked for
  no_device,               ///< the SYCL runtime has no root device at all
  device_id_out_of_range,  ///< `device.device_id` names no root device of this process
  device_failed,           ///< the runtime lists the device, and cannot use it
  backend_not_accepted,    ///< the device's backend is not among those asked for
  pointer_unknown,         ///< the pointer is no USM of the context
  usm_type_not_accepted,   ///< the USM kind is not among those asked for
  device_mismatch,         ///< `device.device_id` and the memory name different root devices
  out_of_bounds,           ///< the view does not lie within one USM allocation
  device_without_id,       ///< the device's root is not in `sycl::device::get_devices()`
  context_ambiguous,       ///< several platforms know the pointer, and no context is given
  context_not_default,     ///< the context is not the default context of its platform
  queue_device_mismatch,   ///< the queue and the memory are on different root devices
  // Python
  capsule_unusable,     ///< the object is no fresh DLPack capsule
  copy_needed,          ///< a copy would be needed and is not allowed, or the reverse
  request_unsupported,  ///< what a keyword of `__dlpack__` or `from_dlpack` asks for is not to
                        ///< be had
  process_forked,       ///< a child made by fork() cannot use the parent's SYCL runtime
  tensor_released,      ///< the garbage collector has taken the tensor's memory already
  // any query
  runtime_error,  ///< the SYCL runtime threw; its text is in `found`
};

/// The name of a code as Python spells it: the enumerator.
constexpr const char* to_string(errc code) noexcept {
  switch (code) {
    case errc::layout_not_strided: return "layout_not_strided";
    case errc::extent_out_of_range: return "extent_out_of_range";
    case errc::stride_out_of_range: return "stride_out_of_range";
    case errc::offset_out_of_range: return "offset_out_of_range";
    case errc::version_unsupported: return "version_unsupported";
    case errc::flags_unknown: return "flags_unknown";
    case errc::read_only: return "read_only";
    case errc::device_type_unsupported: return "device_type_unsupported";
    case errc::ndim_out_of_range: return "ndim_out_of_range";
    case errc::shape_null: return "shape_null";
    case errc::dtype_unsupported: return "dtype_unsupported";
    case errc::shape_negative: return "shape_negative";
    case errc::data_null: return "data_null";
    case errc::span_overflow: return "span_overflow";
    case errc::data_misaligned: return "data_misaligned";
    case errc::rank_mismatch: return "rank_mismatch";
    case errc::dtype_mismatch: return "dtype_mismatch";
    case errc::extent_mismatch: return "extent_mismatch";
    case errc::index_type_too_small: return "index_type_too_small";
    case errc::layout_mismatch: return "layout_mismatch";
    case errc::overlapping: return "overlapping";
    case errc::device_not_accepted: return "device_not_accepted";
    case errc::no_device: return "no_device";
    case errc::device_id_out_of_range: return "device_id_out_of_range";
    case errc::device_failed: return "device_failed";
    case errc::backend_not_accepted: return "backend_not_accepted";
    case errc::pointer_unknown: return "pointer_unknown";
    case errc::usm_type_not_accepted: return "usm_type_not_accepted";
    case errc::device_mismatch: return "device_mismatch";
    case errc::out_of_bounds: return "out_of_bounds";
    case errc::device_without_id: return "device_without_id";
    case errc::context_ambiguous: return "context_ambiguous";
    case errc::context_not_default: return "context_not_default";
    case errc::queue_device_mismatch: return "queue_device_mismatch";
    case errc::capsule_unusable: return "capsule_unusable";
    case errc::copy_needed: return "copy_needed";
    case errc::request_unsupported: return "request_unsupported";
    case errc::process_forked: return "process_forked";
    case errc::tensor_released: return "tensor_released";
    case errc::runtime_error: return "runtime_error";
  }
  return "unknown";
}

/// The parts of a refusal's sentence: `<field>: expected <expected>, found <found>; <remedy>`.
struct refusal {
  std::string field;     ///< what was looked at, as dlpack.h or mdspan spells it
  std::string expected;  ///< what the rule wants
  std::string found;     ///< what is there, foreign codes with their raw numbers
  std::string remedy;    ///< what to do about it
};

namespace detail {

/// The text up to its first 0, where `what()` ends too.
inline std::string until_zero(std::string_view text) {
  return std::string(text.substr(0, text.find('\0')));
}

inline std::string sentence_of(const refusal& parts) {
  std::string sentence = parts.field;
  sentence.append(": expected ").append(parts.expected);
  sentence.append(", found ").append(parts.found);
  return sentence.append("; ").append(parts.remedy);
}

}  // namespace detail

/// Thrown for every input that is refused; nothing has been converted, consumed or freed by
/// then.
class conversion_error : public std::invalid_argument {
 public:
  /// @param parts each up to its first 0 character, if it has one
  conversion_error(errc code, const refusal& parts)
      : conversion_error(code, std::make_shared<const refusal>(refusal{
                                   detail::until_zero(parts.field),
                                   detail::until_zero(parts.expected),
                                   detail::until_zero(parts.found),
                                   detail::until_zero(parts.remedy)})) {}
  // Copied where it could be moved: an exception without its parts must not exist.
  conversion_error(const conversion_error&) noexcept = default;
  conversion_error& operator=(const conversion_error&) noexcept = default;

  /// The rule that was broken.
  errc code() const noexcept { return code_; }
  const std::string& field() const noexcept { return parts_->field; }
  const std::string& expected() const noexcept { return parts_->expected; }
  const std::string& found() const noexcept { return parts_->found; }
  const std::string& remedy() const noexcept { return parts_->remedy; }

 private:
  conversion_error(errc code, std::shared_ptr<const refusal> parts)
      : std::invalid_argument(detail::sentence_of(*parts)),
        code_(code),
        parts_(std::move(parts)) {}

  errc code_;
  std::shared_ptr<const refusal> parts_;  // shared, so that a copy of the exception cannot throw
};

namespace detail {

/// Throws `conversion_error`.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(errc code, std::string_view field,
                                                          std::string_view expected,
                                                          std::string_view found,
                                                          std::string_view remedy) {
  throw conversion_error(code, {std::string(field), std::string(expected), std::string(found),
                                std::string(remedy)});
}

/// `name[r]`, the field of a rule about one dimension.
[[gnu::cold, gnu::noinline]] inline std::string indexed(std::string_view name, std::size_t r) {
  std::string field(name);
  return field.append("[").append(std::to_string(r)).append("]");
}

}  // namespace detail
}  // namespace usm_dlpack
