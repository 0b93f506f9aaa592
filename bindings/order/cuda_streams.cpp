// SPDX-License-Identifier: Apache-2.0
#include "order/cuda_streams.hpp"
#include "arguments/arguments.hpp"
#include "arguments/errors.hpp"
#include "order/process.hpp"

#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace usm_dlpack::python {
namespace {

/// The functions of libcuda.so.1 that are used here. Each returns a CUresult, 0 for success.
/// Source: CUDA driver API.
struct cuda_driver {
  int (*set_current)(CUcontext) = nullptr;
  int (*retain_primary)(CUcontext*, CUdevice) = nullptr;
  int (*create_stream)(CUstream*, unsigned) = nullptr;
  int (*create_event)(CUevent*, unsigned) = nullptr;
  int (*record)(CUevent, CUstream) = nullptr;
  int (*query)(CUstream) = nullptr;
  int (*is_capturing)(CUstream, int*) = nullptr;
  int (*wait)(CUstream, CUevent, unsigned) = nullptr;

  static const cuda_driver& get() {
    static const cuda_driver driver;
    return driver;
  }

 private:
  cuda_driver() {
    find("cuCtxSetCurrent", set_current);
    find("cuDevicePrimaryCtxRetain", retain_primary);
    find("cuStreamCreate", create_stream);
    find("cuEventCreate", create_event);
    find("cuEventRecord", record);
    find("cuStreamQuery", query);
    find("cuStreamIsCapturing", is_capturing);
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
                   "the error " + std::to_string(result),
                   "pass a stream of the tensor's GPU that works");
  }
}

/// Refuses a stream that records a CUDA graph: what it is ordered with would be recorded too.
void check_executing(CUstream stream) {
  int status = 0;
  check_cuda(cuda_driver::get().is_capturing(stream, &status), "cuStreamIsCapturing");
  if (status != 0) {
    detail::refuse(errc::runtime_error, "stream", "a stream that runs its work",
                   "one that records a CUDA graph", "exchange arrays before the recording");
  }
}

/// The streams and events of this package on a device; never destroyed.
/// @pre of all functions: a `cuda_thread_scope` is held, because they change the current
/// context
class cuda_device_streams {
 public:
  static cuda_device_streams& on(std::int32_t device_id) {
    static std::mutex guard;
    static auto& devices = *new std::map<std::int32_t, cuda_device_streams>;
    const std::lock_guard<std::mutex> lock(guard);
    return devices.try_emplace(device_id, device_id).first->second;
  }

  explicit cuda_device_streams(std::int32_t device_id) : context_(default_context(device_id)) {
    check_cuda(cuda_driver::get().retain_primary(&primary_, cuda_device(device_id).device_id),
               "cuDevicePrimaryCtxRetain");
  }

  /// A stream that waits for nothing. Makes its device current.
  CUstream take_stream() {
    make_current();
    {
      const std::lock_guard<std::mutex> lock(guard_);
      const auto idle = std::find_if(streams_.begin(), streams_.end(), &is_idle);
      if (idle != streams_.end()) {
        CUstream const stream = *idle;
        streams_.erase(idle);
        return stream;
      }
    }
    CUstream stream = nullptr;
    constexpr unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING
    check_cuda(cuda_driver::get().create_stream(&stream, non_blocking), "cuStreamCreate");
    return stream;
  }

  void give_back(CUstream stream) {
    const std::lock_guard<std::mutex> lock(guard_);
    streams_.push_back(stream);
  }

  void order_queue(CUstream producer, sycl::queue consumer) {
    detail::check_executing(consumer);
    make_current();
    check_executing(producer);
    const CUevent reached = take_event();
    check_cuda(cuda_driver::get().record(reached, producer), "cuEventRecord");
    sycl::event barrier = consumer.ext_oneapi_submit_barrier(
        {sycl::make_event<sycl::backend::ext_oneapi_cuda>(reached, context_)});
    const std::lock_guard<std::mutex> lock(guard_);
    in_use_.emplace_back(reached, std::move(barrier));
  }

