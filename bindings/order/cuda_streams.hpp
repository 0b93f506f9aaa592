// SPDX-License-Identifier: Apache-2.0
//
// The order between SYCL queues of the backend cuda and CUDA streams, by CUDA's events. The
// host waits only for host tasks, or for a queue of another context.
#pragma once

#include "order/queues.hpp"
#include "tensor/tensor.hpp"

#include <cstdint>

namespace usm_dlpack::python {

/// CUDA's legacy default stream, `CU_STREAM_LEGACY`: what DLPack means for CUDA if no stream
/// is named.
inline const auto legacy_stream = reinterpret_cast<CUstream>(std::uintptr_t{1});

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

/// A CUDA stream of this package, lent to one producer, which orders it behind its own work.
/// It waits for nothing else. Making it releases the GIL.
class lent_stream {
 public:
  /// Makes the device current: PyTorch exports arrays of no other.
  /// @pre the device is of the backend cuda
  /// @throws conversion_error `runtime_error`
  explicit lent_stream(std::int32_t device_id);
  lent_stream(const lent_stream&) = delete;
  lent_stream& operator=(const lent_stream&) = delete;
  ~lent_stream();

  CUstream get() const noexcept { return stream_; }

 private:
  std::int32_t device_id_;
  CUstream stream_ = nullptr;
};

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
