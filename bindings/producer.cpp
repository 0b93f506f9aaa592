// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include <unordered_map>

namespace usm_dlpack::python {
namespace {

/// A weak reference, or the object itself if it has none, as a method of a compiled type,
/// which lives as long as its type.
nb::object weakly(nb::handle object) {
  nb::object reference = nb::steal(PyWeakref_NewRef(object.ptr(), nullptr));
  PyErr_Clear();
  return reference.is_valid() ? reference : nb::borrow(object);
}

bool refers_to(nb::handle reference, nb::handle object) noexcept {
  return reference.is(object) || (PyWeakref_Check(reference.ptr()) != 0 &&
                                  PyWeakref_GetObject(reference.ptr()) == object.ptr());
}

/// The cached properties of a type that has __dlpack__.
struct producer_type {
  nb::object type;    ///< as `weakly` keeps it
  nb::object method;  ///< the same
  bool takes_stream = false;
  nb::object version;  ///< ours, if it takes max_version
  bool takes_copy = false;
  bool is_guessed = false;  ///< the keywords are unknown
  bool says_device = false;
  bool may_say_queue = false;  ///< if false, only an object's own dictionary can have one
  bool is_usm = false;
  bool is_lazy = false;  ///< arrays may be an unresolved conjugate or negative
  bool tracks_gradients = false;
  const DLPackExchangeAPI* api = nullptr;
};

/// The types that were read, keyed by address; weak references detect entries of types that
/// are gone. Locked if there is no GIL, but never while objects are dropped or made, which may
/// run Python code that enters here again. Never destroyed.
using producer_types = std::unordered_map<PyObject*, producer_type>;
constexpr std::size_t most_types = 256;
nb::ft_mutex known_guard;
auto& known_types = *new producer_types;

std::optional<producer_type> find_type(nb::handle type, nb::handle method) {
  const nb::ft_lock_guard lock(known_guard);
  const auto found = known_types.find(type.ptr());
  if (found == known_types.end() || !refers_to(found->second.type, type) ||
      !refers_to(found->second.method, method)) {
    return std::nullopt;
  }
  return found->second;
}

void keep_type(nb::handle type, producer_type made) {
  producer_types dropped;  // destroyed after the lock, like the old value in `made`
  const nb::ft_lock_guard lock(known_guard);
  if (known_types.size() >= most_types) {
    dropped.swap(known_types);
  }
  std::swap(known_types[type.ptr()], made);
}

/// A type's C exchange API of our major version, or null.
const DLPackExchangeAPI* exchange_api_of(nb::handle type) {
  const nb::object capsule = find_attribute(type, "__dlpack_c_exchange_api__");
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

/// Reads a type, or an array with its own `__dlpack__`, by Python's `read_producer`; nothing
/// for a type that has the method of its metaclass.
std::optional<producer_type> read_producer(nb::handle owner, nb::handle method) {
  const nb::object words = call_python("read_producer", owner, method);
  if (words.is_none()) {
    return std::nullopt;
  }
  const auto says = [&](const char* word) {
    return PySequence_Contains(words.ptr(), nb::str(word).ptr()) == 1;
  };
  producer_type made;
  made.takes_stream = says("stream");
  if (says("max_version")) {
    made.version = nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  }
  made.takes_copy = says("copy");
  made.is_guessed = says("guessed");
  made.says_device = says("device");
  made.may_say_queue = says("queue");
  made.is_usm = says("usm");
  made.is_lazy = says("lazy");
  made.tracks_gradients = says("gradients");
  made.api = says("exchange_api") ? exchange_api_of(owner) : nullptr;
  return made;
}

bool is_callable(nb::handle method) {
  return method.is_valid() && PyCallable_Check(method.ptr()) != 0;
}

/// Reads an array with its own `__dlpack__`, like a proxy; not cached. The `__dlpack__` of a
/// class belongs to its instances.
producer_type read_object(nb::handle x) {
  const nb::object method =
      PyType_Check(x.ptr()) == 0 ? find_attribute(x, "__dlpack__") : nb::object();
  if (!is_callable(method)) {
    refuse_argument(
        nb::exception_type::type_error, "x", "an array with __dlpack__", text_of_type(x),
        "pass an array of NumPy, dpnp or another library, or use to_dlpack_tensor for memory");
  }
  return *read_producer(x, method);
}

/// @throws nb::type_error for an array without __dlpack__
producer_type type_of(nb::handle x) {
  const nb::handle type = x.type();
  const nb::object method = find_attribute(type, "__dlpack__");
  if (!is_callable(method)) {
    return read_object(x);
  }
  if (std::optional<producer_type> known = find_type(type, method)) {
    return *std::move(known);
  }
  // Runs Python code, which may come here again.
  std::optional<producer_type> made = read_producer(type, method);
  if (!made) {
    return read_object(x);
  }
  made->type = weakly(type);
  made->method = weakly(method);
  keep_type(type, *made);
  return *std::move(made);
}

/// Calls x.__dlpack__ with the requested keywords that it takes. If its keywords are unknown,
/// tries again without any.
nb::object call_dlpack(nb::handle x, const producer_type& type,
                       const import_request& request) {
  nb::kwargs keywords;
  if (type.version.is_valid()) {
    keywords["max_version"] = type.version;
  }
  if (request.copy && type.takes_copy) {
    keywords["copy"] = *request.copy;
    if (*request.copy) {
      wait_for_work_on(x);  // copies by dpctl and dpnp overtake work of out-of-order queues
    }
  }
  if (request.queue && type.takes_stream) {
    keywords["stream"] = request.stream;
  }
  const nb::object method = x.attr("__dlpack__");
  try {
    return method(**keywords);
  } catch (const nb::python_error& error) {
    if (type.is_guessed && error.matches(PyExc_TypeError)) {
      return method();
    }
    if (request.copy != true || !type.takes_copy || !error.matches(PyExc_BufferError)) {
      throw;
    }
  }
  // tvm-ffi takes the keyword but refuses True: the copy is made here.
  PyDict_DelItemString(keywords.ptr(), "copy");
  return method(**keywords);
}

/// Raises the error of the C exchange API, which may have failed without setting one.
[[noreturn]] void refuse_exchange(const char* expected) {
  if (PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  detail::refuse(errc::capsule_unusable, "__dlpack_c_exchange_api__", expected,
                 "a failure without an error", "correct the producer");
}

/// Exports by the C exchange API, with the queue that the producer works on.
producer_tensor call_exchange_api(nb::handle x, const DLPackExchangeAPI& api) {
  DLManagedTensorVersioned* made = nullptr;
  if (api.managed_tensor_from_py_object_no_sync(x.ptr(), &made) != 0 || made == nullptr) {
    refuse_exchange("a managed tensor");
  }
  const DLDevice device =
      made->version.major == DLPACK_MAJOR_VERSION ? made->dl_tensor.device : DLDevice{};
  producer_tensor offered{make_capsule(managed_tensor(made)), {}};
  if (device.device_type == kDLOneAPI) {
    void* stream = nullptr;
    if (api.current_work_stream(device.device_type, device.device_id, &stream) != 0) {
      refuse_exchange("a queue, or none");
    }
    if (stream != nullptr) {
      offered.pending = *static_cast<const sycl::queue*>(stream);
    }
  }
  return offered;
}

/// The device that an array reports, if any.
/// @throws conversion_error for an answer that is not a device
std::optional<DLDevice> device_said_by(nb::handle x) {
  const nb::object method = find_attribute(x, "__dlpack_device__");
  if (!method.is_valid() || method.is_none()) {
    return std::nullopt;
  }
  const nb::object answer = method();
  std::int64_t pair[2] = {0, 0};
  const auto fits = [](std::int64_t part) { return part >= INT32_MIN && part <= INT32_MAX; };
  if (!read_pair(answer, pair) || !fits(pair[0]) || !fits(pair[1])) {
    detail::refuse(errc::device_type_unsupported, "__dlpack_device__",
                   "a tuple (device_type, device_id) of int32_t", text_of(answer),
                   "correct the producer");
  }
  return DLDevice{static_cast<DLDeviceType>(pair[0]), static_cast<std::int32_t>(pair[1])};
}

/// Refuses an array that reports to be elsewhere, before its export.
/// @return whether it reports to be in host memory, where no queue works
bool is_on_host(nb::handle x, bool host) {
  const std::optional<DLDevice> own = device_said_by(x);
  if (!own || (host && own->device_type == kDLCPU)) {
    return own.has_value();
  }
  DLTensor described{};
  described.device = *own;
  detail::check_device_type(described);
  return false;
}

/// Refuses an array whose memory does not hold its elements: PyTorch conjugates or negates
/// them on reading. Its C exchange API reports neither, its `__dlpack__` only the first.
void check_resolved(nb::handle x) {
  if (nb::getattr(x, "is_conj")().is(Py_True)) {
    detail::refuse(errc::copy_needed, "x", "elements as they stand in memory",
                   "conjugates that are not computed", "pass x.resolve_conj()");
  }
  if (nb::getattr(x, "is_neg")().is(Py_True)) {
    detail::refuse(errc::copy_needed, "x", "elements as they stand in memory",
                   "negatives that are not computed", "pass x.resolve_neg()");
  }
}

/// Exports by the C exchange API, if there is one; nothing if `__dlpack__` gives a better
/// error: PyTorch's C functions export arrays that its `__dlpack__` refuses because they
/// require gradients, and fail in words about its source.
std::optional<producer_tensor> try_exchange_api(nb::handle x, const producer_type& type) {
  if (type.api == nullptr ||
      (type.tracks_gradients && nb::getattr(x, "requires_grad").is(Py_True))) {
    return std::nullopt;
  }
  try {
    return call_exchange_api(x, *type.api);
  } catch (const nb::python_error& error) {
    if (!type.tracks_gradients || !error.matches(PyExc_RuntimeError)) {
      throw;
    }
    return std::nullopt;
  }
}

/// Whether to query an array's queue. `PyObject_HasAttr` is cheaper than a failing lookup.
bool says_queue(nb::handle x, const producer_type& type) {
  static PyObject* const name = PyUnicode_InternFromString("sycl_queue");
  return type.may_say_queue || PyObject_HasAttr(x.ptr(), name) == 1;
}

/// Hands over to an out-of-order queue before its array does, by a barrier that is behind host
/// tasks: dpctl and dpnp do. `queue::memcpy` overtakes it, and one that follows it too.
void hand_over_before(nb::handle x, const producer_type& type, const sycl::queue& consumer) {
  if (!consumer.is_in_order() && says_queue(x, type)) {
    if (const std::optional<sycl::queue> known = queue_attribute(x)) {
      hand_over(*known, consumer);
    }
  }
}

/// Exports our own tensor without the C exchange API, which would change the queue for this
/// thread's consumers.
producer_tensor offer_own(nb::handle x) {
  const tensor& own = ready_tensor(x);
  return {make_capsule(export_managed(x)), own.queue()};
}

}  // namespace

producer_tensor ask_producer(nb::handle x, const import_request& request) {
  if (has_tensor_type(x)) {
    return offer_own(x);
  }
  producer_type type = type_of(x);
  if (type.is_lazy) {
    check_resolved(x);
  }
  std::optional<producer_tensor> offered = try_exchange_api(x, type);
  if (!offered) {
    const bool asks = type.says_device && !type.is_usm && !request.anywhere;
    if (asks && is_on_host(x, request.host)) {
      type.takes_stream = false;
    }
    if (request.queue && type.takes_stream) {
      hand_over_before(x, type, *request.queue);
    }
    offered = producer_tensor{call_dlpack(x, type, request), {}};
    if (request.queue && type.takes_stream) {
      offered->pending = request.queue;  // the producer ordered its work before that queue
      return *std::move(offered);
    }
    if (!request.anywhere && says_queue(x, type)) {
      offered->pending = queue_attribute(x);
    }
  }
  if (request.queue && offered->pending) {
    hand_over(*offered->pending, *request.queue);
  }
  return *std::move(offered);
}

void forget_producers() noexcept {
  producer_types dropped;
  const nb::ft_lock_guard lock(known_guard);
  dropped.swap(known_types);
}

}  // namespace usm_dlpack::python
