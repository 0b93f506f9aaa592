// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

namespace usm_dlpack::python {
namespace {

/// Arrays of more dimensions are not copied: the producer has probably not filled them.
constexpr std::int32_t most_dimensions = 64;

thread_local call_observer* current = nullptr;

/// Calls a function; returns the steps and findings of this thread's protocols.
nb::tuple observe(const nb::callable& call) {
  call_observer seen;
  call_observer* const before = std::exchange(current, &seen);
  PyObject* const result = PyObject_CallNoArgs(call.ptr());
  current = before;
  static_cast<void>(checked(result));
  return nb::make_tuple(seen.steps, seen.to_dict());
}

}  // namespace

call_observer* take_observer() noexcept { return std::exchange(current, nullptr); }

void call_observer::read(const DLTensor& tensor) {
  tensor_ = tensor;
  if (tensor.ndim < 0 || tensor.ndim > most_dimensions || tensor.shape == nullptr) {
    return;
  }
  shape_.emplace(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides != nullptr) {
    strides_.emplace(tensor.strides, tensor.strides + tensor.ndim);
  }
}

void call_observer::read(const capsule_content& content) {
  if (const auto* legacy = std::get_if<DLManagedTensor*>(&content)) {
    name_ = "dltensor";
    read((*legacy)->dl_tensor);
    return;
  }
  const DLManagedTensorVersioned& managed = *std::get<DLManagedTensorVersioned*>(content);
  name_ = "dltensor_versioned";
  version_ = managed.version;
  if (managed.version.major != DLPACK_MAJOR_VERSION) {
    return;  // the layout differs
  }
  flags_ = managed.flags;
  if ((managed.flags & ~flag::all) == 0) {
    read(managed.dl_tensor);
  }
}

nb::dict call_observer::to_dict() const {
  nb::dict found;
  found["name"] = name_;
  if (version_) {
    found["version"] = nb::make_tuple(version_->major, version_->minor);
  }
  if (flags_) {
    found["flags"] = *flags_;
  }
  if (tensor_) {
    found["device_type"] = static_cast<std::int32_t>(tensor_->device.device_type);
    found["device_type_name"] =
        detail::device_type_name(static_cast<std::int32_t>(tensor_->device.device_type));
    found["device_id"] = device_id.value_or(tensor_->device.device_id);
    found["ndim"] = tensor_->ndim;
    found["dtype_name"] = to_string(tensor_->dtype);
    found["data"] = reinterpret_cast<std::uintptr_t>(tensor_->data);
    found["byte_offset"] = tensor_->byte_offset;
    found["shape"] = shape_;
    found["has_strides"] = tensor_->strides != nullptr;
    found["strides"] = strides_;
  }
  const bool is_checked = std::find(steps.begin(), steps.end(), "requirements") != steps.end();
  const auto described = is_checked ? std::optional(proof.structure()) : structure;
  if (described) {
    found["empty"] = described->empty;
    found["first"] = described->first;
    found["lowest"] = described->lowest;
    found["nbytes"] = described->nbytes;
    found["overlapping"] = !described->unique;
  }
  found["kind"] = to_string(proof.usm_type());
  found["device_proof"] = name_of(proof.device_proved());
  found["bounds_proof"] = name_of(proof.bounds_proved());
  found["base"] = proof.base();
  found["size"] = proof.size();
  found["origin"] = origin;
  if (context) {
    found["context"] = to_dpctl(*context);
  }
  if (object) {
    found["object_base"] = object->first;
    found["object_size"] = object->second - object->first;
  }
  return found;
}

void register_observer(nb::module_& module) {
  module.def("observe", &observe, nb::arg("call"),
             nb::sig("def observe(call: collections.abc.Callable[[], object]) -> "
                     "tuple[list[str], dict[str, typing.Any]]"));
}

}  // namespace usm_dlpack::python
