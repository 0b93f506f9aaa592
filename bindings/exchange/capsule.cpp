// SPDX-License-Identifier: Apache-2.0
#include "exchange/capsule.hpp"

#include <cstring>

namespace usm_dlpack::python {
namespace {

/// The names of capsules, by `capsule_state`.
template <class Managed>
constexpr const char* names[] = {"dltensor", "used_dltensor"};
template <>
constexpr const char* names<DLManagedTensorVersioned>[] = {"dltensor_versioned",
                                                           "used_dltensor_versioned"};

/// The managed tensor in a fresh capsule, or null.
template <class Managed>
Managed* find_managed(PyObject* object) noexcept {
  return PyCapsule_IsValid(object, names<Managed>[0]) != 0
             ? static_cast<Managed*>(PyCapsule_GetPointer(object, names<Managed>[0]))
             : nullptr;
}

// This also runs for consumed capsules, which own nothing.
template <class Managed>
void destroy_capsule(PyObject* capsule) noexcept {
  const nb::error_scope keep;
  const std::unique_ptr<Managed, managed_deleter> gone(find_managed<Managed>(capsule));
}

template <class Owned>
nb::object wrap(Owned managed) {
  using managed_type = typename Owned::element_type;
  nb::object capsule = checked(
      PyCapsule_New(managed.get(), names<managed_type>[0], &destroy_capsule<managed_type>));
  managed.release();
  return capsule;
}

// A capsule's name may be any bytes, but a sentence must be UTF-8.
std::string printable(const char* name) {
  const auto size = static_cast<Py_ssize_t>(std::strlen(name));
  const nb::object text = checked(PyUnicode_DecodeASCII(name, size, "backslashreplace"));
  return nb::borrow<nb::str>(text).c_str();
}

std::string description_of(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr()) == 0) {
    return text_of_type(object);
  }
  const char* name = PyCapsule_GetName(object.ptr());
  PyErr_Clear();
  return name == nullptr ? "one without a name" : "one named \"" + printable(name) + "\"";
}

}  // namespace

capsule_content read_capsule(nb::handle object) {
  if (auto* versioned = find_managed<DLManagedTensorVersioned>(object.ptr())) {
    detail::check_header(*versioned);
    return capsule_content(versioned);
  }
  if (auto* legacy = find_managed<DLManagedTensor>(object.ptr())) {
    return capsule_content(legacy);
  }
  detail::refuse(errc::capsule_unusable, "capsule",
                 "a fresh one named \"dltensor_versioned\" or \"dltensor\"",
                 description_of(object),
                 PyCapsule_CheckExact(object.ptr()) != 0
                     ? "ask the producer for a new one by __dlpack__()"
                     : "have __dlpack__() return a capsule");
}

void mark_capsule(nb::handle object, const capsule_content& content,
                  capsule_state state) noexcept {
  std::visit(
      [&](auto* managed) {
        using managed_type = std::remove_pointer_t<decltype(managed)>;
        PyCapsule_SetName(object.ptr(), names<managed_type>[static_cast<int>(state)]);
      },
      content.managed());
}

detail::tensor_owner consume_capsule(nb::handle object,
                                     const capsule_content& content) noexcept {
  mark_capsule(object, content, capsule_state::consumed);
  return std::visit(
      [](auto* managed) -> detail::tensor_owner {
        return std::unique_ptr<std::remove_pointer_t<decltype(managed)>, managed_deleter>(
            managed);
      },
      content.managed());
}

nb::object make_capsule(managed_tensor managed) { return wrap(std::move(managed)); }
nb::object make_capsule(legacy_managed_tensor managed) { return wrap(std::move(managed)); }

}  // namespace usm_dlpack::python
