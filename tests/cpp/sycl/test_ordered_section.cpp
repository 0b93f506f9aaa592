// SPDX-License-Identifier: Apache-2.0
//
// What an ordered section waits for at its start and at its end, shown with work that a test
// holds back.
#include "held_queues.hpp"

#include <atomic>

namespace test_ordered_section {

using namespace usm_dlpack_test;

using row = md::mdspan<int, md::dextents<int, 1>>;
using const_row = md::mdspan<const int, md::dextents<int, 1>>;

struct memory_of_two {
  explicit memory_of_two(const sycl::queue& queue) : memory(alloc::shared, 64, queue) {
    std::fill_n(memory.as<int>(), 4, 0);
    std::fill_n(memory.as<int>(32), 4, 7);
  }

  usm_memory memory;
  row written{memory.as<int>(), 4};
  const_row read{memory.as<int>(32), 4};
};

TEST(OrderedSection, TheStartWaitsForAnOutOfOrderQueue) {
  const sycl::queue queue = new_queue(false);
  gate closed(queue);
  std::atomic<bool> is_open{false}, was_open_at_start{false};
  const std::future<void> call = std::async(std::launch::async, [&] {
    const ordered_section work(queue);
    was_open_at_start = is_open.load();  // the end waits, too
  });
  EXPECT_EQ(call.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  is_open = true;
  closed.open();
  call.wait();
  EXPECT_TRUE(was_open_at_start);
}

/// Requires that the end of a section waits for work that was submitted in it, or does not.
template <class... Arguments>
void expect_end_to_wait(bool waits, const sycl::queue& queue, const Arguments&... arguments) {
  std::optional<gate> closed;
  std::promise<void> is_held;
  const std::future<void> section = std::async(std::launch::async, [&] {
    const ordered_section work(queue, arguments...);
    closed.emplace(queue);
    is_held.set_value();
  });
  is_held.get_future().wait();
  expect_waiting(waits, *closed, section);
}

TEST(OrderedSection, TheEndWaitsForItsQueueWhateverTheArguments) {
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    const sycl::queue queue = new_queue(in_order);
    const memory_of_two two(queue);
    const usm_array<row> result(queue, md::dextents<int, 1>(4));
    expect_end_to_wait(true, queue, two.read, two.written);
    expect_end_to_wait(true, queue, known_view<row>{two.written, queue});
    expect_end_to_wait(true, queue, result);
    expect_end_to_wait(true, queue);
  }
}

TEST(OrderedSection, TheHostMayWaitWithinIt) {
  const sycl::queue queue = new_queue(true);
  const usm_array<row> result(queue, md::dextents<int, 1>(4));
  const ordered_section work(queue, result);
  std::optional<gate> closed(queue);
  const std::future<void> waiting = std::async(std::launch::async, [&] { work.wait(); });
  expect_waiting(true, *closed, waiting);
}

/// Copies 7 into memory. No host task, which would wait for the thread of a gate.
void write_seven(sycl::queue queue, const memory_of_two& two) {
  queue.memcpy(two.written.data_handle(), two.read.data_handle(), sizeof(int));
}

TEST(OrderedSection, TheStartWaitsForTheQueuesThatArgumentsKnow) {
  for (const bool from_in_order : {true, false}) {
    SCOPED_TRACE(from_in_order);
    for (const bool to_in_order : {true, false}) {
      SCOPED_TRACE(to_in_order);
      const sycl::queue from = new_queue(from_in_order), to = new_queue(to_in_order);
      const memory_of_two two(from);
      gate closed(from);
      const std::future<void> call = std::async(std::launch::async, [&] {
        const ordered_section work(to, known_view<const_row>{two.read, from});
        write_seven(to, two);
      });
      expect_waiting(true, closed, call);
      EXPECT_EQ(*two.written.data_handle(), 7);
    }
  }
}

/// A queue that records a graph of its device.
class recording {
 public:
  explicit recording(sycl::queue queue)
      : queue_(std::move(queue)), graph(queue_.get_context(), queue_.get_device()) {
    graph.begin_recording(queue_);
  }
  ~recording() { graph.end_recording(queue_); }

 private:
  sycl::queue queue_;

 public:
  sycl::ext::oneapi::experimental::command_graph<> graph;
};

TEST(OrderedSection, WhileItsQueueRecordsItWaitsForNothing) {
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    const sycl::queue queue = new_queue(in_order), other = new_queue(in_order);
    const memory_of_two two(queue);
    gate closed(other);
    {
      const recording records(queue);
      const std::future<void> call = std::async(std::launch::async, [&] {
        const ordered_section work(queue, known_view<const_row>{two.read, other}, two.written);
        write_seven(queue, two);
      });
      expect_waiting(false, closed, call);
    }
    EXPECT_EQ(*two.written.data_handle(), 0);
  }
}

TEST(OrderedSection, NothingWaitsForAQueueThatRecords) {
  const sycl::queue queue = new_queue(true), other = new_queue(true);
  const memory_of_two two(queue);
  const recording records(queue);
  const ordered_section work(queue, two.written);
  EXPECT_REFUSAL(work.wait(), errc::runtime_error, "queue", "a queue that runs its work",
                 "one that records a graph");
  EXPECT_REFUSAL(ordered_section(other, known_view<row>{two.written, queue}),
                 errc::runtime_error, "queue");
}

TEST(OrderedSection, AQueueIsRefusedAsByCheckQueue) {
  const sycl::queue queue = queue_on();
  const memory_of_two two(queue);
  const sycl::queue foreign(sycl::context(queue.get_device()), queue.get_device());
  EXPECT_REFUSAL(ordered_section(foreign, two.read), errc::context_not_default, "queue");
  std::array<int, 4> on_stack{};
  EXPECT_REFUSAL(
      ordered_section(queue, two.read, known_view<row>{row(on_stack.data(), 4), queue}),
      errc::pointer_unknown, "data", "USM of the given context",
      "an allocation unknown to it, for view 2");
}

/// For as long as it lives, every wait fails.
struct failing_waits {
  failing_waits() {
    static constexpr detail::queue_functions failing{
        [](const sycl::queue&) {
          throw sycl::exception(make_error_code(sycl::errc::runtime));
        },
        detail::plain_queue_functions.wait_for_default_queue,
        detail::plain_queue_functions.free_after_work,
        detail::plain_queue_functions.free_finished};
    detail::current_queue_functions = &failing;
  }
  failing_waits(const failing_waits&) = delete;
  failing_waits& operator=(const failing_waits&) = delete;
  ~failing_waits() { detail::current_queue_functions = &detail::plain_queue_functions; }
};

TEST(OrderedSection, AFailedWaitIsReportedUnlessAnExceptionIs) {
  const sycl::queue queue = new_queue(true);
  const memory_of_two two(queue);
  const auto section = [&](bool fails) {
    const ordered_section work(queue, two.written);
    if (fails) {
      throw std::runtime_error("of the function");
    }
  };
  const failing_waits failing;
  EXPECT_THROW(section(false), sycl::exception);
  EXPECT_THROW(section(true), std::runtime_error);
}

}  // namespace test_ordered_section
