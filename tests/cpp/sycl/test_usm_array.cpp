// SPDX-License-Identifier: Apache-2.0
//
// Arrays for results: the memory that they own can leave the process, leaves it without a
// copy, and is freed once, after the work of its queue.
#include "usm_memory.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace test_usm_array {

using namespace usm_dlpack_test;

using extents = md::dextents<std::int64_t, 2>;
using view = md::mdspan<float, extents>;
using device_array = usm_array<device_mdspan<view>>;

/// Promises that the handle is aligned.
template <std::size_t Alignment>
struct aligned_accessor : md::default_accessor<float> {
  using offset_policy = md::default_accessor<float>;
  static constexpr std::size_t byte_alignment = Alignment;
};
template <std::size_t Alignment>
using aligned_view = md::mdspan<float, extents, md::layout_right, aligned_accessor<Alignment>>;

alloc kind_at(const void* address, const sycl::queue& queue) {
  return sycl::get_pointer_type(address, queue.get_context());
}

// --- What is made ---------------------------------------------------------------------------

TEST(UsmArray, TheKindIsThatOfTheTypeOrThatAskedForOrDevice) {
  const sycl::queue queue = queue_on();
  const auto expect_kind = [&](const auto& made, alloc kind) {
    EXPECT_EQ(made.usm_type(), kind);
    EXPECT_EQ(kind_at(made.data(), queue), kind);
  };
  const extents shape(4, 6);
  expect_kind(usm_array<shared_mdspan<view>>(queue, shape), alloc::shared);
  expect_kind(usm_array<view>(queue, shape), alloc::device);
  expect_kind(usm_array<view>(queue, shape, alloc::host), alloc::host);
  EXPECT_REFUSAL(usm_array<view>(queue, shape, alloc::unknown), errc::usm_type_not_accepted,
                 "kind");
}

TEST(UsmArray, TheViewIsThatOfTheMemory) {
  const sycl::queue queue = queue_on();
  const usm_array<shared_mdspan<view>> made(queue, extents(4, 6));
  EXPECT_EQ(made.view().data_handle(), made.data());
  EXPECT_EQ(made.view().extents(), extents(4, 6));
  EXPECT_EQ(made.size_bytes(), 96U);
  EXPECT_EQ(made.queue(), queue);
  EXPECT_EQ(made.device_id(), 0);
  made.view()[md_array<std::int64_t, 2>{3, 5}] = 7;
  EXPECT_EQ(made.data()[23], 7);

  using strided = md::mdspan<float, extents, md::layout_stride>;
  const md_array<std::int64_t, 2> steps{8, 1};
  const usm_array<strided> gaps(queue, strided::mapping_type(extents(4, 6), steps));
  EXPECT_EQ(gaps.size_bytes(), (3 * 8 + 5 + 1) * sizeof(float));
  EXPECT_EQ(gaps.view().stride(0), 8);
}

/// Expects arrays, and what becomes of one, to be aligned and as large as they say.
template <std::size_t Alignment, class View>
void expect_aligned() {
  const sycl::queue queue = queue_on();
  std::deque<usm_array<View>> kept;
  for (std::int64_t extent = 0; extent < 40; ++extent) {
    const auto& made = kept.emplace_back(queue, extents(extent, 3), usm_kinds[extent % 3]);
    EXPECT_EQ(as_number(made.data()) % Alignment, 0U);
    const auto tensor = to_dlpack_tensor(made.view(), queue);
    EXPECT_EQ(validate(tensor.get()).structure().nbytes, made.size_bytes());
  }
  const managed_tensor managed = to_managed_tensor(std::move(kept.back()));
  EXPECT_EQ(as_number(managed->dl_tensor.data) % Alignment, 0U);
}

// Level Zero gives no more than 64 KiB, and PoCL does not look at what it is asked for.
TEST(UsmArray, MemoryIsAlignedTo256BytesOrAsTheAccessorPromises) {
  expect_aligned<256, view>();
  expect_aligned<131072, aligned_view<131072>>();
}

// --- What is refused ------------------------------------------------------------------------

TEST(UsmArray, ASizeThatIsTooLargeOrNegativeIsRefused) {
  const sycl::queue queue = queue_on();
  constexpr std::int64_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(float);
  EXPECT_REFUSAL(device_array(queue, extents(most, 1)), errc::runtime_error, "data",
                 "9223372036854775804 bytes of device USM for the array",
                 "null: the SYCL runtime had none to give");
  EXPECT_REFUSAL(device_array(queue, extents(most + 1, 1)), errc::out_of_range, "shape",
                 "at most 2305843009213693951 elements of the element type",
                 "2305843009213693952");
  EXPECT_REFUSAL(device_array(queue, extents(most, 5)), errc::index_type_too_small, "shape",
                 "a product that the view's index type int64_t holds", "a larger one",
                 "make the array smaller");
  EXPECT_REFUSAL(device_array(queue, extents(4, -1)), errc::out_of_range, "shape[1]");

  using narrow = md::dextents<std::int32_t, 3>;
  EXPECT_REFUSAL((usm_array<md::mdspan<float, narrow>>(queue, narrow(0, 65536, 65536))),
                 errc::index_type_too_small, "shape");
  const md::layout_right::mapping<narrow> mapping(narrow(0, 65536, 65536));
  EXPECT_REFUSAL((usm_array<md::mdspan<float, narrow>>(queue, mapping)),
                 errc::index_type_too_small, "shape");
}

