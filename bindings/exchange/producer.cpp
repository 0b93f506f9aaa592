// SPDX-License-Identifier: Apache-2.0
#include "exchange/producer.hpp"
#include "arguments/arguments.hpp"
#include "arguments/dtypes.hpp"
#include "arguments/places.hpp"
#include "exchange/capsule.hpp"
#include "order/cuda_streams.hpp"
#include "order/queues.hpp"
#include "tensor/tensor.hpp"

namespace usm_dlpack::python {
namespace {

/// Interned names and values; never destroyed.
struct array_names {
  nb::handle dlpack = PyUnicode_InternFromString("__dlpack__");
  nb::handle exchange_api = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  nb::handle max_version = PyUnicode_InternFromString("max_version");
  nb::handle stream = PyUnicode_InternFromString("stream");
  nb::handle copy = PyUnicode_InternFromString("copy");
  nb::handle sycl_queue = PyUnicode_InternFromString("sycl_queue");
  nb::handle dl_device = PyUnicode_InternFromString("dl_device");
  nb::handle newest_version =  ///< of DLPack that we know
      nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION).release();
  nb::handle is_conj = PyUnicode_InternFromString("is_conj");
  nb::handle is_neg = PyUnicode_InternFromString("is_neg");
  nb::handle requires_grad = PyUnicode_InternFromString("requires_grad");
};

const array_names& names() {
  static const array_names interned;
  return interned;
}

/// @throws nb::type_error for an object without `__dlpack__`, and for a class, whose
///         `__dlpack__` belongs to its instances
nb::object dlpack_method(nb::handle x, bool takes_host) {
  nb::object method =
      PyType_Check(x.ptr()) == 0 ? find_attribute(x, names().dlpack) : nb::object();
  if (!method.is_valid() || PyCallable_Check(method.ptr()) == 0) {
    const bool is_usm =
        PyType_Check(x.ptr()) == 0 &&
        find_attribute(x, "__sycl_usm_array_interface__", PyExc_Exception).is_valid();
    const char* remedy = is_usm               ? "use to_dlpack_tensor(x)"
                         : !numpy_converts(x) ? "pass an array"
                         : takes_host
                             ? "pass an array, such as numpy.asarray(x)"
                             : "copy it with from_dlpack(numpy.asarray(x), device=(14, 0))";
    refuse_argument(nb::exception_type::type_error, "x", "an array with __dlpack__",
                    text_of_type(x), remedy);
  }
  return method;
}

using keyword_list = std::initializer_list<std::pair<nb::handle, nb::handle>>;

/// Calls `__dlpack__` with the keywords that have a value.
/// @return an invalid object, with the Python error set, if it raises
nb::object call_dlpack(nb::handle method, keyword_list keywords) {
  nb::dict arguments;
  for (const auto& [name, value] : keywords) {
    if (value.is_valid()) {
      arguments[name] = value;
    }
  }
  return nb::steal(PyObject_Call(method.ptr(), nb::tuple().ptr(), arguments.ptr()));
}

/// A fresh capsule, and whether its producer took a stream.
struct exported_capsule {
  nb::object capsule;
  bool took_stream;
};

/// Whether the error that is set means that a producer takes no stream of this kind.
bool refuses_stream() noexcept {
  for (PyObject* const kind :
       {PyExc_ValueError, PyExc_BufferError, PyExc_NotImplementedError}) {
    if (PyErr_ExceptionMatches(kind) != 0) {
      return true;
    }
  }
  return false;
}

/// Exports by `__dlpack__`: with the version and a stream, then with the stream alone, with
/// the version alone, and with neither. After a TypeError the next form is tried; after an
/// error that refuses the stream, the same form without it; after another error none.
/// @param stream an invalid object if there is none
exported_capsule call_dlpack_forms(nb::handle method, nb::handle stream,
                                   std::optional<bool> copy) {
  const nb::handle no_copy = copy == false ? Py_False : nullptr;  // copies are made here
  bool version = true;
  for (;;) {
    nb::object capsule =
        version ? call_dlpack(method, {{names().max_version, names().newest_version},
                                       {names().stream, stream},
                                       {names().copy, no_copy}})
                : call_dlpack(method, {{names().stream, stream}});
    if (capsule.is_valid()) {
      return {std::move(capsule), stream.is_valid()};
    }
    const bool is_type_error = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    if (is_type_error && version) {
      version = false;
    } else if (is_type_error && stream.is_valid()) {
      version = true;
      stream = {};
    } else if (stream.is_valid() && refuses_stream()) {
      stream = {};
    } else {
      throw nb::python_error();
    }
    PyErr_Clear();
  }
}

/// The C exchange API of an array's type, in our major version, or null.
const DLPackExchangeAPI* exchange_api_of(nb::handle x) {
  if (!type_has(x, names().exchange_api)) {
    return nullptr;
  }
  const nb::object capsule = find_attribute(x.type(), names().exchange_api);
  if (!capsule.is_valid() || PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") == 0) {
    return nullptr;
  }
  const auto* header = static_cast<const DLPackExchangeAPIHeader*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  const auto* api = reinterpret_cast<const DLPackExchangeAPI*>(header);
  const bool complete = api != nullptr &&
                        api->managed_tensor_from_py_object_no_sync != nullptr &&
                        api->current_work_stream != nullptr;
  return complete ? api : nullptr;
}

/// Raises the error of the C exchange API, which may have failed without setting one.
[[noreturn]] void refuse_exchange(const char* expected) {
  if (PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  detail::refuse(errc::capsule_unusable, "__dlpack_c_exchange_api__", expected,
                 "a failure without an error", "correct the producer");
}

/// Orders the request's queue behind the producer's, and behind dpctl's.
offered_capsule ordered_for(const import_request& request, offered_capsule offered) {
  if (request.queue) {
    if (offered.queue) {
      hand_over(*offered.queue, *request.queue);
    }
    hand_over(dpctl_queue(device_id(request.queue->get_device())), *request.queue);
  }
  return offered;
}

/// Orders a queue behind the stream of a CUDA array: the request's, if it is on that GPU, or
/// else this package's.
offered_capsule ordered_for(const import_request& request, nb::object capsule, CUstream stream,
                            std::int32_t device_id) {
  const bool is_there = request.queue &&
                        request.queue->get_context() == default_context(device_id) &&
                        request.queue->get_device() == root_device(device_id);
  const sycl::queue& queue = is_there ? *request.queue : package_queue(device_id);
  order_behind_stream(stream, queue, device_id);
  offered_capsule offered{std::move(capsule), queue};
  return is_there ? offered : ordered_for(request, std::move(offered));
}

/// Exports a CUDA array. Its producer orders our stream behind its work; one that takes no
/// stream orders the legacy default stream. Memory of the host gets no stream.
offered_capsule export_cuda_array(nb::handle method, const import_request& request,
                                  DLDevice device) {
  const std::int32_t id = detail::id_named_by(device);
  const lent_stream ours(id);
  nb::object stream;
  if (device.device_type != kDLCUDAHost) {
    stream = checked(PyLong_FromVoidPtr(ours.get()));
  }
  exported_capsule exported = call_dlpack_forms(method, stream, request.copy);
  return ordered_for(request, std::move(exported.capsule),
                     exported.took_stream ? ours.get() : legacy_stream, id);
}

managed_tensor exchange(nb::handle x, const DLPackExchangeAPI& api) {
  DLManagedTensorVersioned* managed = nullptr;
  if (api.managed_tensor_from_py_object_no_sync(x.ptr(), &managed) != 0 ||
      managed == nullptr) {
    refuse_exchange("a managed tensor");
  }
  return managed_tensor(managed);
}

DLDevice device_of(const DLManagedTensorVersioned& managed) {
  return managed.version.major == DLPACK_MAJOR_VERSION ? managed.dl_tensor.device : DLDevice{};
}

/// Exports by the C exchange API, which also gives the queue that the producer works on.
offered_capsule call_exchange_api(nb::handle x, const DLPackExchangeAPI& api,
                                  const import_request& request) {
  managed_tensor managed = exchange(x, api);
  const DLDevice device = device_of(*managed);
  offered_capsule offered{make_capsule(std::move(managed)), {}};
  const std::int32_t cuda_id =
      detail::is_cuda(device.device_type) ? detail::find_cuda_device(device.device_id) : -1;
  if (cuda_id < 0 && device.device_type != kDLOneAPI) {
    return offered;
  }
  void* stream = nullptr;
  if (api.current_work_stream(device.device_type, device.device_id, &stream) != 0) {
    refuse_exchange("a queue, or none");
  }
  if (cuda_id >= 0) {
    return ordered_for(request, std::move(offered.capsule),
                       stream == nullptr ? legacy_stream : static_cast<CUstream>(stream),
                       cuda_id);
  }
  if (stream != nullptr) {
    offered.queue = *static_cast<const sycl::queue*>(stream);
  }
  return ordered_for(request, std::move(offered));
}

/// Refuses an array whose elements are only computed when they are read.
void check_computed(nb::handle x, nb::handle query, const char* found, const char* remedy) {
  const nb::object method = find_attribute(x, query);
  if (method.is_valid() && PyCallable_Check(method.ptr()) != 0 && method().is(Py_True)) {
    detail::refuse(errc::copy_needed, "x", "elements as they stand in memory", found, remedy);
  }
}

/// Refuses an array of PyTorch that is conjugated or negated when it is read, because its
/// memory does not hold its elements. PyTorch's C exchange API refuses neither, and its
/// `__dlpack__` only the first.
void check_resolved(nb::handle x) {
  check_computed(x, names().is_conj, "conjugates that are not computed",
                 "pass x.resolve_conj()");
  check_computed(x, names().is_neg, "negatives that are not computed", "pass x.resolve_neg()");
}

/// Exports by the C exchange API, if there is one. Returns nothing if `__dlpack__` must be
/// called instead, for two reasons in PyTorch: its C functions export arrays that require
/// gradients, which its `__dlpack__` refuses; and the texts of their errors are about its
/// source code.
std::optional<offered_capsule> try_exchange_api(nb::handle x, const import_request& request) {
  const DLPackExchangeAPI* api = exchange_api_of(x);
  if (api == nullptr) {
    return std::nullopt;
  }
  const nb::object requires_grad = find_attribute(x, names().requires_grad);
  if (requires_grad.is_valid() && requires_grad.is(Py_True)) {
    return std::nullopt;
  }
  try {
    return call_exchange_api(x, *api, request);
  } catch (const nb::python_error& error) {
    if (!requires_grad.is_valid() || !error.matches(PyExc_RuntimeError)) {
      throw;
    }
    return std::nullopt;
  }
}

/// Exports our own tensor. Does not use the C exchange API, which would order the package's
/// queue behind the tensor.
offered_capsule offer_own(nb::handle x) {
  const tensor& own = ready_tensor(x);
  return {make_capsule(export_managed(x)), own.queue()};
}

/// Whether a capsule is of USM whose queue is not known. The export of a DLPackTensor has
/// ordered its work; some other producers take a stream and ignore it.
bool names_no_queue(nb::handle capsule) {
  const nb::ft_object_guard alone(capsule);
  const capsule_content content = read_capsule(capsule);
  return content.described().device.device_type == kDLOneAPI && !queue_behind(content);
}

/// dpctl's queue as a stream; an invalid object if there is no such device.
nb::object stream_of_dpctl(std::int32_t device_id) {
  try {
    return dpctl_queue_object(device_id);
  } catch (const conversion_error&) {
    return {};
  }
}

/// Exports an array by `__dlpack__`. An array without a queue is refused before that, if it
/// reports memory that is not taken.
offered_capsule export_by_method(nb::handle x, nb::handle method,
                                 const import_request& request) {
  std::optional<sycl::queue> own = request.for_extension ? std::nullopt : queue_attribute(x);
  if (own) {
    return ordered_for(request,
                       {call_dlpack_forms(method, {}, request.copy).capsule, std::move(own)});
  }
  const bool has_queue = request.for_extension && type_has(x, names().sycl_queue);
  const std::optional<DLDevice> device =
      has_queue && !detail::has_cuda_devices() ? std::nullopt : reported_device(x);
  if (device && detail::is_cuda(device->device_type)) {
    return export_cuda_array(method, request, *device);
  }
  const bool on_host = device && device->device_type == kDLCPU;
  if (on_host && request.for_extension) {
    return {};
  }
  if (device && !request.for_extension && !(on_host && request.host)) {
    if (on_host) {
      make_exportable(x);  // refuses what a copy, the remedy, would refuse
    }
    detail::id_named_by(*device);  // refuses memory of other devices
  }
  if (!request.queue && !has_queue && device && device->device_type == kDLOneAPI) {
    // The producer orders dpctl's queue behind the one that it works on.
    return {
        call_dlpack_forms(method, stream_of_dpctl(device->device_id), request.copy).capsule,
        {}};
  }
  const nb::object stream =
      request.queue && !on_host ? to_dpctl(*request.queue) : nb::object();
  exported_capsule exported = call_dlpack_forms(method, stream, request.copy);
  if (request.queue && names_no_queue(exported.capsule)) {
    ordered_for(request, {});
  }
  // A producer that took a stream is trusted to have ordered its other work before that queue.
  return {std::move(exported.capsule), exported.took_stream ? request.queue : std::nullopt};
}

}  // namespace

std::optional<DLDevice> exchanged_device(nb::handle array) {
  const DLPackExchangeAPI* api = exchange_api_of(array);
  return api == nullptr ? std::nullopt : std::optional(device_of(*exchange(array, *api)));
}

offered_capsule export_array(nb::handle x, const import_request& request) {
  if (has_tensor_type(x)) {
    return offer_own(x);
  }
  const nb::object method = dlpack_method(x, request.host);
  check_resolved(x);
  std::optional<offered_capsule> offered = try_exchange_api(x, request);
  return offered ? *std::move(offered) : export_by_method(x, method, request);
}

offered_capsule offer_capsule(nb::handle capsule, const import_request& request) {
  const nb::ft_object_guard alone(capsule);
  const capsule_content content = read_capsule(capsule);
  const DLDevice device = content.described().device;
  if (detail::is_cuda(device.device_type)) {
    return ordered_for(request, nb::borrow(capsule), legacy_stream,
                       detail::id_named_by(device));
  }
  if (device.device_type == kDLCPU) {
    return {nb::borrow(capsule), {}};
  }
  if (std::optional<sycl::queue> queue = queue_behind(content)) {
    return ordered_for(request, {nb::borrow(capsule), std::move(queue)});
  }
  ordered_for(request, {});
  return {nb::borrow(capsule),
          request.queue};  // the producer may have been given this queue as `stream`
}

bool has_other_context(nb::handle x) {
  try {
    if (const auto queue = queue_attribute(x)) {
      return detail::device_table::get().find(queue->get_context()) == nullptr;
    }
    const nb::object interface =
        find_attribute(x, "__sycl_usm_array_interface__", PyExc_Exception);
    return interface.is_valid() && PyDict_Check(interface.ptr()) != 0 &&
           detail::device_table::get().find(read_syclobj(interface["syclobj"]).context) ==
               nullptr;
  } catch (const nb::builtin_exception&) {
    return false;
  } catch (const conversion_error&) {
    return false;
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) {
      throw;
    }
    return false;
  }
}

