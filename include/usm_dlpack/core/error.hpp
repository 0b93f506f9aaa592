// SPDX-License-Identifier: Apache-2.0
//
// One exception type, one code for all refusals that a caller handles alike, one form of
// sentence. A new code is a row of `error_table`, a section in docs/errors/, and a new version
// of python/package.hpp.
#pragma once

#include <usm_dlpack/core/config.hpp>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace usm_dlpack {

/// The rule that a refused input breaks. Each has a section in docs/errors/. The refusal's
/// field tells apart the rules that share a code.
enum class errc {
  // producer: the view
  layout_not_strided = 1,
  out_of_range,
  // consumer: the managed tensor
  version_unsupported,
  read_only,
  device_type_unsupported,
  // consumer: the DLTensor
  dtype_unsupported,
  invalid_tensor,
  data_misaligned,
  // consumer: the view
  shape_mismatch,
  dtype_mismatch,
  index_type_too_small,
  layout_mismatch,
  // USM
  overlapping,
  device_not_accepted,
  no_device,
  pointer_unknown,
  usm_type_not_accepted,
  device_mismatch,
  out_of_bounds,
  device_without_id,
  context_not_default,
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
  const char* name;  ///< the enumerator, as in Python
  python_class raised = python_class::conversion_error;
};

/// Every code, in the order of `errc`: its name and its Python exception.
inline constexpr error_row error_table[] = {
    {"layout_not_strided"},
    {"out_of_range"},
    {"version_unsupported"},
    {"read_only"},
    {"device_type_unsupported"},
    {"dtype_unsupported"},
    {"invalid_tensor"},
    {"data_misaligned"},
    {"shape_mismatch"},
    {"dtype_mismatch"},
    {"index_type_too_small"},
    {"layout_mismatch"},
    {"overlapping"},
    {"device_not_accepted"},
    {"no_device"},
    {"pointer_unknown", python_class::binding_error},
    {"usm_type_not_accepted"},
    {"device_mismatch", python_class::binding_error},
    {"out_of_bounds"},
    {"device_without_id", python_class::binding_error},
    {"context_not_default", python_class::binding_error},
    {"capsule_unusable"},
    {"copy_needed"},
    {"request_unsupported"},
    {"process_forked"},
    {"tensor_released"},
    {"runtime_error"},
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
  // Never moved: a moved-from exception would have no parts.
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
