// SPDX-License-Identifier: Apache-2.0
//
// Source of the capsules' names and destructors: DLPack "Python Specification".
#include "capsule.hpp"

#include "python_objects.hpp"

#include <cstring>
#include <string>

namespace usm_dlpack::python {
namespace {

template <class Managed>
struct names;
template <>
struct names<DLManagedTensorVersioned> {
  static constexpr const char* fresh = "dltensor_versioned";
  static constexpr const char* consumed = "used_dltensor_versioned";
};
template <>
struct names<DLManagedTensor> {
  static constexpr const char* fresh = "dltensor";
  static constexpr const char* consumed = "used_dltensor";
};

// Also runs for consumed capsules, which own nothing.
template <class Managed>
void destroy_capsule(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, names<Managed>::fresh) != 0) {
    const nb::error_scope keep;
    const std::unique_ptr<Managed, managed_deleter> gone(
        static_cast<Managed*>(PyCapsule_GetPointer(capsule, names<Managed>::fresh)));
  }
}

template <class Owned>
nb::object wrap(Owned managed) {
  using managed_type = typename Owned::element_type;
  nb::object capsule = checked(PyCapsule_New(managed.get(), names<managed_type>::fresh,
                                             &destroy_capsule<managed_type>));
  managed.release();
  return capsule;
}

// A capsule's name may be any bytes; a sentence is UTF-8.
std::string printable(const char* name) {
  const auto size = static_cast<Py_ssize_t>(std::strlen(name));
  const nb::object text = checked(PyUnicode_DecodeASCII(name, size, "backslashreplace"));
  return nb::borrow<nb::str>(text).c_str();
}

[[noreturn]] void refuse_capsule(const std::string& found) {
  detail::refuse(errc::capsule_unusable, "capsule",
                 "a fresh one named \"dltensor_versioned\" or \"dltensor\"", found,
                 "ask the producer for a new one by __dlpack__()");
}

}  // namespace

capsule_content read_capsule(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr()) == 0) {
    refuse_capsule(std::string("an object of type ") + name_of_type(object));
  }
  if (PyCapsule_IsValid(object.ptr(), names<DLManagedTensorVersioned>::fresh) != 0) {
    return static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(object.ptr(), names<DLManagedTensorVersioned>::fresh));
  }
  if (PyCapsule_IsValid(object.ptr(), names<DLManagedTensor>::fresh) != 0) {
    return static_cast<DLManagedTensor*>(
        PyCapsule_GetPointer(object.ptr(), names<DLManagedTensor>::fresh));
  }
  const char* name = PyCapsule_GetName(object.ptr());
  PyErr_Clear();
  refuse_capsule(name == nullptr ? std::string("one without a name")
                                 : "one named \"" + printable(name) + "\"");
}

content_view view_of(const capsule_content& content) {
  if (const auto* versioned = std::get_if<DLManagedTensorVersioned*>(&content)) {
    detail::check_header(**versioned);
    return {&(*versioned)->dl_tensor, (*versioned)->flags};
  }
  return {&std::get<DLManagedTensor*>(content)->dl_tensor, 0};
}

void consume_capsule(nb::handle object, const capsule_content& content) noexcept {
  const bool versioned = std::holds_alternative<DLManagedTensorVersioned*>(content);
  PyCapsule_SetName(object.ptr(), versioned ? names<DLManagedTensorVersioned>::consumed
                                            : names<DLManagedTensor>::consumed);
}

void restore_capsule(nb::handle object, const capsule_content& content) noexcept {
  const bool versioned = std::holds_alternative<DLManagedTensorVersioned*>(content);
  PyCapsule_SetName(object.ptr(), versioned ? names<DLManagedTensorVersioned>::fresh
                                            : names<DLManagedTensor>::fresh);
}

nb::object make_capsule(managed_tensor managed) { return wrap(std::move(managed)); }
nb::object make_capsule(legacy_managed_tensor managed) { return wrap(std::move(managed)); }

}  // namespace usm_dlpack::python
