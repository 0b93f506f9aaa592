// SPDX-License-Identifier: Apache-2.0
//
// DLPack's C exchange API for DLPackTensor.
// The C functions throw nothing. They are called with the GIL held, wait for no work, and
// return 0, or -1 with the Python error set. Source: dlpack.h 1.3, DLPackExchangeAPI.
#include "memory/copies.hpp"
#include "module.hpp"
#include "order/process.hpp"
#include "order/queues.hpp"
#include "tensor/tensor.hpp"

namespace usm_dlpack::python {
namespace {

/// Gives a tensor to a consumer, whose stream is the package's queue: orders that behind the
/// work on the tensor, without waiting. It is in order: a consumer with two commands that
/// depend on each other would get wrong values from a queue that is not.
void order_package_queue(const tensor& source) {
  for (const sycl::queue& queue : source.queues()->queues()) {
    if (queue.get_context() != source.proof().context() && !is_done(queue)) {
      detail::refuse(
          errc::request_unsupported, "sycl_queue",
          "queues of the memory's context, because the C exchange API does not wait",
          "one of another context",
          "use __dlpack__(), which waits, or a queue made from the device alone");
    }
  }
  hand_over(source, package_queue(source.proof().device_id()));
  source.add_package_queue();
}

constexpr const char* null_result =
    "out: expected a pointer to the result, found null; pass the address of a variable";

void check_result(const void* out) {
  if (out == nullptr) {
    throw nb::value_error(null_result);
  }
}

/// Like `guarded`, but the caller may have a Python error set. A refusal replaces it;
/// otherwise it is kept.
template <class Function>
int answer(Function&& function) noexcept {
  std::optional<nb::python_error> before;
  if (PyErr_Occurred() != nullptr) {
    before.emplace();  // no Python code may run while an error is set
  }
  const int status = guarded([&] {
    const inside_module inside;
    function();
  });
  if (before && status == 0) {
    before->restore();
  }
  return status;
}

const tensor& tensor_in(void* object) {
  const nb::handle handle(static_cast<PyObject*>(object));
  if (object == nullptr || !has_tensor_type(handle)) {
    refuse_argument(nb::exception_type::type_error, "py_object", "a usm_dlpack.DLPackTensor",
                    object == nullptr ? "null" : text_of_type(handle),
                    "look up the exchange API of the object's own type");
  }
  return ready_tensor(handle);
}

int managed_tensor_from_py_object(void* object, DLManagedTensorVersioned** out) noexcept {
  return answer([&] {
    const tensor& source = tensor_in(object);
    check_result(out);
    check_process();
    order_package_queue(source);
    *out = export_managed(nb::handle(static_cast<PyObject*>(object))).release();
  });
}

int dltensor_from_py_object(void* object, DLTensor* out) noexcept {
  return answer([&] {
    const tensor& source = tensor_in(object);
    check_result(out);
    check_process();
    detail::check_legacy_flags(source.get().flags);
    order_package_queue(source);
    *out = source.get().described;
  });
}

int managed_tensor_to_py_object(DLManagedTensorVersioned* managed, void** out) noexcept {
  return answer([&] {
    managed_tensor owned(managed);  // deletes the tensor if it is refused
    check_result(out);
    if (managed == nullptr) {
      throw nb::value_error(
          "tensor: expected a managed tensor, found null; pass the producer's");
    }
    check_process();
    if (owned->version.major == DLPACK_MAJOR_VERSION) {
      detail::check_device_type(owned->dl_tensor.device);  // nobody orders CUDA's streams here
    }
    *out = make_tensor(prove(std::move(owned), std::nullopt)).release().ptr();
  });
}

int current_work_stream(DLDeviceType type, std::int32_t device_id, void** out) noexcept {
  return answer([&] {
    check_result(out);
    if (type == kDLCPU) {
      *out = nullptr;
      return;
    }
    detail::check_device_type({type, device_id});
    check_process();
    *out = &package_queue(device_id);
  });
}

using set_error_function = void (*)(void* context, const char* kind, const char* message);

/// Allocates USM with the shape, dtype and device of a prototype.
managed_tensor allocate_like(const DLTensor& prototype) {
  detail::check_device_type(prototype.device);
  check_process();
  DLTensor wanted = prototype;
  copy_memory memory = allocate_usm(wanted, subbyte::packed, sycl::usm::alloc::device);
  copy_free& of_memory = memory.get_deleter();
  of_memory.consumer = of_memory.queues->add(package_queue(wanted.device.device_id));
  return to_managed_tensor(wanted, std::move(memory));
}

// Reports errors with the caller's function, which may be null.
int managed_tensor_allocator(DLTensor* prototype, DLManagedTensorVersioned** out,
                             void* context, set_error_function given) noexcept {
  const set_error_function set_error =
      given != nullptr ? given : [](void*, const char*, const char*) {};
  if (out == nullptr) {
    set_error(context, "ValueError", null_result);
    return -1;
  }
  *out = nullptr;
  if (prototype == nullptr) {
    set_error(context, "ValueError",
              "prototype: expected a DLTensor, found null; pass one of the wanted shape");
    return -1;
  }
  try {
    const cuda_thread_scope kept;
    *out = allocate_like(*prototype).release();
    return 0;
  } catch (const conversion_error& error) {
    set_error(context, "BufferError", error.what());
  } catch (const std::bad_alloc&) {
    set_error(context, "MemoryError",
              "data: expected memory for a managed tensor, found none; free some");
  } catch (const std::exception& error) {
    set_error(context, "RuntimeError", error.what());
  }
  return -1;
}

}  // namespace

void register_exchange_api() {
  static DLPackExchangeAPI api{{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                               &managed_tensor_allocator,
                               &managed_tensor_from_py_object,
                               &managed_tensor_to_py_object,
                               &dltensor_from_py_object,
                               &current_work_stream};
  nb::type<tensor>().attr("__dlpack_c_exchange_api__") =
      checked(PyCapsule_New(&api, "dlpack_exchange_api", nullptr));
}

}  // namespace usm_dlpack::python
