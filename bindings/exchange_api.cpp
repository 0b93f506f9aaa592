// SPDX-License-Identifier: Apache-2.0
//
// The five functions have C linkage in spirit: nothing is thrown through them. They are called
// with the GIL held, synchronise nothing, and answer 0, or -1 with the Python error set.
// Source: dlpack.h 1.3, DLPackExchangeAPI.
#include "exchange_api.hpp"

#include "copies.hpp"
#include "export.hpp"
#include "import.hpp"
#include "process.hpp"
#include "python_objects.hpp"
#include "queues.hpp"
#include "tensor.hpp"

#include <exception>
#include <map>
#include <new>
#include <optional>
#include <string>

namespace usm_dlpack::python {
namespace {

/// The queues that a thread's consumers are to work on, by root device: that of the tensor
/// that they got last and that knows one. Each stays at its address for the thread's life, for
/// which it is kept.
class work_streams {
 public:
  void follow(const tensor& source) {
    const std::int32_t device_id = source.proof().device_id();
    if (source.queue() && source.queue_knows_memory()) {
      std::optional<sycl::queue>& last = queues_[device_id];
      if (last != source.queue()) {
        last = source.queue();
      }
    }
    if (copy_memory* memory = source.own_memory()) {
      memory->used_by(get(device_id));
    }
  }

  sycl::queue& get(std::int32_t device_id) {
    const auto found = queues_.find(device_id);
    return found == queues_.end() ? package_queue(device_id) : *found->second;
  }

  ~work_streams() {
    if (process_is_forked()) {  // what the parent's runtime made is never given back
      new (std::nothrow) queues_by_device(std::move(queues_));
    }
  }

 private:
  using queues_by_device = std::map<std::int32_t, std::optional<sycl::queue>>;
  queues_by_device queues_;
};

work_streams& streams_of_thread() {
  thread_local work_streams streams;
  return streams;
}

const tensor& tensor_in(void* object) {
  const nb::handle handle(static_cast<PyObject*>(object));
  if (object == nullptr || !has_tensor_type(handle)) {
    const std::string sentence =
        "py_object: expected a usm_dlpack.DLPackTensor, found " +
        (object == nullptr ? std::string("null")
                           : "an object of type " + name_of_type(handle)) +
        "; look up the exchange API of the object's own type";
    throw nb::type_error(sentence.c_str());
  }
  check_ready(handle);
  return *nb::inst_ptr<tensor>(handle);
}

int managed_tensor_from_py_object(void* object, DLManagedTensorVersioned** out) noexcept {
  return guarded([&] {
    const tensor& source = tensor_in(object);
    check_process();
    streams_of_thread().follow(source);
    *out = export_managed(nb::handle(static_cast<PyObject*>(object))).release();
  });
}

int dltensor_from_py_object(void* object, DLTensor* out) noexcept {
  return guarded([&] {
    const tensor& source = tensor_in(object);
    check_process();
    if ((source.flags() & (flag::read_only | flag::is_subbyte_type_padded)) != 0) {
      detail::check_legacy_flags(source.flags());
    }
    streams_of_thread().follow(source);
    *out = source.get();
  });
}

int managed_tensor_to_py_object(DLManagedTensorVersioned* managed, void** out) noexcept {
  return guarded([&] {
    managed_tensor owned(managed);  // stolen, also if it is refused, and gone before the error
    if (managed == nullptr) {
      throw nb::value_error(
          "tensor: expected a managed tensor, found null; pass the producer's");
    }
    check_process();
    *out = import_managed(std::move(owned)).release().ptr();
  });
}

int current_work_stream(DLDeviceType type, std::int32_t device_id, void** out) noexcept {
  return guarded([&] {
    if (type == kDLCPU) {
      *out = nullptr;
      return;
    }
    DLTensor asked{};
    asked.device = {type, device_id};
    detail::check_device_type(asked);
    check_process();
    detail::working_device(device_id);
    *out = &streams_of_thread().get(device_id);
  });
}

using set_error_function = void (*)(void* context, const char* kind, const char* message);

/// New USM of a prototype's shape, dtype and device.
managed_tensor allocate_like(const DLTensor& prototype) {
  detail::check_device_type(prototype);
  check_process();
  DLTensor wanted = prototype;
  wanted.strides = nullptr;
  wanted.byte_offset = 0;
  // Any address does for the bytes to be counted; of the smallest that has no wrap.
  wanted.data = reinterpret_cast<void*>(std::uintptr_t{256});
  const tensor_structure structure = check_structure(wanted);
  copy_memory memory =
      find_usm("data", structure.nbytes, wanted.device.device_id, sycl::usm::alloc::device);
  if (memory.get() == nullptr) {
    throw std::bad_alloc();
  }
  memory.used_by(streams_of_thread().get(wanted.device.device_id));
  wanted.data = memory.get();
  return to_managed_tensor(wanted, std::move(memory));
}

// Errors go to the caller's function, which may set a Python error or none; so may be null.
int managed_tensor_allocator(DLTensor* prototype, DLManagedTensorVersioned** out,
                             void* context, set_error_function given) noexcept {
  *out = nullptr;
  const set_error_function set_error =
      given != nullptr ? given : [](void*, const char*, const char*) {};
  try {
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
  static DLPackExchangeAPI api = [] {
    DLPackExchangeAPI made{};
    made.header.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    made.header.prev_api = nullptr;
    made.managed_tensor_allocator = &managed_tensor_allocator;
    made.managed_tensor_from_py_object_no_sync = &managed_tensor_from_py_object;
    made.managed_tensor_to_py_object_no_sync = &managed_tensor_to_py_object;
    made.dltensor_from_py_object_no_sync = &dltensor_from_py_object;
    made.current_work_stream = &current_work_stream;
    return made;
  }();
  PyObject* capsule = PyCapsule_New(&api, "dlpack_exchange_api", nullptr);
  if (capsule == nullptr) {
    throw nb::python_error();
  }
  nb::type<tensor>().attr("__dlpack_c_exchange_api__") = nb::steal(capsule);
}

}  // namespace usm_dlpack::python
