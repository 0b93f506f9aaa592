// SPDX-License-Identifier: Apache-2.0
//
// The C++ of README.md and of the how-to pages, run; test_guide_examples.py finds it here.
#include <mdspan/mdspan.hpp>  // or std::mdspan, or cuda::std::mdspan
#include <usm_dlpack/usm_dlpack.hpp>

using matrix = Kokkos::mdspan<float, Kokkos::dextents<int, 2>>;

int rows_of_exported(float* memory, sycl::queue& queue) {  // 24 floats of USM
  const auto wrapper = usm_dlpack::to_dlpack_tensor(matrix(memory, 4, 6), queue);
  const DLTensor tensor = wrapper.get();  // for a C ABI, while `wrapper` lives
  usm_dlpack::validate(tensor);           // what a consumer does first
  return usm_dlpack::to_mdspan<matrix>(tensor).extent(0);
}

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <numeric>
#include <thread>

#include "held_queues.hpp"
#include "opencl_objects.hpp"

namespace test_guide {

using usm_dlpack::errc;
using usm_dlpack_test::queue_on;

using device_matrix = usm_dlpack::device_mdspan<matrix>;

// Fills a foreign array. It must be two-dimensional float32 in device USM, in C order.
void fill(sycl::queue& queue, const DLManagedTensorVersioned& theirs, float value) {
  const auto x = usm_dlpack::to_mdspan<device_matrix>(theirs);  // proved, then converted
  usm_dlpack::check_queue(queue, x);                            // and `queue` can use it
  const std::vector<float> values(x.size(), value);
  queue.copy(values.data(), x.data_handle(), values.size()).wait();
}

// What is submitted to `queue` next waits for what `other` has now.
void put_behind(sycl::queue& queue, sycl::queue& other) {
  if (other.is_in_order() && other.get_context() == queue.get_context()) {
    queue.ext_oneapi_submit_barrier({other.ext_oneapi_submit_barrier()});
  } else {
    other.wait();  // its event may miss a host task, or is of no use in another context
  }
}

class last_tensor {
 public:
  // Owns the tensor, or throws and owns nothing.
  void own(DLManagedTensorVersioned* theirs) {
    usm_dlpack::validate(*theirs);
    tensor_.reset(theirs);  // calls the previous tensor's deleter
  }
  const DLTensor& tensor() const { return tensor_->dl_tensor; }

 private:
  usm_dlpack::managed_tensor tensor_;
};

// For callers in C: returns 0, or writes the reason to their buffer. Throws nothing.
extern "C" int clear(const DLTensor* theirs, char* reason, std::size_t size) noexcept {
  try {
    const auto x = usm_dlpack::to_mdspan<device_matrix>(*theirs);
    sycl::queue queue(usm_dlpack::root_device(theirs->device.device_id));
    const std::vector<float> zeros(x.size());
    queue.copy(zeros.data(), x.data_handle(), zeros.size()).wait();
    return 0;
  } catch (const usm_dlpack::conversion_error& refused) {  // its code() names the rule
    std::snprintf(reason, size, "%s", refused.what());
    return 1;
  } catch (const std::exception& failed) {  // SYCL's own among them
    std::snprintf(reason, size, "%s", failed.what());
    return 2;
  }
}

using reversed = Kokkos::mdspan<float, Kokkos::dextents<int, 2>, usm_dlpack::layout_relaxed>;

reversed from_last_to_first(float* memory) {  // of 4 rows of 6
  return {memory, reversed::mapping_type(Kokkos::dextents<int, 2>(4, 6), {-6, -1}, 23)};
}

template <class Borrower>
void lend(sycl::queue& queue, const std::vector<float>& values, Borrower borrow) {
  float* memory = sycl::malloc_device<float>(24, queue);
  queue.copy(values.data(), memory, 24).wait();  // the borrower waits for nothing
  const auto wrapper = usm_dlpack::to_dlpack_tensor(matrix(memory, 4, 6), queue);
  const DLTensor tensor = wrapper.get();  // points into `wrapper`
  borrow(tensor);
  sycl::free(memory, queue);  // nothing may use it any more
}

usm_dlpack::managed_tensor give(sycl::queue& queue, const std::vector<float>& values) {
  usm_dlpack::usm_array<device_matrix> array(queue, Kokkos::dextents<int, 2>(4, 6));
  queue.copy(values.data(), array.data(), 24);  // may be pending on return
  return usm_dlpack::to_managed_tensor(std::move(array));
}

usm_dlpack::managed_tensor share(sycl::queue& queue, std::shared_ptr<float> memory) {
  const matrix view(memory.get(), 4, 6);
  const DLDevice device = usm_dlpack::to_dlpack_tensor(view, queue).device();
  return usm_dlpack::to_managed_tensor(view, device, std::move(memory));
}

const usm_dlpack::kernel_source strided(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<2>))
  void scale(float* x, long row_stride, long column_stride, long columns, float factor) {
    const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
    const long i = item.get_global_id(0), j = item.get_global_id(1);
    if (j < columns) { x[i * row_stride + j * column_stride] *= factor; }
  }
)");

