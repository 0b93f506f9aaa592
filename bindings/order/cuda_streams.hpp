// SPDX-License-Identifier: Apache-2.0
//
// The order between SYCL queues of the backend cuda and CUDA streams, by CUDA's events. The
// host waits only for host tasks, or for a queue of another context. The current CUDA context
// is afterwards as it was. The module calls the CUDA driver only here.
#pragma once

#include "order/queues.hpp"
#include "tensor/tensor.hpp"

#include <cstdint>

namespace usm_dlpack::python {

/// CUDA's legacy default stream, `CU_STREAM_LEGACY`: what DLPack means for CUDA if no stream
/// is named.
inline const auto legacy_stream = reinterpret_cast<CUstream>(std::uintptr_t{1});

/// Puts the thread in relaxed capture mode, so that its queries and waits do not break the
/// capture of a CUDA graph.
class relaxed_capture_mode {
 public:
  relaxed_capture_mode() noexcept;
  relaxed_capture_mode(const relaxed_capture_mode&) = delete;
  relaxed_capture_mode& operator=(const relaxed_capture_mode&) = delete;
  ~relaxed_capture_mode();

 private:
  int mode_ = 2;  ///< `CU_STREAM_CAPTURE_MODE_RELAXED`, then what the thread had before
};

/// The `stream` of `__dlpack__`.
struct consumer_stream {
  std::optional<sycl::queue> queue;  ///< the consumer's queue, if it named one
  bool unsynchronised = false;       ///< -1: do not wait for pending work
  std::optional<CUstream> cuda{};    ///< the stream of a consumer of CUDA
};

/// Reads the `stream` of CUDA memory: None or 0 for the legacy default stream, 1, 2 or the
/// handle of a `CUstream`, which is trusted if it is aligned; -1 if nobody is to wait.
/// @throws nb::value_error for anything else
consumer_stream read_cuda_stream(nb::handle stream);

/// A CUDA stream of this package on a root device, for a producer, which orders it behind its
/// own work. It stays for the life of the process. Releases the GIL.
/// @pre the device is of the backend cuda
/// @throws conversion_error `runtime_error`
CUstream stream_for_producers(std::int32_t device_id);

/// Orders later work of a stream behind the work on a tensor: on its queues and on dpctl's.
/// Releases the GIL.
/// @throws conversion_error `runtime_error`
void order_stream_behind(const tensor& producer, CUstream consumer);

/// Orders later work of a queue behind the present work of a stream. Releases the GIL.
/// @param device_id the device of both
/// @throws conversion_error `runtime_error`
void order_behind_stream(CUstream producer, const sycl::queue& consumer,
                         std::int32_t device_id);

}  // namespace usm_dlpack::python
