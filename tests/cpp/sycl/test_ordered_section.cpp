// SPDX-License-Identifier: Apache-2.0
//
// What an ordered section waits for at its start and at its end, shown with work that a test
// holds back, and what its barriers order where it waits for nothing.
#include "held_queues.hpp"
#include "opencl_objects.hpp"

#include <thread>

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
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    const sycl::queue queue = new_queue(in_order);
    gate closed(queue);
    expect_waiting(!in_order, closed,
                   std::async(std::launch::async, [&] { const ordered_section work(queue); }));
  }
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

TEST(OrderedSection, TheEndWaitsForArgumentsThatTheCallerMayWriteNext) {
  for (const bool in_order : {true, false}) {
    SCOPED_TRACE(in_order);
    const sycl::queue queue = new_queue(in_order);
    const memory_of_two two(queue);
    const usm_array<row> result(queue, md::dextents<int, 1>(4));
    expect_end_to_wait(true, queue, two.read, two.written);
    expect_end_to_wait(true, queue, known_view<row>{two.written, queue});
    // The caller may write to it by an operation that ignores the order of the queue.
    expect_end_to_wait(true, queue, two.read);
    expect_end_to_wait(true, queue, known_view<const_row>{two.read, queue}, result);
    // The host may read it.
    for (const auto kind : {sycl::usm::alloc::host, sycl::usm::alloc::shared}) {
      const usm_array<row> readable(queue, md::dextents<int, 1>(4), kind);
      expect_end_to_wait(true, queue, result, readable);
    }
    // Nothing else would order later work on an out-of-order queue.
    expect_end_to_wait(!in_order, queue, result);
    expect_end_to_wait(!in_order, queue);
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

TEST(OrderedSection, TheQueueIsOrderedBehindThoseThatArgumentsKnow) {
  for (const bool from_in_order : {true, false}) {
    SCOPED_TRACE(from_in_order);
    for (const bool to_in_order : {true, false}) {
      SCOPED_TRACE(to_in_order);
      const sycl::queue from = new_queue(from_in_order), to = new_queue(to_in_order);
      for (const bool waits : {true, false}) {
        SCOPED_TRACE(waits);
        if (!waits && !(from_in_order && to_in_order)) {
          continue;  // `queue::memcpy` may overtake a barrier
        }
        const memory_of_two two(from);
        gate closed(from);
        const std::future<void> call = std::async(std::launch::async, [&] {
          const known_view<const_row> x{two.read, from};
          const auto work = waits ? ordered_section(to, x) : ordered_section::unwaited(to, x);
          write_seven(to, two);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        EXPECT_EQ(*two.written.data_handle(), 0);
        expect_waiting(waits, closed, call);
        sycl::queue(to).wait();
        EXPECT_EQ(*two.written.data_handle(), 7);
      }
    }
  }
}

TEST(OrderedSection, TheOtherQueuesAreOrderedBehindTheSection) {
  for (const bool from_in_order : {true, false}) {
    SCOPED_TRACE(from_in_order);
    for (const bool to_in_order : {true, false}) {
      SCOPED_TRACE(to_in_order);
      const sycl::queue from = new_queue(from_in_order), to = new_queue(to_in_order);
      const memory_of_two two(from);
      expect_end_to_wait(true, to, known_view<const_row>{two.read, from});
    }
  }
  sycl::queue from = new_queue(true);
  const sycl::queue to = new_queue(true);
  const memory_of_two two(from);
  std::optional<gate> closed;
  {
    const auto work = ordered_section::unwaited(to, known_view<const_row>{two.read, from});
    closed.emplace(to);
  }
  write_seven(from, two);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(*two.written.data_handle(), 0);
  closed->open();
  from.wait();
  EXPECT_EQ(*two.written.data_handle(), 7);
}

TEST(OrderedSection, AQueueIsRefusedAsByCheckQueue) {
  const sycl::queue queue = queue_on();
  const memory_of_two two(queue);
  const sycl::queue foreign(sycl::context(queue.get_device()), queue.get_device());
  EXPECT_REFUSAL(ordered_section(foreign, two.read), errc::context_not_default, "queue");
  EXPECT_REFUSAL(ordered_section::unwaited(foreign, two.read), errc::context_not_default,
                 "queue");
  std::array<int, 4> on_stack{};
  EXPECT_REFUSAL(
      ordered_section(queue, two.read, known_view<row>{row(on_stack.data(), 4), queue}),
      errc::pointer_unknown, "data", "USM of the given context",
      "an allocation unknown to it, for view 2");
}

TEST(OrderedSection, AFailedWaitIsReportedUnlessAnExceptionIs) {
  sycl::queue queue = new_queue(true);
  const memory_of_two two(queue);
  sycl::ext::oneapi::experimental::command_graph graph(queue.get_context(),
                                                       queue.get_device());
  const auto section = [&](bool fails) {
    const ordered_section work(queue, two.written);
    graph.begin_recording(queue);  // now the runtime refuses to wait
    if (fails) {
      throw std::runtime_error("of the function");
    }
  };
  EXPECT_THROW(section(false), sycl::exception);
  graph.end_recording(queue);
  EXPECT_THROW(section(true), std::runtime_error);
  graph.end_recording(queue);
}

TEST(OrderedSection, UnwaitedGivesBarriersOnOpencl) {
  cl_event held = opencl_function<decltype(clCreateUserEvent)>("clCreateUserEvent")(
      native_default_context(), nullptr);
  for (const bool at_start : {true, false}) {
    SCOPED_TRACE(at_start);
    sycl::queue queue = new_queue(false);
    const memory_of_two two(queue);
    const usm_memory seen(alloc::shared, 16, queue);
    const auto copy_behind = [&](std::vector<sycl::event> before, void* to, const void* from) {
      queue.submit([&](sycl::handler& handler) {
        handler.depends_on(before);
        handler.memcpy(to, from, 16);
      });
    };
    expect_success(opencl_function<decltype(clRetainEvent)>("clRetainEvent")(held));
    const sycl::event opened =
        sycl::make_event<sycl::backend::opencl>({held}, queue.get_context());
    if (at_start) {
      copy_behind({opened}, two.written.data_handle(), two.read.data_handle());
    }
    {
      const auto work = ordered_section::unwaited(queue, two.read, two.written);
      if (at_start) {
        copy_behind({}, seen.at(), two.written.data_handle());
      } else {
        copy_behind({opened}, two.written.data_handle(), two.read.data_handle());
      }
    }
    if (!at_start) {
      copy_behind({}, seen.at(), two.written.data_handle());
    }
    EXPECT_NE(opened.get_info<sycl::info::event::command_execution_status>(),
              sycl::info::event_command_status::complete);
    expect_success(opencl_function<decltype(clSetUserEventStatus)>("clSetUserEventStatus")(
        held, CL_COMPLETE));
    queue.wait();
    EXPECT_EQ(*seen.as<int>(), 7);
    held = opencl_function<decltype(clCreateUserEvent)>("clCreateUserEvent")(
        native_default_context(), nullptr);
  }
}

}  // namespace test_ordered_section
