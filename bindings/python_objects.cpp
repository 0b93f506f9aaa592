// SPDX-License-Identifier: Apache-2.0
//
// dpctl's objects to and from SYCL's. dpctl gives borrowed addresses (`addressof_ref`) and
// capsules, and takes capsules or the C functions that its modules export (`__pyx_capi__`).
#include "python_objects.hpp"

#include <chrono>
#include <cstdint>
#include <memory>

namespace usm_dlpack::python {
namespace {

[[noreturn]] void refuse_type(const char* field, const char* expected, nb::handle found) {
  const std::string sentence = std::string(field) + ": expected " + expected +
                               ", found an object of type " + name_of_type(found) +
                               "; pass one of dpctl's objects";
  throw nb::type_error(sentence.c_str());
}

bool is_dpctl(nb::handle object, const char* type) {
  // By the object's real type: `__class__` may say anything.
  const nb::object wanted = nb::module_::import_("dpctl").attr(type);
  return PyType_IsSubtype(Py_TYPE(object.ptr()),
                          reinterpret_cast<PyTypeObject*>(wanted.ptr())) != 0;
}

template <class Object>
const Object& borrowed(nb::handle object, const char* type) {
  // dpctl's own method: a subclass may have another of the same name.
  const nb::object method = nb::module_::import_("dpctl").attr(type).attr("addressof_ref");
  const auto address = nb::cast<std::uintptr_t>(method(object));
  return *reinterpret_cast<const Object*>(address);
}

template <class Object>
const Object* in_capsule(nb::handle object, const char* name) {
  return PyCapsule_IsValid(object.ptr(), name) != 0
             ? static_cast<const Object*>(PyCapsule_GetPointer(object.ptr(), name))
             : nullptr;
}

}  // namespace

void interpreter_gate::close() {
  closer_ = std::this_thread::get_id();
  closed_ = true;
  const nb::gil_scoped_release unlocked;
  for (int tries = 0; inside_ != 0 && tries < 10000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string name_of_type(nb::handle object) {
  const nb::object name = nb::module_::import_("usm_dlpack._errors").attr("type_name")(object);
  return nb::borrow<nb::str>(name).c_str();
}

sycl::queue to_queue(nb::handle object) {
  if (const auto* queue = in_capsule<sycl::queue>(object, "SyclQueueRef")) {
    return *queue;
  }
  if (!is_dpctl(object, "SyclQueue")) {
    refuse_type("queue", "a dpctl.SyclQueue or a capsule \"SyclQueueRef\"", object);
  }
  return borrowed<sycl::queue>(object, "SyclQueue");
}

sycl::context to_context(nb::handle object) {
  if (const auto* context = in_capsule<sycl::context>(object, "SyclContextRef")) {
    return *context;
  }
  if (is_dpctl(object, "SyclContext")) {
    return borrowed<sycl::context>(object, "SyclContext");
  }
  if (PyCapsule_IsValid(object.ptr(), "SyclQueueRef") != 0 || is_dpctl(object, "SyclQueue")) {
    return to_queue(object).get_context();
  }
  refuse_type("syclobj", "a dpctl.SyclContext, a dpctl.SyclQueue or a capsule of either",
              object);
}

sycl::device to_device(nb::handle object) {
  if (!is_dpctl(object, "SyclDevice")) {
    refuse_type("device", "a dpctl.SyclDevice", object);
  }
  return borrowed<sycl::device>(object, "SyclDevice");
}

nb::object to_dpctl(const sycl::device& device) {
  const nb::object exported =
      nb::module_::import_("dpctl._sycl_device").attr("__pyx_capi__")["SyclDevice_Make"];
  const char* signature = PyCapsule_GetName(exported.ptr());
  void* function = PyCapsule_GetPointer(exported.ptr(), signature);
  if (function == nullptr) {
    throw nb::python_error();
  }
  // PySyclDeviceObject *SyclDevice_Make(DPCTLSyclDeviceRef): copies the sycl::device it points
  // to.
  const auto make = reinterpret_cast<PyObject* (*)(const void*)>(function);
  PyObject* made = make(&device);
  if (made == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(made);
}

nb::object to_dpctl(const sycl::context& context) {
  auto copy = std::make_unique<sycl::context>(context);
  PyObject* capsule = PyCapsule_New(copy.get(), "SyclContextRef", [](PyObject* unconsumed) {
    if (PyCapsule_IsValid(unconsumed, "SyclContextRef") != 0) {
      delete static_cast<sycl::context*>(PyCapsule_GetPointer(unconsumed, "SyclContextRef"));
    }
  });
  if (capsule == nullptr) {
    throw nb::python_error();
  }
  copy.release();
  const nb::object owned = nb::steal(capsule);
  return nb::module_::import_("dpctl").attr("SyclContext")(owned);
}

}  // namespace usm_dlpack::python
