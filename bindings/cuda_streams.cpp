// SPDX-License-Identifier: Apache-2.0
#include "cuda_streams.hpp"
#include "arguments.hpp"
#include "errors.hpp"
#include "process.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <map>
#include <mutex>

namespace usm_dlpack::python {
namespace {

/// The functions of libcuda.so.1 that are used here. Each returns a CUresult, 0 for success.
/// Source: CUDA driver API.
struct cuda_driver {
  int (*get_current)(CUcontext*) = nullptr;
  int (*set_current)(CUcontext) = nullptr;
  int (*retain_primary)(CUcontext*, CUdevice) = nullptr;
  int (*create_stream)(CUstream*, unsigned) = nullptr;
  int (*create_event)(CUevent*, unsigned) = nullptr;
  int (*record)(CUevent, CUstream) = nullptr;
  int (*wait)(CUstream, CUevent, unsigned) = nullptr;

  static const cuda_driver& get() {
    static const cuda_driver found;
    return found;
  }

 private:
  cuda_driver() {
    find("cuCtxGetCurrent", get_current);
    find("cuCtxSetCurrent", set_current);
    find("cuDevicePrimaryCtxRetain", retain_primary);
    find("cuStreamCreate", create_stream);
    find("cuEventCreate", create_event);
    find("cuEventRecord", record);
    find("cuStreamWaitEvent", wait);
  }

  template <class Function>
  static void find(const char* name, Function& function) {
    if (!detail::find_function("libcuda.so.1", name, function)) {
      detail::refuse(errc::runtime_error, "stream", "CUDA's function " + std::string(name),
                     "none in libcuda.so.1", "update the driver");
    }
  }
};

void check_cuda(int result, const char* name) {
  if (result != 0) {
    detail::refuse(errc::runtime_error, "stream", "an answer of CUDA's " + std::string(name),
                   "the error " + std::to_string(result), "pass a stream of the tensor's GPU");
  }
}

/// Makes the primary context of a device current, which SYCL and CUDA's runtime use. The
/// destructor makes the one of before current again.
class primary_context {
 public:
  explicit primary_context(CUcontext primary) {
    check_cuda(cuda_driver::get().get_current(&before_), "cuCtxGetCurrent");
    check_cuda(cuda_driver::get().set_current(primary), "cuCtxSetCurrent");
  }
  primary_context(const primary_context&) = delete;
  primary_context& operator=(const primary_context&) = delete;
  ~primary_context() { cuda_driver::get().set_current(before_); }

 private:
  CUcontext before_ = nullptr;
};

/// The stream of this package on a device, and two events that are recorded again for each
/// order: `cuStreamWaitEvent` waits for what an event stands for when it is called. Never
/// destroyed.
class meeting_stream {
 public:
  static meeting_stream& on(std::int32_t device_id) {
    static std::mutex guard;
    static auto& made = *new std::map<std::int32_t, meeting_stream>;
    const std::lock_guard<std::mutex> lock(guard);
    return made.try_emplace(device_id, device_id).first->second;
  }

  explicit meeting_stream(std::int32_t device_id) : context_(default_context(device_id)) {
    const cuda_driver& cuda = cuda_driver::get();
    check_cuda(cuda.retain_primary(&primary_, cuda_device(device_id).device_id),
               "cuDevicePrimaryCtxRetain");
    const primary_context current(primary_);
    constexpr unsigned non_blocking = 1;    // CU_STREAM_NON_BLOCKING
    constexpr unsigned without_timing = 2;  // CU_EVENT_DISABLE_TIMING
    check_cuda(cuda.create_stream(&stream_, non_blocking), "cuStreamCreate");
    check_cuda(cuda.create_event(&arrived_, without_timing), "cuEventCreate");
    check_cuda(cuda.create_event(&passed_, without_timing), "cuEventCreate");
  }

  CUstream stream() const noexcept { return stream_; }

  void order_queue(CUstream producer, sycl::queue consumer) {
    const cuda_driver& cuda = cuda_driver::get();
    const std::lock_guard<std::mutex> lock(guard_);
    const primary_context current(primary_);
    if (producer != stream_) {
      check_cuda(cuda.record(arrived_, producer), "cuEventRecord");
      check_cuda(cuda.wait(stream_, arrived_, 0), "cuStreamWaitEvent");
    }
    // If the barrier starts later, `passed_` may stand for more work of this stream by then.
    check_cuda(cuda.record(passed_, stream_), "cuEventRecord");
    consumer.ext_oneapi_submit_barrier(
        {sycl::make_event<sycl::backend::ext_oneapi_cuda>(passed_, context_)});
  }

  void order_stream(sycl::queue producer, CUstream consumer) {
    const primary_context current(primary_);
    const sycl::event done = producer.ext_oneapi_submit_barrier();
    // While a barrier waits for a host task, it has no native event, and `get_native` crashes.
    if (done.get_info<sycl::info::event::reference_count>() == 0) {
      detail::wait_in_turn(producer);
      return;
    }
    const CUevent native = sycl::get_native<sycl::backend::ext_oneapi_cuda>(done);
    check_cuda(cuda_driver::get().wait(consumer, native, 0), "cuStreamWaitEvent");
  }

 private:
  sycl::context context_;
  CUcontext primary_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent arrived_ = nullptr;
  CUevent passed_ = nullptr;
  std::mutex guard_;
};

}  // namespace

consumer_stream read_cuda_stream(nb::handle stream) {
  if (stream.is_none()) {
    return {std::nullopt, false, legacy_stream};
  }
  const std::optional<std::int64_t> number =
      PyBool_Check(stream.ptr()) != 0 ? std::nullopt : find_integer(stream);
  if (!number || *number < -1) {
    refuse_argument(nb::exception_type::value_error, "stream",
                    "None, -1, 1, 2 or the handle of a CUDA stream, as CUDA's consumers pass",
                    text_of(stream), "pass the consumer's CUDA stream");
  }
  if (*number == -1) {
    return {std::nullopt, true};
  }
  return {std::nullopt, false,
          *number == 0 ? legacy_stream : reinterpret_cast<CUstream>(*number)};
}

CUstream stream_for_producers(std::int32_t device_id) {
  return meeting_stream::on(device_id).stream();
}

void order_stream_behind(const sycl::queue& producer, CUstream consumer,
                         std::int32_t device_id) {
  const without_gil unlocked;
  detail::ask_runtime("stream",
                      [&] { meeting_stream::on(device_id).order_stream(producer, consumer); });
}

void order_behind_stream(CUstream producer, const sycl::queue& consumer,
                         std::int32_t device_id) {
  const without_gil unlocked;
  detail::ask_runtime("stream",
                      [&] { meeting_stream::on(device_id).order_queue(producer, consumer); });
}

}  // namespace usm_dlpack::python
