// SPDX-License-Identifier: Apache-2.0
//
// The order between queues, and the queues of copies.
#include "queues.hpp"
#include "places.hpp"
#include "process.hpp"

#include <map>

namespace usm_dlpack::python {
namespace {

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

nb::object dpctl_queue_object(std::int32_t device_id) {
  static std::mutex guard;
  static auto& queues = *new std::map<std::int32_t, nb::object>;
  {
    const std::lock_guard<std::mutex> lock(guard);
    const auto found = queues.find(device_id);
    if (found != queues.end()) {
      return found->second;
    }
  }
  static imported cached_queue{"dpctl", "get_device_cached_queue"};
  const nb::object made = cached_queue.get()(to_dpctl(root_device(device_id)));
  const std::lock_guard<std::mutex> lock(guard);
  return queues.try_emplace(device_id, made).first->second;
}

sycl::queue dpctl_queue(std::int32_t device_id) {
  return *find_sycl<sycl::queue>(dpctl_queue_object(device_id));
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

void wait_by_event(sycl::queue queue) {
  const without_gil unlocked;
  detail::ask_runtime("queue", [&] { queue.ext_oneapi_submit_barrier().wait(); });
}

void wait_for(const sycl::queue& queue) {
  const without_gil unlocked;
  detail::ask_runtime("queue", [&] { detail::wait_in_turn(queue); });
}

}  // namespace usm_dlpack::python
