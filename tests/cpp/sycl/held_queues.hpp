// SPDX-License-Identifier: Apache-2.0
//
// Queues that a test holds back, and arguments that know a queue: for tests of who waits for
// whom.
#pragma once

#include "usm_memory.hpp"

#include <chrono>
#include <future>

namespace usm_dlpack_test {

/// An argument that knows a queue, as `owned_view` does.
template <class View>
struct known_view {
  View of;
  sycl::queue by;

  const View& view() const { return of; }
  const sycl::queue& queue() const { return by; }
};

inline sycl::queue new_queue(bool is_in_order) {
  return queue_on(0, is_in_order ? sycl::property_list{sycl::property::queue::in_order()}
                                 : sycl::property_list{});
}

/// Holds a queue back until it is opened, or for half a minute.
class gate {
 public:
  explicit gate(sycl::queue queue) : queue_(std::move(queue)) {
    queue_.submit([opened = open_.get_future().share()](sycl::handler& handler) {
      handler.host_task([opened] { opened.wait_for(std::chrono::seconds(30)); });
    });
  }
  ~gate() {
    open();
    queue_.wait();
  }
  void open() {
    if (!std::exchange(is_open_, true)) {
      open_.set_value();
    }
  }

 private:
  sycl::queue queue_;
  std::promise<void> open_;
  bool is_open_ = false;
};

/// Requires that a call waits for a gate, which this opens then, or that it returns before.
inline void expect_waiting(bool waits, gate& closed, const std::future<void>& call) {
  const std::chrono::milliseconds limit(waits ? 200 : 20'000);
  EXPECT_EQ(call.wait_for(limit) == std::future_status::timeout, waits);
  closed.open();
  call.wait();
}

}  // namespace usm_dlpack_test
