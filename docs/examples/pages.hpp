// SPDX-License-Identifier: Apache-2.0
//
// The C++ of README.md and of the how-to pages, which tests/cpp/sycl/test_guide.cpp runs.
#pragma once

#include <mdspan/mdspan.hpp>  // or std::mdspan, or cuda::std::mdspan
#include <usm_dlpack/usm_dlpack.hpp>

using matrix = Kokkos::mdspan<float, Kokkos::dextents<int, 2>>;

int rows_of_exported(float* memory, sycl::queue& queue) {  // 24 floats of USM
  const auto wrapper = usm_dlpack::to_dlpack_tensor(matrix(memory, 4, 6), queue);
  const DLTensor tensor = wrapper.get();  // for a C ABI, while `wrapper` lives
  usm_dlpack::validate(tensor);           // what a consumer does first
  return usm_dlpack::to_mdspan<matrix>(tensor).extent(0);
}

#include <cstdio>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace pages {

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

usm_dlpack::usm_array<device_matrix> copied(sycl::queue& queue,
                                            sycl::buffer<float, 2> buffer) {
  usm_dlpack::usm_array<device_matrix> array(queue, Kokkos::dextents<int, 2>(4, 6));
  const sycl::host_accessor values(buffer, sycl::read_only);  // waits for the buffer's kernels
  queue.copy(&values[{0, 0}], array.data(), values.size()).wait();
  return array;
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

}  // namespace pages
