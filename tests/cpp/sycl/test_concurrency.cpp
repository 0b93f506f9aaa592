// SPDX-License-Identifier: Apache-2.0
//
// What several threads may do at once without a lock, on the real runtime: the first use of
// everything that is made on first use, exports, imports and refusals, and the deletion of
// what other threads exported. Meant for ThreadSanitizer.
//
// Devices are listed on one thread: where several call `sycl::device::get_devices()` at once
// and ONEAPI_DEVICE_SELECTOR is set, DPC++ 2026.2 may take sub-devices for roots ever after.
#include <threads.hpp>

#include "new_process.hpp"
#include "usm_memory.hpp"

namespace test_concurrency {

using namespace usm_dlpack_test;

std::string refusal_of_import(const DLTensor& tensor) {
  return refusal_of([&] { validate(tensor); });
}

// Without a lock of the runtime's own before it: the first call of SYCL is the table's.
TEST(Concurrency, EightThreadsRacingOnTheFirstCallGetTheSameAnswers) {
  in_a_new_process({}, [] {
    std::array<float, 24> elements{};
    const auto named = to_dlpack_tensor(view_of(elements.data(), 24), DLDevice{kDLOneAPI, 0});
    of_each_thread<const device_table*> tables;
    of_each_thread<bool> right;
    on_eight_threads([&](std::size_t number) {
      right[number].value = number % 2 == 0
                                ? device_id(root_device(0)) == 0
                                : refusal_of_import(named.get()) == "pointer_unknown of data";
      tables[number].value = &device_table::get();
    });
    for (std::size_t number = 0; number < thread_count; ++number) {
      EXPECT_TRUE(right[number].value);
      EXPECT_EQ(tables[number].value, tables[0].value);
    }
    EXPECT_EQ(device_table::get().devices.size(), root_devices().size());
    EXPECT_EQ(default_context(0), queue_on(0).get_context());
  });
}

/// Allocates, exports in two ways, validates, is refused twice and frees; says whether every
/// answer was right.
bool exchanges_rightly(alloc kind, std::size_t size, const sycl::queue& queue,
                       std::int32_t id) {
  const usm_memory memory(kind, size, queue);
  const auto bytes = view_of(memory.as<std::int8_t>(), static_cast<std::int64_t>(size));
  const auto exported = to_dlpack_tensor(bytes);
  const usm_allocation proved = validate(exported.get());
  DLTensor beyond = exported.get();
  beyond.byte_offset = 4;
  DLTensor unknown = exported.get();
  unknown.data = &unknown;
  return refusal_of_import(beyond) == "out_of_bounds of shape" &&
         refusal_of_import(unknown) == "pointer_unknown of data" && id_of(exported) == id &&
         proved.device_id() == id && proved.usm_type() == kind && proved.size() == size &&
         proved.data() == memory.at() && proved.context() == queue.get_context() &&
         id_of(to_dlpack_tensor(view_of(memory.as<float>(), 16), queue)) == id;
}

/// Memory of other threads comes and goes all the while, at addresses that were used before.
void expect_eight_threads_to_exchange(const std::vector<sycl::queue>& queue_by_id) {
  constexpr int rounds = 100;
  of_each_thread<int> right;
  on_eight_threads([&](std::size_t number) {
    for (int round = 0; round < rounds; ++round) {
      const std::size_t step = number + static_cast<std::size_t>(round);
      const std::size_t id = step % queue_by_id.size();
      right[number].value += exchanges_rightly(usm_kinds[step % 3], 64 * (number + 1),
                                               queue_by_id[id], static_cast<std::int32_t>(id));
    }
  });
  for (const auto& thread : right) {
    EXPECT_EQ(thread.value, rounds);
  }
}

TEST(Concurrency, EightThreadsExportValidateAndAreRefusedAtOnceUnpooled) {
  expect_eight_threads_to_exchange({queue_on(0)});
}

TEST(TwoDevicesConcurrency, EightThreadsExportValidateAndAreRefusedOnBothDevicesAtOnce) {
  expect_eight_threads_to_exchange({queue_on(0), queue_on(1)});
}

/// The deleter frees USM on a thread that did not allocate it, while others ask the runtime.
TEST(Concurrency, EightThreadsDeleteTheUsmThatOthersExportedUnpooled) {
  const sycl::queue queue = queue_on();
  of_each_thread<managed_tensor> exported;
  of_each_thread<const void*> addresses;
  on_eight_threads([&](std::size_t number) {
    auto memory = std::make_unique<usm_memory>(usm_kinds[number % 3], 64, queue);
    const auto wrapper = to_dlpack_tensor(view_of(memory->as<float>(), 16));
    addresses[number].value = memory->at();
    exported[number].value = to_managed_tensor(wrapper.get(), std::move(memory));
  });
  of_each_thread<bool> right;
  on_eight_threads([&](std::size_t number) {
    const std::size_t other = (number + 1) % thread_count;
    managed_tensor taken = std::move(exported[other].value);
    const alloc kind = validate(*taken).usm_type();
    taken.reset();
    right[number].value = kind == usm_kinds[other % 3];
  });
  for (std::size_t number = 0; number < thread_count; ++number) {
    EXPECT_TRUE(right[number].value);
    EXPECT_EQ(sycl::get_pointer_type(addresses[number].value, default_context(0)),
              alloc::unknown);
  }
}

using array = usm_array<md::mdspan<float, md::dextents<std::int64_t, 1>>>;

/// Each array waits for the queue, which the CPU driver does not let several threads do at
/// once.
TEST(Concurrency, EightThreadsFreeArraysOfOneQueueThatHasWork) {
  using sycl::info::event_command_status;
  constexpr std::size_t count = std::size_t{1} << 16;
  sycl::queue queue = queue_on();
  static float source[count];  // never written, which ThreadSanitizer would call a race
  of_each_thread<int> finished;
  on_eight_threads([&](std::size_t number) {
    for (int i = 0; i < 50; ++i) {
      sycl::event copied;
      {
        const array made(queue, md::dextents<std::int64_t, 1>(count), alloc::device);
        copied = queue.copy(source, made.data(), count);
      }
      finished[number].value +=
          copied.get_info<sycl::info::event::command_execution_status>() ==
          event_command_status::complete;
    }
  });
  for (const auto& of_thread : finished) {
    EXPECT_EQ(of_thread.value, 50);
  }
}

/// `ext_oneapi_empty`, which `pending_work` does not use on OpenCL, would crash here.
TEST(Concurrency, AQueueIsQueriedWhileAnotherThreadSubmitsToIt) {
  for (sycl::queue queue : {queue_on(), queue_on(0, sycl::property::queue::in_order())}) {
    static float source[16];
    const usm_memory memory(alloc::device, sizeof source, queue);
    std::atomic<bool> stop{false};
    std::thread submitting([&] {
      while (!stop) queue.memcpy(memory.at(), source, sizeof source).wait();
    });
    for (int i = 0; i < 20000; ++i) {
      detail::pending_work work(queue);
      work.is_done();
      if (i % 100 == 0) work.wait();  // thousands of barriers overflow the driver's stack
    }
    stop = true;
    submitting.join();
    EXPECT_NO_THROW(queue.wait_and_throw());
  }
}

/// `clFinish` of the CPU driver would crash here.
TEST(Concurrency, EightThreadsWaitForOneQueueThatHasWork) {
  for (sycl::queue queue : {queue_on(), queue_on(0, sycl::property::queue::in_order())}) {
    static float source[16];
    const usm_memory memory(alloc::device, sizeof source, queue);
    on_eight_threads([&](std::size_t) {
      for (int i = 0; i < 500; ++i) {
        queue.memcpy(memory.at(), source, sizeof source);
        detail::pending_work(queue).wait();
      }
    });
    EXPECT_NO_THROW(queue.wait_and_throw());
  }
}

/// A barrier that is waited for by its event misses some of them.
TEST(Concurrency, AWaitMissesNoRunningHostTask) {
  for (sycl::queue queue : {queue_on(), queue_on(0, sycl::property::queue::in_order())}) {
    static float source[16];
    const usm_memory memory(alloc::device, sizeof source, queue);
    int missed = 0;
    for (int i = 0; i < 200; ++i) {
      const auto is_done = std::make_shared<std::atomic<bool>>(false);
      queue.submit([&](sycl::handler& handler) {
        handler.host_task([is_done] {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          *is_done = true;
        });
      });
      if (i % 2 == 0) {
        queue.memcpy(memory.at(), source, sizeof source);
      }
      detail::pending_work(queue).wait();
      missed += *is_done ? 0 : 1;
    }
    EXPECT_EQ(missed, 0);
    queue.wait();
  }
}

}  // namespace test_concurrency
