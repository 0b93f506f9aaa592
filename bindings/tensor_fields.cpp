// SPDX-License-Identifier: Apache-2.0
//
// A capsule is asked for as `validate` asks, and its fields are read as far as their version
// lets anybody read them. Nothing is refused here: that is the validator's.
#include "tensor_fields.hpp"

#include "capsule.hpp"
#include "process.hpp"
#include "producer.hpp"

#include <nanobind/stl/string.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace usm_dlpack::python {
namespace {

/// More dimensions are not shown: whoever sends them has not filled as many entries either.
constexpr std::int32_t most_dimensions = 64;

/// Copied at once: to make a Python object may run code that takes the capsule.
struct tensor_fields {
  DLTensor tensor{};
  DLPackVersion version{};
  std::uint64_t flags = 0;
  bool versioned = false;
  bool readable = false;  ///< whether the version and the flags are those that are known here
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::optional<tensor_structure> structure;
};

void copy_arrays(tensor_fields& fields) {
  const DLTensor& tensor = fields.tensor;
  if (tensor.ndim < 0 || tensor.ndim > most_dimensions || tensor.shape == nullptr) {
    return;
  }
  fields.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides != nullptr) {
    fields.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  }
}

tensor_fields copy_fields(const capsule_content& content) {
  tensor_fields fields;
  if (const auto* versioned = std::get_if<DLManagedTensorVersioned*>(&content)) {
    fields.versioned = true;
    fields.version = (*versioned)->version;
    if (fields.version.major != DLPACK_MAJOR_VERSION) {
      return fields;  // another major version has another layout
    }
    fields.flags = (*versioned)->flags;
    fields.tensor = (*versioned)->dl_tensor;
  } else {
    fields.tensor = std::get<DLManagedTensor*>(content)->dl_tensor;
  }
  constexpr std::uint64_t known =
      flag::read_only | flag::is_copied | flag::is_subbyte_type_padded;
  fields.readable = (fields.flags & ~known) == 0;
  if (fields.readable) {
    copy_arrays(fields);
    try {
      fields.structure = check_structure(fields.tensor, detail::storage_of(fields.flags));
    } catch (const conversion_error&) {  // the validator says what is wrong
    }
  }
  return fields;
}

nb::tuple to_tuple(const std::vector<std::int64_t>& values) {
  nb::list made;
  for (const std::int64_t value : values) {
    made.append(value);
  }
  return nb::tuple(made);
}

void describe_tensor(nb::dict& answers, const tensor_fields& fields) {
  const DLTensor& tensor = fields.tensor;
  answers["flags"] = fields.flags;
  answers["device_type"] = static_cast<std::int32_t>(tensor.device.device_type);
  answers["device_id"] = tensor.device.device_id;
  answers["ndim"] = tensor.ndim;
  answers["dtype"] = nb::make_tuple(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  answers["dtype_name"] = to_string(tensor.dtype);
  answers["data"] = reinterpret_cast<std::uintptr_t>(tensor.data);
  answers["byte_offset"] = tensor.byte_offset;
  answers["has_shape"] = tensor.shape != nullptr;
  answers["has_strides"] = tensor.strides != nullptr;
  answers["shape"] = to_tuple(fields.shape);
  answers["strides"] = to_tuple(fields.strides);
}

void describe_structure(nb::dict& answers, const tensor_structure& structure) {
  answers["empty"] = structure.empty;
  answers["first"] = structure.first;
  answers["lowest"] = structure.lowest;
  answers["nbytes"] = structure.nbytes;
  answers["overlapping"] = !structure.unique;
}

/// What stands in a fresh capsule, which stays as it is.
nb::dict read_fields(nb::handle capsule) {
  const tensor_fields fields = copy_fields(read_capsule(capsule));
  nb::dict answers;
  answers["name"] = fields.versioned ? "dltensor_versioned" : "dltensor";
  if (fields.versioned) {
    answers["version"] = nb::make_tuple(fields.version.major, fields.version.minor);
    if (fields.version.major != DLPACK_MAJOR_VERSION) {
      return answers;
    }
  }
  describe_tensor(answers, fields);
  if (fields.structure) {
    describe_structure(answers, *fields.structure);
  }
  return answers;
}

/// What a producer hands over, in a capsule, asked for as `validate` asks.
nb::object ask_capsule(nb::handle x) {
  check_process();
  return ask_producer(x, {}).into_capsule();
}

}  // namespace

void register_tensor_fields(nb::module_& module) {
  module.def("ask_capsule", &ask_capsule, nb::arg("x").none(),
             nb::sig("def ask_capsule(x: typing.Any) -> typing.Any"));
  module.def("read_fields", &read_fields, nb::arg("capsule").none(),
             nb::sig("def read_fields(capsule: typing.Any) -> dict[str, typing.Any]"));
}

}  // namespace usm_dlpack::python
