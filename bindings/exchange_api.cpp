// SPDX-License-Identifier: Apache-2.0
//
// The C functions throw nothing. They are called with the GIL held, wait for no work, and
// return 0, or -1 with the Python error set. Source: dlpack.h 1.3, DLPackExchangeAPI.
#include "exchange_api.hpp"
#include "copies.hpp"
#include "dlpack_method.hpp"
#include "process.hpp"
#include "queues.hpp"
#include "tensor.hpp"

#include <map>
#include <set>

namespace usm_dlpack::python {
namespace {

/// The queues that a thread's consumers get as streams, one for each root device. It is the
/// queue of the last tensor that the thread got, if the tensor has one. Its address stays the
/// same for the thread's life.
class work_streams {
 public:
  /// Switches to a tensor's queue. If the consumer has not asked for a stream since the
  /// previous tensor, it uses both tensors together, so the queue is ordered behind the
  /// previous one.
  void follow(const tensor& source) {
    const std::int32_t device_id = source.proof().device_id();
    if (source.queue() && source.queue_knows_memory()) {
      work_stream& stream = streams_[device_id];
      if (stream.queue != source.queue()) {
        if (!stream.is_asked && stream.queue && !detail::is_idle(*stream.queue)) {
          order_behind(*stream.queue, *source.queue());
        }
        stream.queue = source.queue();
      }
      stream.is_asked = false;
    }
    if (const auto other = memory_users::supposed(source.proof().structure())) {
      order_behind(*other, queue(device_id));
    }
    lend(device_id, source.users());
  }

  /// Lets memory of this package be freed only after the work of the consumer's stream: of the
  /// present stream, and of the one that the consumer asks for next.
  void lend(std::int32_t device_id, const std::shared_ptr<memory_users>& users) {
    users->add(queue(device_id));
    work_stream& stream = streams_[device_id];
    if (stream.lent.size() >= stream.most_lent) {  // the consumer never asks
      for (auto memory = stream.lent.begin(); memory != stream.lent.end();) {
        memory = memory->expired() ? stream.lent.erase(memory) : std::next(memory);
      }
      stream.most_lent = 2 * stream.lent.size() + 64;
    }
    stream.lent.insert(users);
  }

  /// The stream for a consumer. If it is out of order, what is submitted later runs after its
  /// present work.
  sycl::queue& ask(std::int32_t device_id) {
    sycl::queue& asked = queue(device_id);
    if (!asked.is_in_order() && !detail::is_idle(asked)) {
      order_behind(asked, asked);
    }
    work_stream& stream = streams_[device_id];
    stream.is_asked = true;
    for (const std::weak_ptr<memory_users>& memory : stream.lent) {
      if (const std::shared_ptr<memory_users> users = memory.lock()) {
        users->add(asked);
      }
    }
    stream.lent.clear();
    return asked;
  }

  sycl::queue& queue(std::int32_t device_id) {
    std::optional<sycl::queue>& followed = streams_[device_id].queue;
    return followed ? *followed : package_queue(device_id);
  }

  ~work_streams() {
    if (process_is_forked()) {  // leaks the queues, which belong to the parent
      new (std::nothrow) streams_by_device(std::move(streams_));
    }
  }

 private:
  struct work_stream {
    std::optional<sycl::queue> queue;
    bool is_asked = false;  ///< whether the consumer asked for it since the last tensor
    /// Memory of this package that consumers got since they last asked for the stream.
    std::set<std::weak_ptr<memory_users>, std::owner_less<>> lent;
    std::size_t most_lent = 64;  ///< above this, expired entries are removed
  };
  using streams_by_device = std::map<std::int32_t, work_stream>;
  streams_by_device streams_;
};

work_streams& streams_of_thread() {
  thread_local work_streams streams;
  return streams;
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
  const inside_module inside;
  std::optional<nb::python_error> before;
  if (PyErr_Occurred() != nullptr) {
    before.emplace();  // no Python code may run while an error is set
  }
  const int status = guarded(function);
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
    streams_of_thread().follow(source);
    *out = export_managed(nb::handle(static_cast<PyObject*>(object))).release();
  });
}

int dltensor_from_py_object(void* object, DLTensor* out) noexcept {
  return answer([&] {
    const tensor& source = tensor_in(object);
    check_result(out);
    check_process();
    detail::check_legacy_flags(source.get().flags);
    streams_of_thread().follow(source);
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
    nb::object made = make_tensor(prove(std::move(owned), std::nullopt));
    suppose_dpctl(*nb::inst_ptr<tensor>(made));
    *out = made.release().ptr();
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
    *out = &streams_of_thread().ask(device_id);
  });
}

using set_error_function = void (*)(void* context, const char* kind, const char* message);

/// Allocates USM with the shape, dtype and device of a prototype.
managed_tensor allocate_like(const DLTensor& prototype) {
  detail::check_device_type(prototype.device);
  check_process();
  DLTensor wanted = prototype;
  copy_memory memory = allocate_usm(wanted, subbyte::packed, sycl::usm::alloc::device);
  streams_of_thread().lend(wanted.device.device_id, memory.get_deleter().users);
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