using any_matrix = Kokkos::mdspan<float, Kokkos::dextents<int, 2>, usm_dlpack::layout_relaxed>;

void scale(sycl::queue& queue, const any_matrix& x, float factor) {
  usm_dlpack::ordered_section work(queue, x);  // checks the queue; waits at the end
  float* first = x.data_handle() + x.mapping().element_offset();
  strided.launch(work, "scale", x.extents(), first, long{x.stride(0)}, long{x.stride(1)},
                 long{x.extent(1)}, factor);
}

const usm_dlpack::kernel_source with_local_memory(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void reverse_groups(float* x, sycl::local_accessor<float, 1> local) {
    const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
    const long i = item.get_local_id(0), last = item.get_local_range(0) - 1;
    local[i] = x[item.get_global_id(0)];
    sycl::group_barrier(item.get_group());
    x[item.get_global_id(0)] = local[last - i];
  }
)");

void reverse_groups(sycl::queue& queue, const matrix& x) {
  usm_dlpack::ordered_section work(queue, x);
  queue.submit([&](sycl::handler& handler) {
    const sycl::local_accessor<float, 1> local(8, handler);  // 8 floats for each group
    handler.set_args(x.data_handle(), local);
    handler.parallel_for(sycl::nd_range<1>(x.size(), 8),
                         with_local_memory.find(queue, "reverse_groups"));
  });
}

std::vector<float> values_of(const DLTensor& tensor, sycl::queue& queue) {
  std::vector<float> values(24);
  queue.memcpy(values.data(), tensor.data, 24 * sizeof(float)).wait();
  return values;
}

const std::vector<float> twos(24, 2.0F);  // a copy of them may be pending

TEST(Guide, TheViewOfTheReadmeIsExportedAndTakenBack) {
  sycl::queue queue = queue_on();
  const usm_dlpack::usm_array<matrix> memory(queue, Kokkos::dextents<int, 2>(4, 6));
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
  EXPECT_EQ(proof.bounds_proved(), usm_dlpack_test::whole_bounds());
}

