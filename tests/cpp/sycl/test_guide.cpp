// SPDX-License-Identifier: Apache-2.0
//
// The C++ of README.md and of the how-to pages, run: that of docs/examples/pages.hpp, and what
// stands in the tests below. test_guide_examples.py finds it in both.
#include "../../../docs/examples/pages.hpp"

#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>

#include "held_queues.hpp"
#include "opencl_objects.hpp"

namespace test_guide {

using namespace pages;
using usm_dlpack_test::queue_on;
using shared_matrix = usm_dlpack::shared_mdspan<matrix>;

const Kokkos::dextents<int, 2> four_by_six(4, 6);
const std::vector<float> twos(24, 2.0F);  // a copy of them may be pending

std::vector<float> values_of(const DLTensor& tensor, sycl::queue& queue) {
  std::vector<float> values(24);
  queue.memcpy(values.data(), tensor.data, 24 * sizeof(float)).wait();
  return values;
}

TEST(Guide, TheViewOfTheReadmeIsExportedAndTakenBack) {
  sycl::queue queue = queue_on();
  const usm_dlpack::usm_array<matrix> memory(queue, four_by_six);
  EXPECT_EQ(rows_of_exported(memory.data(), queue), 4);
}

TEST(Guide, AnArrayIsProvedAndFilledOrAReasonIsReturnedUnpooled) {
  sycl::queue queue = queue_on();
  const usm_dlpack::managed_tensor given = give(queue, twos);
  queue.wait();
  DLTensor& tensor = given->dl_tensor;
  EXPECT_EQ(values_of(tensor, queue), twos);
  fill(queue, *given, 3.0F);
  EXPECT_EQ(values_of(tensor, queue), std::vector<float>(24, 3.0F));
  char reason[200] = "";
  EXPECT_EQ(clear(&tensor, reason, sizeof reason), 0);
  EXPECT_EQ(values_of(tensor, queue), std::vector<float>(24, 0.0F));

  tensor.device.device_id = -1;
  EXPECT_EQ(clear(&tensor, reason, sizeof reason), 1);
  EXPECT_EQ(std::string(reason).rfind("device.device_id: expected ", 0), 0U) << reason;
  tensor.device.device_id = 0;

  usm_dlpack::requirements needs;
  needs.usm_types = {sycl::usm::alloc::device, sycl::usm::alloc::shared};
  needs.dtype = usm_dlpack::data_type_v<float>;
  needs.ndim = 2;
  needs.unique = true;    // no two elements share a byte
  needs.device_id = 0;    // this root device and no other
  needs.writable = true;  // managed tensors only: bare ones have no flags
  const usm_dlpack::usm_allocation proof = usm_dlpack::validate(tensor, needs);
  EXPECT_EQ(proof.data(), tensor.data);
}

TEST(Guide, AQueueIsPutBehindAnotherInOrderOrOfAnotherContext) {
  sycl::queue queue = queue_on();
  for (sycl::queue other :
       {usm_dlpack_test::new_queue(true),
        sycl::queue(sycl::context(queue.get_device()), queue.get_device())}) {
    usm_dlpack_test::gate closed(other);
    const auto call = std::async(std::launch::async, [&] {
      put_behind(queue, other);
      queue.wait();
    });
    usm_dlpack_test::expect_waiting(true, closed, call);
  }
}

TEST(Guide, NoRunningHostTaskOfAQueueOutOfOrderIsMissed) {
  sycl::queue queue = usm_dlpack_test::new_queue(false);
  sycl::queue other = usm_dlpack_test::new_queue(false);
  int missed = 0;
  for (int i = 0; i < 300; ++i) {  // a barrier misses some twenty of them
    std::atomic<bool> done{false};
    other.submit([&](sycl::handler& handler) {
      handler.host_task([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        done = true;
      });
    });
    put_behind(queue, other);
    queue.wait();
    missed += !done;
    other.wait();
  }
  EXPECT_EQ(missed, 0);
}

TEST(Guide, AConsumerKeepsWhatItHasTakenUnpooled) {
  sycl::queue queue = queue_on();
  const std::shared_ptr<float> memory(sycl::malloc_device<float>(24, queue),
                                      [queue](float* freed) { sycl::free(freed, queue); });
  {
    last_tensor last;
    last.own(share(queue, memory).release());
    EXPECT_EQ(last.tensor().data, memory.get());
    usm_dlpack::managed_tensor second = share(queue, memory);
    second->dl_tensor.shape[0] = 5;
    EXPECT_REFUSAL(last.own(second.get()), usm_dlpack::errc::out_of_bounds, "shape");
    second->dl_tensor.shape[0] = 4;
    last.own(second.release());
    EXPECT_EQ(memory.use_count(), 2) << "the first one is deleted";
  }
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(Guide, AProducerDescribesMemoryFromItsEnd) {
  sycl::queue queue = queue_on();
  const usm_dlpack::usm_array<device_matrix> array(queue, four_by_six);
  const auto wrapper = usm_dlpack::to_dlpack_tensor(from_last_to_first(array.data()), queue);
  EXPECT_EQ(wrapper.data(), array.data() + 23);
  const auto taken = usm_dlpack::to_mdspan<reversed>(wrapper.get());
  EXPECT_EQ(taken.data_handle() + taken.mapping()(3, 5), array.data());
}

TEST(Guide, ABufferIsCopied) {
  sycl::queue queue = queue_on();
  const auto array = copied(queue, sycl::buffer<float, 2>(twos.data(), sycl::range<2>(4, 6)));
  std::vector<float> values(24);
  queue.copy(array.data(), values.data(), 24).wait();
  EXPECT_EQ(values, twos);
}

TEST(Guide, AProducerLends) {
  sycl::queue queue = queue_on();
  lend(queue, twos, [&](const DLTensor& tensor) {
    usm_dlpack::validate(tensor);
    EXPECT_EQ(values_of(tensor, queue), twos);
  });
}

TEST(KernelSourceGuide, AKernelScalesTheElementsOfAnArrayWithStrides) {
  sycl::queue queue = queue_on(0, sycl::property::queue::in_order());
  const usm_dlpack::usm_array<shared_matrix> memory(queue, four_by_six);
  std::iota(memory.data(), memory.data() + 24, 0.0F);
  // Every second row, its columns 1 to 5 backwards.
  scale(queue, any_matrix(memory.data() + 1, {Kokkos::dextents<int, 2>(2, 5), {12, -1}}), 10);
  for (int k = 0; k < 24; ++k) {
    EXPECT_EQ(static_cast<int>(memory.data()[k]), k % 12 > 0 && k % 12 < 6 ? 10 * k : k) << k;
  }
}

TEST(Guide, OpenclCodeExportsByItsHandles) {
  sycl::queue mine = queue_on();
  const auto device = usm_dlpack::opencl_device(usm_dlpack::root_device(0));
  const auto context = usm_dlpack::opencl_context(usm_dlpack::default_context(0));
  const auto queue = usm_dlpack::opencl_queue(mine);
  const auto allocated = usm_dlpack_test::native_floats(context.get(), device.get());
  float* const memory = allocated.get();
  const matrix view(memory, 4, 6);  // memory of clDeviceMemAllocINTEL(context.get(), ...)
  const auto wrapper = usm_dlpack::to_dlpack_tensor(view, context.get());
  const usm_dlpack::usm_allocation proof = usm_dlpack::validate(wrapper.get());
  const auto theirs = usm_dlpack::opencl_context(proof.context());  // as a consumer
  EXPECT_EQ(theirs.get(), context.get());
  EXPECT_EQ(proof.data(), memory);
  EXPECT_EQ(proof.size(), 24 * sizeof(float));
  const sycl::device same =
      sycl::make_device<sycl::backend::opencl>(device.get());  // the same as root_device(0)
  const sycl::queue here = sycl::make_queue<sycl::backend::opencl>(
      queue.get(), usm_dlpack::sycl_context(context.get()));
  EXPECT_EQ(same, usm_dlpack::root_device(0));
  EXPECT_EQ(here.get_context(), mine.get_context());
  EXPECT_EQ(usm_dlpack::opencl_queue(here).get(), queue.get());
}

}  // namespace test_guide
