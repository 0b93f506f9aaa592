// SPDX-License-Identifier: Apache-2.0
//
// The functions of nanobind/package.hpp: nothing is thrown through them.
#include "module.hpp"

#include <usm_dlpack/nanobind/package.hpp>

namespace usm_dlpack::python {
namespace {

using detail::offer;
using detail::package_interface;
using found_tensor = detail::array_description;

constexpr const char* sycl_interface = "__sycl_usm_array_interface__";

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
    mark_capsule(held->capsule, held->content, capsule_state::fresh);
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
  mark_capsule(capsule, content, capsule_state::consumed);
  held.taken = true;
  return holder;
}

/// Exports a producer's array. Memory elsewhere is refused after the dtype and rank, so that
/// other overloads are tried.
found_tensor offer_foreign(nb::handle array) {
  import_request request;
  request.anywhere = true;
  producer_tensor offered = ask_producer(array, request);
  const capsule_content content = read_capsule(offered.capsule);
  const content_view view = view_of(content);
  found_tensor found;
  found.tensor = *view.described;
  found.flags = view.flags;
  found.queue = std::move(offered.pending);
  found.owner = keeper_of(std::move(offered.capsule), content).release().ptr();
  return found;
}

/// Exports memory by our exporter.
found_tensor offer_memory(nb::handle array) {
  return offer_tensor(
      to_dlpack_tensor(array, nb::none(), nb::none(), nb::none(), nb::int_(0), nb::none()));
}

/// Exports an array, or as memory what its own library failed to export.
found_tensor offer_array(nb::handle array) {
  try {
    return offer_foreign(array);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception) ||
        (!has_attribute(array, sycl_interface) && !has_by_itself(array, sycl_interface))) {
      throw;
    }
  }
  return offer_memory(array);
}

using offering = found_tensor (*)(nb::handle array);

/// Chooses how to export an object; null for what is no array.
offering find_offering(nb::handle array) {
  if (is_tensor(array)) {
    return &offer_tensor;
  }
  for (const auto& has : {&has_attribute, &has_by_itself}) {
    if (has(array, "__dlpack__")) {
      return &offer_array;
    }
    if (has(array, sycl_interface)) {
      return &offer_memory;
    }
  }
  return nullptr;
}

offer ask(PyObject* object, found_tensor& out) noexcept {
  const inside_module inside;
  offer answer = offer::made;
  const int status = guarded([&] {
    if (const offering found = find_offering(object)) {
      check_process();
      out = found(object);
    } else {
      answer = offer::no_array;
    }
  });
  return status == 0 ? answer : offer::failed;
}

offer find_queue_of(PyObject* object, std::optional<sycl::queue>& out) noexcept {
  const inside_module inside;
  const nb::handle array(object);
  const int status = guarded([&] {
    out = is_tensor(array) ? nb::inst_ptr<tensor>(array)->queue() : queue_attribute(array);
  });
  return status == 0 ? (out ? offer::made : offer::no_array) : offer::failed;
}

PyObject* make_known_tensor(DLManagedTensorVersioned* managed,
                            const sycl::queue* queue) noexcept {
  const inside_module inside;
  PyObject* made = nullptr;
  guarded([&] {
    managed_tensor owned(managed);
    check_process();
    made = import_managed(std::move(owned),
                          queue == nullptr ? std::nullopt : std::optional(*queue))
               .release()
               .ptr();
  });
  return made;
}

void free_after_work(const sycl::queue& queue, void* address) noexcept {
  free_memory([queue, address] { detail::free_after_work(queue, address); });
}

std::exception_ptr wait_for_work(const sycl::queue& queue) noexcept {
  try {
    check_process();
    run_unlocked([&queue] { detail::wait_in_turn(queue); });
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

int check_usable() noexcept {
  const inside_module inside;
  return guarded([] { check_process(); });
}

void drop(PyObject* object) noexcept { const python_reference last(object); }

}  // namespace

void register_package_interface(guarded_module& module) {
  static constexpr package_interface table{package_interface::known_version,
                                           &ask,
                                           &find_queue_of,
                                           &make_known_tensor,
                                           &drop,
                                           &free_after_work,
                                           &wait_for_work,
                                           &check_usable,
                                           &set_conversion_error};
  module.attr("_package_interface") = checked(PyCapsule_New(
      const_cast<package_interface*>(&table), package_interface::capsule_name, nullptr));
}

}  // namespace usm_dlpack::python