TEST(UsmArray, AShapeIsLookedAtBeforeItIsConverted) {
  const sycl::queue queue = queue_on();
  constexpr std::int64_t beyond = (std::int64_t{1} << 32) + 4;
  using narrow = usm_array<md::mdspan<float, md::dextents<int, 2>>>;
  EXPECT_REFUSAL(narrow(queue, std::array<std::int64_t, 2>{beyond, 6}),
                 errc::index_type_too_small, "shape[0]",
                 "a value that the view's index type int32_t holds", "4294967300");
  EXPECT_REFUSAL(narrow(queue, std::array<std::size_t, 2>{6, 0xffffffff}),
                 errc::index_type_too_small, "shape[1]");
  EXPECT_REFUSAL(narrow(queue, extents(beyond, 6)), errc::index_type_too_small, "shape[0]");
  using fixed = usm_array<md::mdspan<float, md::extents<int, 3, md::dynamic_extent>>>;
  EXPECT_REFUSAL(fixed(queue, std::array<int, 2>{2, 6}), errc::shape_mismatch, "shape[0]");
  EXPECT_REFUSAL(fixed(queue, std::array<std::int64_t, 1>{beyond}), errc::index_type_too_small,
                 "shape[1]");
  EXPECT_EQ(fixed(queue, std::array<std::int64_t, 1>{6}).size_bytes(), 72U);
}

// --- Export ---------------------------------------------------------------------------------

TEST(UsmArray, AManagedTensorOwnsTheMemoryItselfUnpooled) {
  const sycl::queue queue = queue_on();
  const auto expect_owned = [&](alloc kind, const auto& to_managed) {
    usm_array<view> made(queue, extents(4, 6), kind);
    const float* const data = made.data();
    auto managed = to_managed(std::move(made));
    EXPECT_EQ(managed->dl_tensor.data, data);
    EXPECT_EQ(validate(*managed).usm_type(), kind);
    EXPECT_EQ(to_mdspan<view>(*managed).extents(), extents(4, 6));
    managed.reset();
    EXPECT_EQ(kind_at(data, queue), alloc::unknown) << "still allocated";
  };
  for (const alloc kind : usm_kinds) {
    expect_owned(kind, [](auto&& made) { return to_managed_tensor(std::move(made)); });
    expect_owned(kind, [](auto&& made) { return to_legacy_managed_tensor(std::move(made)); });
  }
}

TEST(UsmArray, EmptyReversedAndBroadcastArraysAreExported) {
  const sycl::queue queue = queue_on();
  device_array empty(queue, extents(0, 6));
  EXPECT_EQ(empty.size_bytes(), 0U);
  const float* const place = empty.data();
  const managed_tensor nothing = to_managed_tensor(std::move(empty));
  EXPECT_EQ(nothing->dl_tensor.data, place);
  EXPECT_EQ(validate(*nothing).usm_type(), alloc::device);

  using reversed = md::mdspan<float, extents, layout_relaxed>;
  usm_array<reversed> made(queue, reversed::mapping_type(extents(4, 6), {-6, -1}));
  EXPECT_EQ(validate(*to_managed_tensor(std::move(made))).structure().nbytes, 96U);

  using narrow = md::dextents<std::int32_t, 2>;
  using broadcast = md::mdspan<float, narrow, layout_relaxed>;
  usm_array<broadcast> one(queue, broadcast::mapping_type(narrow(1 << 20, 1 << 20), {0, 0}));
  EXPECT_EQ(validate(*to_managed_tensor(std::move(one))).structure().nbytes, sizeof(float));
}

TEST(UsmArray, AnArrayThatWasMovedFromIsNotUsed) {
  device_array made(queue_on(), extents(4, 6));
  const device_array other = std::move(made);
  const auto refuses = [](const auto& use) {
    EXPECT_REFUSAL(use(), errc::invalid_tensor, "data", "the memory of the array",
                   "null: it was moved from", "use the array that it was moved to");
  };
  refuses([&] { return to_managed_tensor(std::move(made)); });
  refuses([&] { return to_legacy_managed_tensor(std::move(made)); });
  refuses([&] { return made.view(); });
  refuses([&] { ordered_section(queue_on(), made).wait(); });
  EXPECT_EQ(made.queue(), other.queue());
}

// --- Ownership, and the work of the queue ---------------------------------------------------

const std::vector<float> source(24, 1.5F);  // for copies that may be pending

