// SPDX-License-Identifier: Apache-2.0
//
// The functions of nanobind/package.hpp: nothing is thrown through them.
#include "module.hpp"

#include "capsule.hpp"
#include "producer.hpp"
#include "python_objects.hpp"
#include "queues.hpp"
#include "tensor.hpp"

#include <usm_dlpack/nanobind/package.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace usm_dlpack::python {
namespace {

using detail::offer;
using detail::package_interface;
using found_tensor = detail::array_description;

bool has_attribute(nb::handle object, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())), name) == 1;
}

/// Whether an object that is not an array by its type has an attribute of one by itself, like
/// a proxy. Types that are usually meant for other overloads are not queried, and objects that
/// have every attribute are not arrays.
bool has_by_itself(nb::handle object, const char* name) {
  constexpr unsigned long never_arrays =
      Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS |
      Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS |
      Py_TPFLAGS_BASE_EXC_SUBCLASS | Py_TPFLAGS_TYPE_SUBCLASS;
  if (object.is_none() || PyFloat_Check(object.ptr()) != 0 ||
      (PyType_GetFlags(Py_TYPE(object.ptr())) & never_arrays) != 0) {
    return false;
  }
  const nb::object found = find_attribute(object, name, PyExc_Exception);
  return found.is_valid() &&
         (PyCallable_Check(found.ptr()) != 0 || PyDict_Check(found.ptr()) != 0) &&
         !find_attribute(object, "__dlpack_no_such_attribute__", PyExc_Exception).is_valid();
}

/// Our own tensor, which was proved when it was made.
found_tensor offer_tensor(nb::handle array) {
  const tensor& own = *nb::inst_ptr<tensor>(array);
  return {own.get(), own.flags(), array.inc_ref().ptr(), own.proof().usm_type(), {}};
}

/// A capsule with other references: consumed for the lifetime of this object, so that nobody
/// else consumes it, then fresh again.
struct borrowed_capsule {
  nb::object capsule;
  capsule_content content;
  bool taken = false;
};

void give_back(PyObject* holder) noexcept {
  const nb::error_scope keep;
  auto* held = static_cast<borrowed_capsule*>(PyCapsule_GetPointer(holder, nullptr));
  if (held->taken) {
    restore_capsule(held->capsule, held->content);
  }
  delete held;
}

/// The owner of a capsule's content: the capsule itself if nobody else refers to it.
nb::object keeper_of(nb::object capsule, const capsule_content& content) {
#if !defined(Py_GIL_DISABLED)
  if (Py_REFCNT(capsule.ptr()) == 1) {
    return capsule;
  }
#endif
  auto made = std::make_unique<borrowed_capsule>(borrowed_capsule{capsule, content});
  const nb::object holder = checked(PyCapsule_New(made.get(), nullptr, &give_back));
  borrowed_capsule& held = *made.release();
  // The garbage collector may have run code that took the capsule.
  static_cast<void>(read_capsule(capsule));
  consume_capsule(capsule, content);
  held.taken = true;
  return holder;
}

/// Exports a producer's array.
found_tensor offer_foreign(nb::handle array) {
  import_request request;
  // Memory elsewhere is refused after the dtype and rank, so that other overloads are tried.
  request.anywhere = true;
  producer_tensor offered = ask_producer(array, request);
  const capsule_content content = offered.content();
  const content_view view = view_of(content);
  found_tensor found;
  found.tensor = *view.described;
  found.flags = view.flags;
  found.queue = std::move(offered.pending);
  found.owner = keeper_of(offered.into_capsule(), content).release().ptr();
  return found;
}

/// Exports memory, or an array that its own library failed to export, by our exporter.
found_tensor offer_memory(nb::handle array) {
  return offer_tensor(
      to_dlpack_tensor(array, nb::none(), nb::none(), nb::none(), nb::int_(0), nb::none()));
}

bool is_exception(const nb::python_error& error) { return error.matches(PyExc_Exception); }

found_tensor ask_array(nb::handle array) {
  try {
    return offer_foreign(array);
  } catch (const nb::python_error& error) {
    if (!is_exception(error) || (!has_attribute(array, "__sycl_usm_array_interface__") &&
                                 !has_by_itself(array, "__sycl_usm_array_interface__"))) {
      throw;
    }
  }
  return offer_memory(array);
}

offer ask(PyObject* object, found_tensor& out) noexcept {
  const nb::handle array(object);
  offer answer = offer::made;
  const int status = guarded([&] {
    if (is_tensor(array)) {
      check_process();
      out = offer_tensor(array);
    } else if (has_attribute(array, "__dlpack__")) {
      check_process();
      out = ask_array(array);
    } else if (has_attribute(array, "__sycl_usm_array_interface__")) {
      check_process();
      out = offer_memory(array);
    } else if (has_by_itself(array, "__dlpack__")) {
      check_process();
      out = ask_array(array);
    } else if (has_by_itself(array, "__sycl_usm_array_interface__")) {
      check_process();
      out = offer_memory(array);
    } else {
      answer = offer::no_array;
    }
  });
  return status == 0 ? answer : offer::failed;
}

offer find_queue_of(PyObject* object, std::optional<sycl::queue>& out) noexcept {
  const nb::handle array(object);
  const int status = guarded([&] {
    out = is_tensor(array) ? nb::inst_ptr<tensor>(array)->queue() : queue_attribute(array);
  });
  return status == 0 ? (out ? offer::made : offer::no_array) : offer::failed;
}

PyObject* make_known_tensor(DLManagedTensorVersioned* managed,
                            const sycl::queue* queue) noexcept {
  PyObject* made = nullptr;
  guarded([&] {
    managed_tensor owned(managed);
    check_process();
    const nb::object imported = import_managed(std::move(owned));
    if (queue != nullptr) {
      nb::inst_ptr<tensor>(imported)->set_queue(*queue);
    }
    made = imported.inc_ref().ptr();
  });
  return made;
}

void free_after_work(const sycl::queue& queue, void* address) noexcept {
  std::pair<const sycl::queue*, void*> block{&queue, address};
  run_unlocked(
      [](void* given) {
        const auto& [queue_of, memory] = *static_cast<decltype(block)*>(given);
        detail::free_after_work(*queue_of, memory);
      },
      &block);
}

void drop(PyObject* object) noexcept { const auto last = python_reference::adopt(object); }

}  // namespace

void register_package_interface(nb::module_& module) {
  static constexpr package_interface table{package_interface::known_version,
                                           &ask,
                                           &find_queue_of,
                                           &make_known_tensor,
                                           &drop,
                                           &free_after_work,
                                           &set_error,
                                           &set_argument_error};
  module.attr("_package_interface") = checked(PyCapsule_New(
      const_cast<package_interface*>(&table), package_interface::capsule_name, nullptr));
}

}  // namespace usm_dlpack::python