TEST(Guide, AQueueIsPutBehindAnother) {
  for (const bool is_in_order : {true, false}) {
    SCOPED_TRACE(is_in_order);
    sycl::queue other = usm_dlpack_test::new_queue(true);
    sycl::queue queue = usm_dlpack_test::new_queue(is_in_order);
    const usm_dlpack::usm_array<matrix> array(other, Kokkos::dextents<int, 2>(4, 6));
    std::vector<float> values(24);
    other.copy(values.data(), array.data(), 24).wait();
    usm_dlpack_test::gate closed(other);  // a host task: the host waits for it
    other.copy(twos.data(), array.data(), 24);
    const auto call = std::async(std::launch::async, [&] { put_behind(queue, other); });
    usm_dlpack_test::expect_waiting(true, closed, call);
    queue.copy(array.data(), values.data(), 24).wait();
    EXPECT_EQ(values, twos);
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

TEST(Guide, AQueueOfAnotherContextIsWaitedFor) {
  sycl::queue queue = queue_on();
  sycl::queue other(sycl::context(queue.get_device()), queue.get_device());
  usm_dlpack_test::gate closed(other);
  const auto call = std::async(std::launch::async, [&] { put_behind(queue, other); });
  usm_dlpack_test::expect_waiting(true, closed, call);
}

TEST(Guide, AConsumerKeepsWhatItHasTakenUnpooled) {
  sycl::queue queue = queue_on();
  const std::shared_ptr<float> memory(sycl::malloc_device<float>(24, queue),
                                      [queue](float* freed) { sycl::free(freed, queue); });
  {
    last_tensor last;
    usm_dlpack::managed_tensor first = share(queue, memory);
    last.own(first.release());
    EXPECT_EQ(last.tensor().data, memory.get());
    EXPECT_EQ(memory.use_count(), 2);

    usm_dlpack::managed_tensor second = share(queue, memory);
    second->dl_tensor.shape[0] = 5;
    EXPECT_REFUSAL(last.own(second.get()), errc::out_of_bounds, "shape",
                   usm_dlpack_test::within_whole(96), "one of 120 bytes from byte 0");
    second->dl_tensor.shape[0] = 4;
    last.own(second.release());
    EXPECT_EQ(memory.use_count(), 2);
  }
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(Guide, AProducerDescribesMemoryFromItsEnd) {
  sycl::queue queue = queue_on(0);
  const usm_dlpack::usm_array<device_matrix> array(queue, Kokkos::dextents<int, 2>(4, 6));
  const auto wrapper = usm_dlpack::to_dlpack_tensor(from_last_to_first(array.data()), queue);
  EXPECT_EQ(wrapper.data(), array.data() + 23);
  const auto taken = usm_dlpack::to_mdspan<reversed>(wrapper.get());
  EXPECT_EQ(taken.data_handle() + taken.mapping()(3, 5), array.data());
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
  const usm_dlpack::usm_array<usm_dlpack::shared_mdspan<matrix>> memory(
      queue, Kokkos::dextents<int, 2>(4, 6));
  std::iota(memory.data(), memory.data() + 24, 0.0F);
  // Every second row, its columns 1 to 5 backwards.
  scale(queue, any_matrix(memory.data() + 1, {Kokkos::dextents<int, 2>(2, 5), {12, -1}}), 10);
  for (int k = 0; k < 24; ++k) {
    EXPECT_EQ(static_cast<int>(memory.data()[k]), k % 12 > 0 && k % 12 < 6 ? 10 * k : k) << k;
  }
}

TEST(KernelSourceGuide, AKernelHasLocalMemory) {
  sycl::queue queue = queue_on();
  const usm_dlpack::usm_array<usm_dlpack::shared_mdspan<matrix>> memory(
      queue, Kokkos::dextents<int, 2>(4, 6));
  std::iota(memory.data(), memory.data() + 24, 0.0F);
  reverse_groups(queue, matrix(memory.data(), 4, 6));
  for (int k = 0; k < 24; ++k) {
    EXPECT_EQ(static_cast<int>(memory.data()[k]), k / 8 * 8 + 7 - k % 8) << k;
  }
}

TEST(Guide, ARefusalSaysWhichRuleIsBroken) {
  sycl::queue queue = queue_on();
  std::string said;
  const auto report = [&](const char* text) { said = text; };
  float on_the_stack[24];
  try {
    static_cast<void>(usm_dlpack::to_dlpack_tensor(matrix(on_the_stack, 4, 6), queue));
  } catch (const usm_dlpack::conversion_error& error) {
    if (error.code() == usm_dlpack::errc::pointer_unknown) {
      report(error.what());
    }
  }
  EXPECT_EQ(said.rfind("data: expected USM of the given context, found ", 0), 0U) << said;
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
  EXPECT_EQ(here.get_device(), mine.get_device());
  EXPECT_FALSE(here.is_in_order());
  EXPECT_EQ(usm_dlpack::opencl_queue(here).get(), queue.get());
}

}  // namespace test_guide
