// SPDX-License-Identifier: Apache-2.0
//
// The functions of python/package.hpp. They throw nothing.
#include "extensions.hpp"
#include "capsule.hpp"
#include "frees.hpp"
#include "places.hpp"
#include "process.hpp"
#include "producer.hpp"
#include "queues.hpp"
#include "tensor.hpp"
#include "to_dlpack_tensor.hpp"

#include <usm_dlpack/python/package.hpp>

namespace usm_dlpack::python {
namespace {

using detail::offer;
using detail::package_interface;
using detail::proved_tensor;

constexpr const char* sycl_interface = "__sycl_usm_array_interface__";

bool has_attribute(nb::handle object, const char* name) {
  return type_has(object, nb::str(name));
}

/// Whether an object has an attribute of an array that its type does not have, as a proxy may.
/// Types that are usually meant for other overloads are not queried. An object that has every
/// attribute, like a mock, is not an array.
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

/// Whether a tensor has the dtype and the rank of the view, if it has any. This is compared
/// before anything is proved, because another overload may take an array of another dtype or
/// rank, even if this one would refuse its memory.
bool has_type(const DLTensor& tensor, const requirements& wanted) {
  return (!wanted.dtype || same_data_type(tensor.dtype, *wanted.dtype)) &&
         (!wanted.ndim || tensor.ndim == *wanted.ndim);
}

/// dpnp exports arrays of rank 0 as read-only, though they are not.
void check_flags(std::uint64_t flags, std::int32_t ndim, const requirements& wanted) {
  if (wanted.writable && (flags & flag::read_only) != 0) {
    detail::refuse_read_only_view(
        ndim == 0 ? "if it is dpnp's, pass usm_dlpack.to_dlpack_tensor(x); else " : "");
  }
}

/// Compares a proved tensor with what is wanted.
offer compare(const proved_tensor& proved, const requirements& wanted) {
  if (!has_type(proved.described, wanted)) {
    return offer::other_type;
  }
  check_flags(proved.flags, proved.ndim(), wanted);
  detail::check_kind(proved.proof, wanted);
  return offer::made;
}

/// Offers our own tensor, which was proved when it was made.
offer offer_tensor(nb::handle array, const requirements& wanted, proved_tensor& out) {
  const tensor& offered = *nb::inst_ptr<tensor>(array);
  const proved_tensor& own = offered.get();
  out.described = own.described;  // shape and strides belong to the owner
  out.flags = own.flags;
  out.proof = own.proof;
  out.queue = own.queue;
  out.owner = detail::borrow(array.ptr());
  return compare(out, wanted);
}

/// A capsule that others refer to as well. For the lifetime of this object it is marked as
/// consumed, so that nobody else consumes it; then it is fresh again.
struct borrowed_capsule {
  nb::object capsule;
  capsule_content content;
};
constexpr const char* borrowed_name = "usm_dlpack.borrowed_capsule";

void give_back(PyObject* holder) noexcept {
  const nb::error_scope keep;
  auto* held = static_cast<borrowed_capsule*>(PyCapsule_GetPointer(holder, borrowed_name));
  mark_capsule(held->capsule, held->content, capsule_state::fresh);
  delete held;
}

/// The owner of a capsule's content: the capsule itself if nobody else refers to it.
nb::object keeper_of(nb::object& capsule, const capsule_content& content) {
  // Reading `sycl_queue` may have run code that took the capsule.
  static_cast<void>(read_capsule(capsule));
#if !defined(Py_GIL_DISABLED)
  if (Py_REFCNT(capsule.ptr()) == 1) {
    return std::move(capsule);
  }
#endif
  auto made = std::make_unique<borrowed_capsule>(borrowed_capsule{capsule, content});
  nb::object holder = checked(PyCapsule_New(made.get(), borrowed_name, &give_back));
  made.release();
  mark_capsule(capsule, content, capsule_state::consumed);
  return holder;
}

/// Exports an array by its own library; nothing if that fails and the array has an interface.
std::optional<offered_capsule> try_producer(nb::handle array) {
  import_request request;
  request.for_extension = true;
  try {
    return ask_producer(array, request);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception) ||
        (!has_attribute(array, sycl_interface) && !has_by_itself(array, sycl_interface))) {
      throw;
    }
    return std::nullopt;
  }
}

/// Proves a producer's array.
offer offer_foreign(nb::handle array, offered_capsule offered, const requirements& wanted,
                    proved_tensor& out) {
  const nb::ft_object_guard alone(offered.capsule);
  const capsule_content content = read_capsule(offered.capsule);
  const DLTensor& described = content.described();
  const bool fits = has_type(described, wanted);
  if (fits) {
    check_flags(content.flags(), described.ndim, wanted);
    out = proved_tensor(
        described, content.flags(),
        detail::import_tensor(described, wanted, detail::storage_of(content.flags())));
    out.queue = offered.queue ? std::move(offered.queue) : queue_attribute(array);
    if (out.queue) {
      detail::check_context(out.proof, *out.queue);
    }
  } else {
    out.described = described;
    out.flags = content.flags();
  }
  out.owner = keep(keeper_of(offered.capsule, content));
  return fits ? offer::made : offer::other_type;
}