/// Work that is pending for a while: a copy to the array which the runtime has not even begun.
/// Not for in-order queues: the OpenCL adapter leaks those whose copy waited for a host task.
void submit_slow_work(sycl::queue& queue, const device_array& made, std::atomic<bool>& begun) {
  const sycl::event waited = queue.submit([&](sycl::handler& handler) {
    handler.host_task([&begun] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      begun = true;
    });
  });
  queue.memcpy(made.data(), source.data(), made.size_bytes(), waited);
}

// --- The function that frees, by which Python's lock is given up ----------------------------

/// For as long as it lives, counts what is freed behind work, and notes what an array shows
/// meanwhile, as another thread may see it.
struct free_log {
  static inline int runs = 0;
  static inline const device_array* watched = nullptr;
  static inline const void* shown = nullptr;
  static inline bool shows_queue_of_old = false;

  free_log() {
    EXPECT_EQ(detail::current_queue_functions, &detail::plain_queue_functions);  // no Python
    runs = 0;
    watched = nullptr;
    static constexpr detail::queue_functions logging{
        detail::plain_queue_functions.wait_for_queue,
        detail::plain_queue_functions.wait_for_default_queue,
        [](const sycl::queue& queue, void* address) noexcept {
          ++runs;
          if (watched != nullptr) {
            shown = watched->data();
            shows_queue_of_old = watched->queue() == queue;
          }
          detail::wait_and_free(queue, address);
        },
        detail::plain_queue_functions.free_finished};
    detail::current_queue_functions = &logging;
  }
  free_log(const free_log&) = delete;
  free_log& operator=(const free_log&) = delete;
  ~free_log() { detail::current_queue_functions = &detail::plain_queue_functions; }
};

TEST(UsmArray, AnAssignedArrayIsTheOtherAndFreesWhatWasThereUnpooled) {
  sycl::queue queue_of_old = queue_on();
  sycl::queue queue_of_new = queue_on();
  std::atomic<bool> begun_old{false};
  std::atomic<bool> begun_new{false};
  device_array other(queue_of_new, extents(2, 3));
  submit_slow_work(queue_of_new, other, begun_new);
  const void* const address = other.data();
  {
    device_array array(queue_of_old, extents(4, 6));
    const void* const old_address = array.data();
    submit_slow_work(queue_of_old, array, begun_old);
    const free_log log;
    log.watched = &array;
    array = std::move(other);
    EXPECT_EQ(log.runs, 1);
    EXPECT_EQ(log.shown, address);
    EXPECT_FALSE(log.shows_queue_of_old);
    EXPECT_TRUE(begun_old);  // the memory that was there went after its own work
    EXPECT_EQ(kind_at(old_address, queue_of_old), alloc::unknown);
    device_array& itself = array;
    array = std::move(itself);
    EXPECT_EQ(array.queue(), queue_of_new);
    EXPECT_EQ(array.data(), address);
    EXPECT_EQ(array.view().extents(), extents(2, 3));
    EXPECT_EQ(kind_at(address, queue_of_new), alloc::device);
  }
  EXPECT_TRUE(begun_new);
  EXPECT_EQ(kind_at(address, queue_of_new), alloc::unknown);
}

TEST(TwoDevicesUsmArray, AnAssignedArrayHasTheIdAndTheKindOfTheOther) {
  usm_array<view> array(queue_on(0), extents(4, 6), alloc::shared);
  array = usm_array<view>(queue_on(1), extents(2, 3), alloc::host);
  EXPECT_EQ(array.device_id(), 1);
  EXPECT_EQ(array.usm_type(), alloc::host);
}

TEST(UsmArray, WhatWaitsIsFreedByTheFunctionThatIsSetUnpooled) {
  sycl::queue queue = queue_on();
  std::atomic<bool> begun{false};
  device_array made(queue, extents(4, 6));
  const free_log log;
  submit_slow_work(queue, made, begun);
  const void* const address = made.data();
  managed_tensor managed = to_managed_tensor(device_array(std::move(made)));
  EXPECT_FALSE(begun);
  EXPECT_EQ(log.runs, 0);  // none for the arrays that were moved from
  managed.reset();
  EXPECT_EQ(log.runs, 1);
  EXPECT_TRUE(begun);
  EXPECT_EQ(kind_at(address, queue), alloc::unknown);
}

TEST(UsmArray, MemoryIsLeftAloneWhereTheRuntimeCannotSayThatItsQueueIsDone) {
  sycl::queue queue = queue_on();
  sycl::ext::oneapi::experimental::command_graph graph(queue.get_context(),
                                                       queue.get_device());
  float* data = nullptr;
  {
    const device_array made(queue, extents(4, 6));
    data = made.data();
    graph.begin_recording(queue);
    queue.copy(source.data(), data, 24);
  }
  graph.end_recording(queue);
  EXPECT_EQ(kind_at(data, queue), alloc::device);
  sycl::free(data, queue);
}

}  // namespace test_usm_array