namespace {

/// Makes a producer copy its array to host memory, after all work on its `sycl_queue`.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
offered_capsule export_to_host(nb::handle x) {
  // The producer waits only for its own work, and not for what others submitted to its queue.
  if (const std::optional<sycl::queue> queue = queue_attribute(x)) {
    wait_for(*queue);
  }
  const nb::object method = dlpack_method(x, true);
  nb::object capsule =
      call_dlpack(method, {{names().max_version, names().newest_version},
                           {names().dl_device, nb::make_tuple(int{kDLCPU}, 0)}});
  return {checked(capsule.release().ptr()), {}};
}

/// Whether the exception that is being handled refuses USM that only its producer can read.
bool is_out_of_reach(nb::handle x) {
  try {
    throw;
  } catch (const conversion_error& refusal) {
    const auto& row = detail::error_table[static_cast<std::size_t>(refusal.code()) - 1];
    return row.raised == detail::python_class::binding_error;
  } catch (const nb::python_error& refusal) {  // the producer's own
    return refusal.matches(PyExc_Exception) && !refusal.matches(PyExc_RecursionError) &&
           has_other_context(x);
  } catch (...) {
    return false;
  }
}

}  // namespace

void read_producer(nb::handle x, const import_request& request, bool through_host,
                   const capsule_reader& read) {
  try {
    read(export_array(x, request));
    return;
  } catch (...) {
    if (!through_host || !is_out_of_reach(x)) {
      throw;
    }
    set_python_error();
  }
  nb::python_error refusal;
  try {
    read(export_to_host(x));
  } catch (const nb::python_error& second) {
    throw second.matches(PyExc_Exception) ? refusal : second;
  } catch (const nb::builtin_exception&) {
    throw refusal;
  } catch (const conversion_error&) {
    throw refusal;
  }
}

}  // namespace usm_dlpack::python
