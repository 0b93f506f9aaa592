// SPDX-License-Identifier: Apache-2.0
//
// The functions of python/package.hpp, for extensions of users. They throw nothing, and only C
// types cross. A new function needs a field of the table, and a new version.
#include "arguments/places.hpp"
#include "exchange/capsule.hpp"
#include "exchange/producer.hpp"
#include "exchange/to_dlpack_tensor.hpp"
#include "memory/frees.hpp"
#include "module.hpp"
#include "order/process.hpp"
#include "order/queues.hpp"
#include "tensor/tensor.hpp"

#include <usm_dlpack/python/package.hpp>

#include <cstring>
#include <memory>

namespace usm_dlpack::python {
namespace {

using detail::failed_wait;
using detail::import_status;
using detail::imported_array;
using detail::package_interface;

/// Whether an object has an attribute of an array. A class does not count: such attributes are
/// its instances'.
bool has(nb::handle object, const char* name) {
  const nb::object attribute = find_attribute(object, name, PyExc_Exception);
  return attribute.is_valid() && !attribute.is_none() && PyType_Check(object.ptr()) == 0;
}

// --- Owners of arrays: a DLPackTensor, or a capsule of an argument

/// An array of another library. Its tensor may have no queue; the extension then gets the
/// package's.
struct argument {
  proved_tensor tensor;
  const sycl::queue* queue;
};
constexpr const char* argument_name = "usm_dlpack.argument";

void destroy_argument(PyObject* owner) noexcept {
  const nb::error_scope keep;
  delete static_cast<argument*>(PyCapsule_GetPointer(owner, argument_name));
}

const proved_tensor& tensor_behind(nb::handle owner) {
  return is_tensor(owner)
             ? nb::inst_ptr<tensor>(owner)->get()
             : static_cast<const argument*>(PyCapsule_GetPointer(owner.ptr(), argument_name))
                   ->tensor;
}

std::shared_ptr<queue_list> list_of(nb::handle owner) {
  return is_tensor(owner) ? nb::inst_ptr<tensor>(owner)->queues()
                          : list_behind(tensor_behind(owner).owner);
}

/// What an extension gets of an array.
imported_array to_imported_array(nb::object owner, const proved_tensor& array,
                                 const sycl::queue& queue) {
  const usm_allocation& proof = array.proof;
  return {owner.release().ptr(),
          &array.described,
          &queue,
          &detail::import_protocol::true_device(proof),
          array.flags,
          proof.base(),
          proof.size(),
          proof.device_id(),
          static_cast<std::int32_t>(proof.usm_type()),
          static_cast<std::int32_t>(proof.device_proved()),
          static_cast<std::int32_t>(proof.bounds_proved())};
}

imported_array to_imported_argument(proved_tensor proved) {
  auto read = std::make_unique<argument>(argument{std::move(proved), nullptr});
  const proved_tensor& array = read->tensor;
  read->queue = array.queue ? &*array.queue : &package_queue(array.proof.device_id());
  const sycl::queue& queue = *read->queue;
  nb::object owner = checked(PyCapsule_New(read.get(), argument_name, &destroy_argument));
  read.release();
  return to_imported_array(std::move(owner), array, queue);
}

// --- Imports

/// Imports the content of a producer's capsule. A tensor in host memory is not consumed.
import_status import_offered(nb::handle array, offered_capsule offered, imported_array& out) {
  const nb::ft_object_guard alone(offered.capsule);
  const capsule_content content = read_capsule(offered.capsule);
  if (content.described().device.device_type == kDLCPU) {
    return import_status::on_host;
  }
  proved_tensor proved = prove_content(content, std::nullopt);
  proved.queue = offered.queue ? std::move(offered.queue) : queue_attribute(array);
  if (proved.queue) {
    detail::check_context(proved.proof, *proved.queue);
  }
  static_cast<void>(read_capsule(offered.capsule));  // `sycl_queue` may have run code
  proved.owner = consume_capsule(offered.capsule, content);
  out = to_imported_argument(std::move(proved));
  return import_status::in_usm;
}

/// Imports our own tensor, which was proved when it was made.
import_status import_tensor(nb::handle object, imported_array& out) {
  const tensor& own = *nb::inst_ptr<tensor>(object);
  out = to_imported_array(nb::borrow(object), own.get(), own.queue());
  return import_status::in_usm;
}

import_status import_by_dlpack(nb::handle object, imported_array& out) {
  import_request request;
  request.for_extension = true;
  offered_capsule offered = export_array(object, request);
  return offered.capsule.is_valid() ? import_offered(object, std::move(offered), out)
                                    : import_status::on_host;
}

/// Imports an object that has only the SYCL array interface.
import_status import_memory(nb::handle object, imported_array& out) {
  const nb::none none;
  out = to_imported_argument(prove_memory(object, none, none, none, nb::int_(0), none));
  return import_status::in_usm;
}

/// Chooses how to import an object; null if it is no array.
auto find_import(nb::handle object) -> import_status (*)(nb::handle, imported_array&) {
  return is_tensor(object)                             ? &import_tensor
         : has(object, "__dlpack__")                   ? &import_by_dlpack
         : has(object, "__sycl_usm_array_interface__") ? &import_memory
                                                       : nullptr;
}

import_status import_array(PyObject* object, imported_array* out) noexcept {
  import_status status = import_status::failed;
  guarded([&] {
    const inside_module inside;
    free_finished();
    const auto import = find_import(object);
    if (import == nullptr) {
      status = import_status::no_array;
      return;
    }
    check_process();
    status = import(object, *out);
  });
  return status;
}

PyObject* make_known_tensor(DLManagedTensorVersioned* managed, PyObject* owner,
                            const sycl::queue* queue, std::int32_t kind) noexcept {
  PyObject* object = nullptr;
  guarded([&] {
    managed_tensor owned(managed);
    const inside_module inside;
    check_process();
    proved_tensor proved = prove(std::move(owned), *queue);
    const auto wanted = static_cast<sycl::usm::alloc>(kind);
    if (wanted != sycl::usm::alloc::unknown && !proved.structure().empty) {
      requirements of_kind;
      of_kind.usm_types = {wanted};
      detail::check_usm_type(proved.proof.usm_type(), of_kind);
    }
    const bool is_array =
        owner != nullptr && (is_tensor(owner) || PyCapsule_IsValid(owner, argument_name) != 0);
    auto list = is_array ? list_of(owner) : nullptr;
    object = make_tensor(std::move(proved), std::move(list)).release().ptr();
  });
  return object;
}

// --- Waits

std::int32_t wait_for_array(PyObject* owner, std::int32_t own) noexcept {
  return guarded([&] {
    const inside_module inside;
    const proved_tensor& array = tensor_behind(owner);
    if (array.structure().empty) {
      return;
    }
    const auto left_out = own != 0 ? std::nullopt : array.queue;
    if (const auto list = list_of(owner)) {
      list->wait(left_out, true);
    }
    if (own != 0 && array.queue && !detail::is_recording(*array.queue)) {
      wait_for(*array.queue);
    }
    wait_for(dpctl_queue(array.proof.device_id()));
  });
}

/// Calls a function that waits, and writes what it throws.
template <class Wait>
std::int32_t report(failed_wait& failed, Wait&& wait) noexcept {
  const auto write = [&](int code, const char* text) {
    failed.code = code;
    std::strncpy(failed.text, text, sizeof failed.text - 1);
    failed.text[sizeof failed.text - 1] = '\0';
    return -1;
  };
  constexpr int runtime = static_cast<int>(sycl::errc::runtime);
  try {
    check_process();
    wait();
    return 0;
  } catch (const sycl::exception& error) {
    return write(error.code().value(), error.what());
  } catch (const std::exception& error) {
    return write(runtime, error.what());
  } catch (...) {
    return write(runtime, "an unknown exception");
  }
}

std::int32_t wait_for_work(const sycl::queue* queue, failed_wait* failed) noexcept {
  return report(*failed, [&] { wait_unlocked(*queue); });
}

std::int32_t wait_for_default(const sycl::queue* queue, failed_wait* failed) noexcept {
  return report(*failed, [&] { wait_unlocked(dpctl_queue(device_id(queue->get_device()))); });
}

// --- The process

void drop(PyObject* object) noexcept { const python_reference last(object); }

void free_array(const sycl::queue* queue, void* address) noexcept {
  free_usm_after_work({*queue}, address, queue->get_context());
}

std::int32_t check_usable() noexcept {
  return guarded([] {
    const inside_module inside;
    check_process();
  });
}

}  // namespace

void register_package_interface(guarded_module& module) {
  static constexpr package_interface table{package_interface::interface_version,
                                           sizeof(imported_array),
                                           &import_array,
                                           &wait_for_array,
                                           &make_known_tensor,
                                           &drop,
                                           &free_array,
                                           &free_finished,
                                           &wait_for_work,
                                           &wait_for_default,
                                           &check_usable,
                                           &set_conversion_error};
  module.attr("_package_interface") = checked(PyCapsule_New(
      const_cast<package_interface*>(&table), package_interface::capsule_name, nullptr));
}

}  // namespace usm_dlpack::python
