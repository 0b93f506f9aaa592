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

}  // namespace onednn_ops
