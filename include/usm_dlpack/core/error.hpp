// SPDX-License-Identifier: Apache-2.0
//
// One exception type, one code for each rule, one form of sentence.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace usm_dlpack {

/// The rule that a refused input breaks. docs/errors/index.md explains each.
enum class errc {
  // producer: the view
  layout_not_strided = 1,
  extent_out_of_range,
  stride_out_of_range,
  offset_out_of_range,
  // consumer: the managed tensor
  version_unsupported,
  flags_unknown,
  read_only,
  device_type_unsupported,
  // consumer: the DLTensor
  ndim_out_of_range,
  shape_null,
  dtype_unsupported,
  shape_negative,
  data_null,
  span_overflow,
  data_misaligned,
  // consumer: the view
  rank_mismatch,
  dtype_mismatch,
  extent_mismatch,
  index_type_too_small,
  layout_mismatch,
  // USM
  overlapping,
  device_not_accepted,
  no_device,
  device_id_out_of_range,
  device_failed,
  backend_not_accepted,
  pointer_unknown,
  usm_type_not_accepted,
  device_mismatch,
  out_of_bounds,
  device_without_id,
  context_ambiguous,
  context_not_default,
  queue_device_mismatch,
  // Python
  capsule_unusable,
  copy_needed,
  request_unsupported,
  process_forked,
  tensor_released,
  // any query
  runtime_error,
};

namespace detail {

/// The Python exception of a code. `usm_dlpack.UsmBindingError` is also a TypeError, as
/// dpctl's protocol guide asks for memory bound to another context or device.
enum class python_class : bool { conversion_error, binding_error };

struct error_row {
  const char* name;     ///< the enumerator, as in Python
  const char* meaning;  ///< one line of Markdown
  python_class raised = python_class::conversion_error;
};

/// Every code, in the order of `errc`; the source of names, Python exceptions and docs/errors.
inline constexpr error_row error_table[] = {
    {"layout_not_strided", "this object's mapping is not strided"},
    {"extent_out_of_range", "an extent is negative or above the int64_t of `DLTensor::shape`"},
    {"stride_out_of_range", "a stride is outside the int64_t of `DLTensor::strides`"},
    {"offset_out_of_range", "the first element lies outside what a pointer can reach"},
    {"version_unsupported", "`DLPackVersion::major` is not 1"},
    {"flags_unknown", "a bit of `flags` that DLPack does not define"},
    {"read_only", "written access asked for memory that is read-only"},
    {"device_type_unsupported", "`device.device_type` is not `kDLOneAPI`"},
    {"ndim_out_of_range", "`ndim` is negative"},
    {"shape_null", "`shape` is null though `ndim` is not 0"},
    {"dtype_unsupported", "`dtype` is not one that DLPack 1.3 defines"},
    {"shape_negative", "an entry of `shape` is negative"},
    {"data_null", "`data` is null though the tensor has elements"},
    {"span_overflow", "the view's extent in bytes does not fit the address space"},
    {"data_misaligned", "the first element is not aligned to the element type"},
    {"rank_mismatch", "`ndim` is not the view's rank"},
    {"dtype_mismatch", "`dtype` is not that of the view's element type"},
    {"extent_mismatch", "an entry of `shape` is not the view's static extent"},
    {"index_type_too_small",
     "the view's index type does not hold an extent, a stride or the span"},
    {"layout_mismatch", "the view's layout does not hold the strides"},
    {"overlapping", "elements may overlap, and the caller asked that they do not"},
    {"device_not_accepted", "the root device is not the one asked for"},
    {"no_device", "the SYCL runtime has no root device at all"},
    {"device_id_out_of_range", "`device.device_id` names no root device of this process"},
    {"device_failed", "the runtime lists the device, and cannot use it"},
    {"backend_not_accepted", "the device's backend is not among those asked for"},
    {"pointer_unknown", "the pointer is no USM of the context", python_class::binding_error},
    {"usm_type_not_accepted", "the USM kind is not among those asked for"},
    {"device_mismatch", "`device.device_id` and the memory name different root devices",
     python_class::binding_error},
    {"out_of_bounds", "the view does not lie within one USM allocation"},
    {"device_without_id", "the device's root is not in `sycl::device::get_devices()`",
     python_class::binding_error},
    {"context_ambiguous", "several platforms know the pointer, and no context is given"},
    {"context_not_default", "the context is not the default context of its platform",
     python_class::binding_error},
    {"queue_device_mismatch", "the queue and the memory are on different root devices"},
    {"capsule_unusable", "the object is no fresh DLPack capsule"},
    {"copy_needed", "a copy would be needed and is not allowed, or the reverse"},
    {"request_unsupported",
     "what a keyword of `__dlpack__` or `from_dlpack` asks for cannot be had"},
    {"process_forked", "a child made by fork() cannot use the parent's SYCL runtime"},
    {"tensor_released", "the garbage collector has taken the tensor's memory already"},
    {"runtime_error", "the SYCL runtime threw; its text is in `found`"},
};
static_assert(sizeof(error_table) / sizeof(error_row) ==
                  static_cast<std::size_t>(errc::runtime_error),
              "error_table: expected a row for each enumerator of errc, found more or fewer; "
              "add the row, or remove one");

}  // namespace detail

/// The name of a code: the enumerator, as in Python.
constexpr const char* to_string(errc code) noexcept {
  const auto row = static_cast<std::size_t>(code) - 1;
  return row < static_cast<std::size_t>(errc::runtime_error) ? detail::error_table[row].name
                                                             : "unknown";
}

/// The parts of a refusal's sentence: `<field>: expected <expected>, found <found>; <remedy>`.
struct refusal {
  std::string field;     ///< the checked field, as dlpack.h or mdspan spells it
  std::string expected;  ///< the value that the rule requires
  std::string found;     ///< the actual value, foreign codes with their numbers
  std::string remedy;    ///< what to do about it
};

/// Thrown for every refused input; nothing was converted, consumed or freed before.
class conversion_error : public std::invalid_argument {
 public:
  conversion_error(errc code, const refusal& parts)
      : std::invalid_argument(sentence_of(parts)),
        code_(code),
        parts_(std::make_shared<const refusal>(parts)) {}
  // Copied even if it could be moved: a moved-from exception would have no parts.
  conversion_error(const conversion_error&) noexcept = default;
  conversion_error& operator=(const conversion_error&) noexcept = default;

  /// The rule that was broken.
  errc code() const noexcept { return code_; }
  const std::string& field() const noexcept { return parts_->field; }
  const std::string& expected() const noexcept { return parts_->expected; }
  const std::string& found() const noexcept { return parts_->found; }
  const std::string& remedy() const noexcept { return parts_->remedy; }

 private:
  static std::string sentence_of(const refusal& parts) {
    std::string sentence = parts.field;
    sentence.append(": expected ").append(parts.expected);
    sentence.append(", found ").append(parts.found);
    return sentence.append("; ").append(parts.remedy);
  }

  errc code_;
  std::shared_ptr<const refusal> parts_;  // shared: copying the exception must not throw
};

namespace detail {

USM_DLPACK_COLD inline void refuse(errc code, std::string_view field,
                                   std::string_view expected, std::string_view found,
                                   std::string_view remedy) {
  throw conversion_error(code, {std::string(field), std::string(expected), std::string(found),
                                std::string(remedy)});
}

/// `name[r]`
[[gnu::cold, gnu::noinline]] inline std::string indexed(std::string_view name, std::size_t r) {
  std::string field(name);
  return field.append("[").append(std::to_string(r)).append("]");
}

}  // namespace detail
}  // namespace usm_dlpack
