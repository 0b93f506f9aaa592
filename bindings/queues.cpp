// SPDX-License-Identifier: Apache-2.0
//
// Readers of `stream` and `sycl_queue`, the order between queues, and the queues of copies.
#include "queues.hpp"
#include "places.hpp"

#include <map>

namespace usm_dlpack::python {
namespace {

/// Where a queue was passed, and the texts of its refusal.
struct queue_place {
  const char* field;
  const char* expected;
  const char* remedy;
};
constexpr queue_place in_stream = {
    "stream",
    "None, -1, a dpctl.SyclQueue, a capsule \"SyclQueueRef\", an object with "
    "_get_capsule() or sycl_queue, or the address of a sycl::queue",
    "pass the consumer's queue"};
constexpr queue_place in_producer = {
    "sycl_queue",
    "None, a dpctl.SyclQueue, a capsule \"SyclQueueRef\", an object with _get_capsule(), or "
    "the address of a sycl::queue",
    "correct the attribute of the array's class"};

[[noreturn]] void refuse_queue(const queue_place& place, nb::handle found) {
  refuse_argument(nb::exception_type::value_error, place.field, place.expected, text_of(found),
                  place.remedy);
}

/// The queue at an address. The caller guarantees the address, as in DLPack. Addresses that
/// are not aligned are refused, and so are 0, 1 and 2, which other libraries use as numbers of
/// streams.
sycl::queue queue_at(nb::handle address, const queue_place& place) {
  constexpr std::uintptr_t last_stream_number = 2;
  const auto value = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLong(address.ptr()));
  const bool is_beyond = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (is_beyond || value <= last_stream_number || value % alignof(sycl::queue) != 0) {
    refuse_queue(place, address);
  }
  return *reinterpret_cast<const sycl::queue*>(value);
}

bool is_integer(nb::handle object) {
  return PyLong_Check(object.ptr()) != 0 && PyBool_Check(object.ptr()) == 0;
}

/// The queue in an object, or in what its `_get_capsule()` returns.
std::optional<sycl::queue> queue_of(nb::handle object) {
  if (auto queue = find_queue(object)) {
    return queue;
  }
  const nb::object method = find_attribute(object, "_get_capsule", PyExc_Exception);
  if (!method.is_valid()) {
    return std::nullopt;
  }
  const nb::object capsule =
      checked_unless(PyExc_Exception, PyObject_CallNoArgs(method.ptr()));
  return capsule.is_valid() ? find_queue(capsule) : std::nullopt;
}

/// The queue in an attribute `sycl_queue`, or at the address in it.
std::optional<sycl::queue> queue_in(nb::handle attribute, const queue_place& place) {
  return is_integer(attribute) ? queue_at(attribute, place) : queue_of(attribute);
}

sycl::queue make_queue(std::int32_t device_id) {
  return {default_context(device_id), root_device(device_id),
          sycl::property_list{sycl::property::queue::in_order()}};
}

/// The unused queues for copies, by device id; never destroyed.
std::mutex idle_guard;
auto& idle_queues = *new std::map<std::int32_t, std::vector<sycl::queue>>;

sycl::queue take_idle(std::int32_t device_id) {
  {
    const std::lock_guard<std::mutex> lock(idle_guard);
    std::vector<sycl::queue>& queues = idle_queues[device_id];
    if (!queues.empty()) {
      sycl::queue taken = std::move(queues.back());
      queues.pop_back();
      return taken;
    }
  }
  return make_queue(device_id);
}

}  // namespace

sycl::queue& package_queue(std::int32_t device_id) {
  static std::mutex guard;
  static auto& queues = *new std::map<std::int32_t, sycl::queue>;
  const std::lock_guard<std::mutex> lock(guard);
  const auto found = queues.find(device_id);
  return found != queues.end()
             ? found->second
             : queues.try_emplace(device_id, make_queue(device_id)).first->second;
}

copy_queue::copy_queue(std::int32_t device_id)
    : device_id_(device_id), queue_(take_idle(device_id)) {}

copy_queue::~copy_queue() {
  try {
    if (!queue_.ext_oneapi_empty()) {  // no other thread submits to it
      queue_.wait();
    }
    const std::lock_guard<std::mutex> lock(idle_guard);
    idle_queues[device_id_].push_back(queue_);
  } catch (...) {
    new (std::nothrow) sycl::queue(queue_);  // never destroyed
  }
}

consumer_stream read_stream(nb::handle stream) {
  if (stream.is_none()) {
    return {};
  }
  if (is_integer(stream)) {
    int overflow = 0;
    if (PyLong_AsLongLongAndOverflow(stream.ptr(), &overflow) == -1 && overflow == 0) {
      return {std::nullopt, true};
    }
    return {queue_at(stream, in_stream), false};
  }
  std::optional<sycl::queue> queue = queue_of(stream);
  if (!queue) {
    const nb::object attribute = find_attribute(stream, "sycl_queue", PyExc_Exception);
    queue = attribute.is_valid() ? queue_in(attribute, in_stream) : std::nullopt;
  }
  if (queue) {
    return {std::move(queue), false};
  }
  refuse_queue(in_stream, stream);
}

std::optional<sycl::queue> queue_attribute(nb::handle producer) {
  static PyObject* const name = PyUnicode_InternFromString("sycl_queue");
  const nb::object found = find_attribute(producer, nb::handle(name));
  if (!found.is_valid() || found.is_none()) {
    return std::nullopt;
  }
  if (auto queue = queue_in(found, in_producer)) {
    return queue;
  }
  refuse_queue(in_producer, found);
}

void order_behind(sycl::queue producer, sycl::queue consumer) {
  const without_gil unlocked;
  detail::ask_runtime("stream", [&] { detail::order_by_event(producer, consumer); });
}

void hand_over(sycl::queue producer, sycl::queue consumer) {
  const bool same = producer == consumer;
  if (same && consumer.is_in_order()) {
    return;
  }
  const without_gil unlocked;
  detail::ask_runtime("stream", [&] {
    if (producer.get_context() != consumer.get_context()) {
      detail::wait_in_turn(producer);
    } else if (same || consumer.is_in_order()) {
      detail::order_by_event(producer, consumer);
    } else {
      // This waits for the producer's host tasks, because `queue::memcpy` of an out-of-order
      // queue would overtake a barrier that depends on one (DPC++ 2026.2).
      consumer.ext_oneapi_submit_barrier({producer.ext_oneapi_submit_barrier()});
    }
  });
}

void wait_for(const sycl::queue& queue) {
  const without_gil unlocked;
  detail::ask_runtime("queue", [&] { detail::wait_in_turn(queue); });
}

}  // namespace usm_dlpack::python
