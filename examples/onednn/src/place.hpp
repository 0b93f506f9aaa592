// SPDX-License-Identifier: Apache-2.0
//
// Where primitives run: a queue, and the engine and the stream of it.
#pragma once

#include <onednn_dlpack/sycl.hpp>

#include <sycl/sycl.hpp>

namespace onednn_ops {

struct place {
  sycl::queue queue;
  dnnl::engine engine;
  dnnl::stream stream;
};

/// The place of a queue, made once and kept for the life of the process: the work of a CPU
/// engine refers to its stream, and a queue must not go before its work has ended.
/// @throws conversion_error as `onednn_dlpack::make_engine` and `make_stream`
const place& place_of(const sycl::queue& queue);

/// The place of a queue if it is in order, otherwise of an in-order queue that is made for it.
///
/// For new arrays, whose user knows a queue and no event. The primitive of a CPU engine is a
/// task of the host, and DPC++ (2026.1 and 2026.2) lets `queue::memcpy` overtake a barrier
/// that waits for one, in an out-of-order queue; an in-order one, and other queues, it holds.
const place& in_order_place_of(const sycl::queue& queue);

}  // namespace onednn_ops
