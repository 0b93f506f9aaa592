// SPDX-License-Identifier: Apache-2.0
#include "order/queues.hpp"
#include "arguments/places.hpp"

#include <algorithm>
#include <map>

namespace usm_dlpack::python {
namespace {

/// What is kept of a root device.
struct device_queues {
  explicit device_queues(std::int32_t device_id)
      : device(root_device(device_id)),
        own(default_context(device_id), device,
            sycl::property_list{sycl::property::queue::in_order()}) {}

  sycl::device device;
  sycl::queue own;
  nb::object dpctl_object;  ///< dpctl's queue
  std::optional<sycl::queue> dpctl;
  nb::object device_object;
};

std::mutex devices_guard;
// Never destroyed: threads may outlive the statics.
auto& devices = *new std::map<std::int32_t, device_queues>;

/// @pre `devices_guard` is locked
device_queues& queues_of(std::int32_t device_id) {
  const auto entry = devices.find(device_id);
  return entry != devices.end() ? entry->second
                                : devices.try_emplace(device_id, device_id).first->second;
}

constexpr std::size_t most_rows_without_holder = 8;

}  // namespace

sycl::queue& package_queue(std::int32_t device_id) {
  const std::lock_guard<std::mutex> lock(devices_guard);
  return queues_of(device_id).own;
}

const sycl::queue& dpctl_queue(std::int32_t device_id) {
  {
    const std::lock_guard<std::mutex> lock(devices_guard);
    if (const device_queues& queues = queues_of(device_id); queues.dpctl) {
      return *queues.dpctl;
    }
  }
  const nb::gil_scoped_acquire gil;
  static_cast<void>(dpctl_queue_object(device_id));
  const std::lock_guard<std::mutex> lock(devices_guard);
  return *queues_of(device_id).dpctl;
}

nb::object dpctl_queue_object(std::int32_t device_id) {
  {
    const std::lock_guard<std::mutex> lock(devices_guard);
    if (const device_queues& queues = queues_of(device_id); queues.dpctl) {
      return queues.dpctl_object;
    }
  }
  static imported cached_queue{"dpctl", "get_device_cached_queue"};
  const nb::object object = cached_queue.get()(to_dpctl(root_device(device_id)));
  const sycl::queue& queue = *find_sycl<sycl::queue>(object);
  const std::lock_guard<std::mutex> lock(devices_guard);
  device_queues& queues = queues_of(device_id);
  if (!queues.dpctl) {
    queues.dpctl_object = object;
    queues.dpctl = queue;
  }
  return queues.dpctl_object;
}

nb::object dpctl_device_object(std::int32_t device_id, const sycl::device& device) {
  {
    const std::lock_guard<std::mutex> lock(devices_guard);
    const device_queues& queues = queues_of(device_id);
    if (queues.device == device && queues.device_object.is_valid()) {
      return queues.device_object;
    }
  }
  nb::object object = to_dpctl(device);  // may let other threads run
  const std::lock_guard<std::mutex> lock(devices_guard);
  device_queues& queues = queues_of(device_id);
  if (queues.device == device) {
    queues.device_object = object;
  }
  return object;
}

void wait_unlocked(const sycl::queue& queue) {
  run_unlocked([&] { detail::pending_work(queue).wait(); });
}

bool is_done(const sycl::queue& queue) {
  bool done = false;
  detail::with_runtime_errors(
      "queue", [&] { run_unlocked([&] { done = detail::pending_work(queue).is_done(); }); });
  return done;
}

void wait_for(const sycl::queue& queue) {
  detail::with_runtime_errors("queue", [&] { wait_unlocked(queue); });
}

void hand_over(const sycl::queue& producer, const sycl::queue& consumer) {
  detail::check_executing(producer);
  detail::check_executing(consumer);
  if (producer == consumer && consumer.is_in_order()) {
    return;
  }
  detail::with_runtime_errors("stream", [&] {
    run_unlocked([&] {
      detail::pending_work work(producer);
      if (work.is_done()) {
        return;
      }
      if (producer.get_context() == consumer.get_context()) {
        detail::order_by_event(work, consumer);
      } else {
        work.wait();
      }
    });
  });
}

queue_holder queue_list::add(const sycl::queue& queue) {
  auto added = std::make_shared<const sycl::queue>(queue);
  std::vector<row> alone;
  {
    const std::lock_guard<std::mutex> lock(guard_);
    for (const row& entry : rows_) {
      if (entry.queue == queue) {
        if (queue_holder shared = entry.holder.lock()) {
          return shared;
        }
      }
      if (entry.holder.expired()) {
        alone.push_back(entry);
      }
    }
    rows_.push_back({queue, added});
  }
  for (std::size_t i = 0; i + most_rows_without_holder < alone.size(); ++i) {
    if (detail::is_recording(alone[i].queue)) {
      continue;  // its work has not begun
    }
    if (detail::is_recording(queue)) {  // no event can order it behind another one
      wait_for(alone[i].queue);
    } else {
      hand_over(alone[i].queue, queue);
    }
    forget(alone[i]);
  }
  return added;
}

std::vector<queue_list::row> queue_list::rows_now() const {
  const std::lock_guard<std::mutex> lock(guard_);
  return rows_;
}

void queue_list::forget(const row& finished) {
  const auto is_the_same = [&](const row& entry) {
    return !entry.holder.owner_before(finished.holder) &&
           !finished.holder.owner_before(entry.holder);
  };
  const std::lock_guard<std::mutex> lock(guard_);
  rows_.erase(std::remove_if(rows_.begin(), rows_.end(), is_the_same), rows_.end());
}

std::vector<sycl::queue> queue_list::queues() const {
  std::vector<sycl::queue> queues;
  for (const row& entry : rows_now()) {
    queues.push_back(entry.queue);
  }
  return queues;
}

void queue_list::hand_over_to(const sycl::queue& consumer) {
  const std::vector<row> rows = rows_now();
  detail::check_executing(consumer);
  for (const row& entry : rows) {
    detail::check_executing(entry.queue);
  }
  for (const row& entry : rows) {
    hand_over(entry.queue, consumer);
  }
}

void queue_list::wait(const std::optional<sycl::queue>& but, bool skip_recording) {
  for (const row& entry : rows_now()) {
    const bool is_alone = entry.holder.expired();  // before the wait
    if (but == entry.queue || (skip_recording && detail::is_recording(entry.queue))) {
      continue;
    }
    wait_for(entry.queue);
    if (is_alone) {
      forget(entry);
    }
  }
}

}  // namespace usm_dlpack::python