  void order_stream(const std::vector<sycl::queue>& producers, CUstream consumer) {
    make_current();
    check_executing(consumer);
    for (const sycl::queue& producer : producers) {
      detail::pending_work work(producer);
      if (!work.is_done()) {
        order_stream_behind(work, producer.get_context(), consumer);
      }
    }
  }

 private:
  void order_stream_behind(detail::pending_work& work, const sycl::context& context,
                           CUstream consumer) const {
    if (context != context_) {
      work.wait();
      return;
    }
    const sycl::event done = work.event();
    // A barrier that waits for a host task has no native event yet, and `get_native` crashes
    // (DPC++ 2026.2).
    if (done.get_info<sycl::info::event::reference_count>() == 0) {
      work.wait();
      return;
    }
    const CUevent native = sycl::get_native<sycl::backend::ext_oneapi_cuda>(done);
    make_current();  // SYCL may have changed it, and the legacy stream is that of the context
    check_cuda(cuda_driver::get().wait(consumer, native, 0), "cuStreamWaitEvent");
  }

  /// A producer that records a CUDA graph makes our stream a part of it, and a query of such a
  /// stream breaks the recording.
  static bool is_idle(CUstream stream) noexcept {
    int status = 0;
    return cuda_driver::get().is_capturing(stream, &status) == 0 && status == 0 &&
           cuda_driver::get().query(stream) == 0;
  }

  /// SYCL and CUDA's runtime use the primary context of a device.
  void make_current() const {
    check_cuda(cuda_driver::get().set_current(primary_), "cuCtxSetCurrent");
  }

  /// An event that no barrier waits for. @pre the primary context is current
  CUevent take_event() {
    {
      const std::lock_guard<std::mutex> lock(guard_);
      if (!in_use_.empty() && detail::has_ended(in_use_.front().second)) {
        const CUevent free = in_use_.front().first;
        in_use_.pop_front();
        return free;
      }
    }
    CUevent event = nullptr;
    constexpr unsigned without_timing = 2;  // CU_EVENT_DISABLE_TIMING
    check_cuda(cuda_driver::get().create_event(&event, without_timing), "cuEventCreate");
    return event;
  }

  sycl::context context_;
  CUcontext primary_ = nullptr;
  std::vector<CUstream> streams_;                       ///< that are not lent
  std::deque<std::pair<CUevent, sycl::event>> in_use_;  ///< with the barrier that waits for it
  std::mutex guard_;
};

}  // namespace

consumer_stream read_cuda_stream(nb::handle stream) {
  if (stream.is_none()) {
    return {std::nullopt, false, legacy_stream};
  }
  constexpr std::int64_t last_number = 2;  // all greater ones are addresses
  const std::optional<std::int64_t> number = find_integer(stream);
  if (!number || *number < -1 || (*number > last_number && *number % alignof(void*) != 0)) {
    refuse_argument(
        nb::exception_type::value_error, "stream",
        "None, -1, 0, 1, 2 or the handle of a CUDA stream, as CUDA's consumers pass",
        text_of(stream), "pass the consumer's CUDA stream");
  }
  if (*number == -1) {
    return {std::nullopt, true};
  }
  return {std::nullopt, false,
          *number == 0 ? legacy_stream : reinterpret_cast<CUstream>(*number)};
}

lent_stream::lent_stream(std::int32_t device_id) : device_id_(device_id) {
  const without_gil unlocked;
  stream_ = detail::with_runtime_errors(
      "stream", [&] { return cuda_device_streams::on(device_id).take_stream(); });
}

lent_stream::~lent_stream() { cuda_device_streams::on(device_id_).give_back(stream_); }

void order_stream_behind(const tensor& producer, CUstream consumer) {
  const std::int32_t device_id = producer.proof().device_id();
  std::vector<sycl::queue> queues = producer.queues()->queues();
  queues.push_back(dpctl_queue(device_id));
  const without_gil unlocked;
  detail::with_runtime_errors(
      "stream", [&] { cuda_device_streams::on(device_id).order_stream(queues, consumer); });
}

void order_behind_stream(CUstream producer, const sycl::queue& consumer,
                         std::int32_t device_id) {
  const without_gil unlocked;
  detail::with_runtime_errors(
      "stream", [&] { cuda_device_streams::on(device_id).order_queue(producer, consumer); });
}

}  // namespace usm_dlpack::python