/// Offers an object that has only the SYCL array interface.
offer offer_memory(nb::handle array, const requirements& wanted, proved_tensor& out) {
  out = prove_memory(array, nb::none(), nb::none(), nb::none(), nb::int_(0), nb::none());
  return compare(out, wanted);
}

/// Offers an array. If its own library cannot export it, but it has the SYCL array interface,
/// offers it by that.
offer offer_array(nb::handle array, const requirements& wanted, proved_tensor& out) {
  std::optional<offered_capsule> offered = try_producer(array);
  return offered ? offer_foreign(array, *std::move(offered), wanted, out)
                 : offer_memory(array, wanted, out);
}

using offering = offer (*)(nb::handle array, const requirements& wanted, proved_tensor& out);

/// Chooses how to offer an object; null if it is no array.
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

offer ask(PyObject* object, const requirements& wanted, proved_tensor& out) noexcept {
  offer answer = offer::no_array;
  const int status = guarded([&] {
    const inside_module inside;
    free_finished();
    const offering found = find_offering(object);
    if (found == nullptr) {
      return;
    }
    check_process();
    answer = offer::refused;
    try {
      answer = found(object, wanted, out);
    } catch (const conversion_error&) {
      set_python_error();
    }
  });
  return status == 0 ? answer : offer::failed;
}

/// The list of the owner of an array that `ask` gave: a DLPackTensor, or a capsule of one.
/// Null if its memory is not of this package.
std::shared_ptr<queue_list> list_of(nb::handle owner) {
  if (is_tensor(owner)) {
    return nb::inst_ptr<tensor>(owner)->queues();
  }
  if (PyCapsule_IsValid(owner.ptr(), borrowed_name) != 0) {
    const void* borrowed = PyCapsule_GetPointer(owner.ptr(), borrowed_name);
    return list_behind(static_cast<const borrowed_capsule*>(borrowed)->content);
  }
  return PyCapsule_CheckExact(owner.ptr()) != 0 ? list_behind(read_capsule(owner)) : nullptr;
}

std::exception_ptr wait_for_array(const proved_tensor& array, bool own) noexcept {
  try {
    if (array.structure().empty) {
      return nullptr;
    }
    const auto left_out = own ? std::nullopt : array.queue;
    if (const auto list = list_of(std::get<detail::python_object>(array.owner).get())) {
      list->wait(left_out, true);
    }
    if (own && array.queue && !detail::is_recording(*array.queue)) {
      wait_for(*array.queue);
    }
    wait_for(dpctl_queue(array.proof.device_id()));
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

const sycl::queue* queue_on(std::int32_t device_id) noexcept {
  const sycl::queue* found = nullptr;
  guarded([&] {
    const inside_module inside;
    found = &package_queue(device_id);
  });
  return found;
}

PyObject* make_known_tensor(DLManagedTensorVersioned* managed, PyObject* owner,
                            const sycl::queue& queue, const requirements& wanted) noexcept {
  PyObject* made = nullptr;
  guarded([&] {
    managed_tensor owned(managed);
    const inside_module inside;
    check_process();
    proved_tensor proved = prove(std::move(owned), queue);
    detail::check_kind(proved.proof, wanted);
    const bool has_list = owner != nullptr && is_tensor(owner);
    auto list = has_list ? nb::inst_ptr<tensor>(owner)->queues() : nullptr;
    made = make_tensor(std::move(proved), std::move(list)).release().ptr();
  });
  return made;
}

void free_array(const sycl::queue& queue, void* address) noexcept {
  free_usm_after_work({queue}, address, queue.get_context());
}

std::exception_ptr wait_for_work(const sycl::queue& queue) noexcept {
  try {
    check_process();
    wait_unlocked(queue);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

std::exception_ptr wait_for_default(const sycl::queue& queue) noexcept {
  try {
    check_process();
    wait_unlocked(dpctl_queue(device_id(queue.get_device())));
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

int check_usable() noexcept {
  return guarded([] {
    const inside_module inside;
    check_process();
  });
}

void drop(PyObject* object) noexcept { const python_reference last(object); }

}  // namespace

void register_package_interface(guarded_module& module) {
  static constexpr package_interface table{package_interface::known_version,
                                           &ask,
                                           &wait_for_array,
                                           &queue_on,
                                           &make_known_tensor,
                                           &drop,
                                           &free_array,
                                           &wait_for_work,
                                           &wait_for_default,
                                           &check_usable,
                                           &set_conversion_error};
  module.attr("_package_interface") = checked(PyCapsule_New(
      const_cast<package_interface*>(&table), package_interface::capsule_name, nullptr));
}

}  // namespace usm_dlpack::python
