// SPDX-License-Identifier: Apache-2.0
//
// dpctl's objects to and from SYCL's, by the C functions that dpctl's modules export
// (`__pyx_capi__`), and by capsules.
#include "python_objects.hpp"

#include "process.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>

namespace usm_dlpack::python {
namespace {

[[noreturn]] void refuse_type(const char* field, const char* expected, nb::handle found) {
  const std::string sentence = std::string(field) + ": expected " + expected +
                               ", found an object of type " + name_of_type(found) +
                               "; pass one of dpctl's objects";
  throw nb::type_error(sentence.c_str());
}

/// What dpctl calls a SYCL object: the module `dpctl._sycl_queue`, in it the class
/// `SyclQueue`, and the functions `SyclQueue_GetQueueRef` and `SyclQueue_Make` that it
/// exports.
template <class Object>
struct names;
template <>
struct names<sycl::queue> {
  static constexpr const char *lower = "queue", *capital = "Queue";
};
template <>
struct names<sycl::context> {
  static constexpr const char *lower = "context", *capital = "Context";
};
template <>
struct names<sycl::device> {
  static constexpr const char *lower = "device", *capital = "Device";
};

void* exported_function(nb::handle module, const std::string& name) {
  const nb::object capsule = module.attr("__pyx_capi__")[name.c_str()];
  void* function = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (function == nullptr) {
    throw nb::python_error();
  }
  return function;
}

/// dpctl's class of a SYCL object, found once and kept for the life of the process.
template <class Object>
struct dpctl_class {
  PyTypeObject* type;
  const void* (*get)(PyObject*);          ///< borrows the SYCL object; null with an error set
  PyObject* (*make)(const void* object);  ///< a new object that holds a copy

  static const dpctl_class& found() {
    // No lock: an import lets other threads run, which would wait for it with the GIL held.
    static std::atomic<const dpctl_class*> kept{nullptr};
    const dpctl_class* known = kept.load(std::memory_order_acquire);
    if (known == nullptr) {
      known = new dpctl_class(find());
      kept.store(known, std::memory_order_release);
    }
    return *known;
  }

 private:
  static dpctl_class find() {
    const std::string capital = names<Object>::capital;
    const std::string name = "Sycl" + capital;
    const nb::module_ module =
        nb::module_::import_((std::string("dpctl._sycl_") + names<Object>::lower).c_str());
    nb::object type = module.attr(name.c_str());
    return {reinterpret_cast<PyTypeObject*>(type.release().ptr()),
            reinterpret_cast<const void* (*)(PyObject*)>(
                exported_function(module, name + "_Get" + capital + "Ref")),
            reinterpret_cast<PyObject* (*)(const void*)>(
                exported_function(module, name + "_Make"))};
  }
};

// By the object's real type: `__class__` may say anything.
template <class Object>
const Object* in_dpctl(nb::handle object) {
  const auto& known = dpctl_class<Object>::found();
  if (PyType_IsSubtype(Py_TYPE(object.ptr()), known.type) == 0) {
    return nullptr;
  }
  const void* held = known.get(object.ptr());
  if (held == nullptr) {
    if (PyErr_Occurred() != nullptr) {
      throw nb::python_error();
    }
    refuse_type(names<Object>::lower, "one that was made", object);
  }
  return static_cast<const Object*>(held);
}

template <class Object>
nb::object make_dpctl(const Object& object) {
  check_process();  // dpctl asks the runtime what the object is
  PyObject* made = dpctl_class<Object>::found().make(&object);
  if (made == nullptr) {
    throw nb::python_error();
  }
  return nb::steal(made);
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

without_gil::~without_gil() {
  {
    const interpreter_gate gate;
    if (gate.open()) {
      PyEval_RestoreThread(state_);
      return;
    }
  }
  // A daemon thread, which Python would end by unwinding it, through functions that cannot be
  // unwound: it waits for the end of the process instead, as Python 3.14 itself lets it do.
  while (true) {
    pause();
  }
}

void set_error(const conversion_error& error) {
  const nb::object made =
      nb::module_::import_("usm_dlpack._errors")
          .attr("from_parts")(to_string(error.code()), error.field().c_str(),
                              error.expected().c_str(), error.found().c_str(),
                              error.remedy().c_str());
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

std::string name_of_type(nb::handle object) {
  const nb::object name = nb::module_::import_("usm_dlpack._errors").attr("type_name")(object);
  return nb::borrow<nb::str>(name).c_str();
}

std::string text_of(nb::handle object) {
  const nb::object text = nb::module_::import_("usm_dlpack._errors").attr("shown")(object);
  return nb::borrow<nb::str>(text).c_str();
}

const sycl::queue* find_queue(nb::handle object) {
  const auto* queue = in_capsule<sycl::queue>(object, "SyclQueueRef");
  return queue != nullptr ? queue : in_dpctl<sycl::queue>(object);
}

sycl::queue to_queue(nb::handle object) {
  const sycl::queue* queue = find_queue(object);
  if (queue == nullptr) {
    refuse_type("queue", "a dpctl.SyclQueue or a capsule \"SyclQueueRef\"", object);
  }
  return *queue;
}

sycl::context to_context(nb::handle object) {
  if (const sycl::queue* queue = find_queue(object)) {
    return queue->get_context();
  }
  const auto* context = in_capsule<sycl::context>(object, "SyclContextRef");
  if (context == nullptr) {
    context = in_dpctl<sycl::context>(object);
  }
  if (context == nullptr) {
    refuse_type("syclobj", "a dpctl.SyclContext, a dpctl.SyclQueue or a capsule of either",
                object);
  }
  return *context;
}

sycl::device to_device(nb::handle object) {
  const auto* device = in_dpctl<sycl::device>(object);
  if (device == nullptr) {
    refuse_type("device", "a dpctl.SyclDevice", object);
  }
  return *device;
}

nb::object to_dpctl(const sycl::device& device) { return make_dpctl(device); }
nb::object to_dpctl(const sycl::context& context) { return make_dpctl(context); }
nb::object to_dpctl(const sycl::queue& queue) { return make_dpctl(queue); }

}  // namespace usm_dlpack::python
