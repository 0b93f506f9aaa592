// SPDX-License-Identifier: Apache-2.0
//
// Exports of other libraries' arrays, by the C exchange API of their type, or by __dlpack__
// with the keywords that it takes.
#pragma once

#include "capsule.hpp"

#include <sycl/sycl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <optional>

namespace usm_dlpack::python {

/// The request of `from_dlpack` to a producer.
struct import_request {
  std::optional<bool> copy;  ///< as DLPack's keyword
  bool host = false;         ///< whether arrays in host memory are accepted
  /// For an extension: neither the device before the export, nor the queue is queried.
  bool anywhere = false;
  nb::object stream = nb::none();    ///< the consumer's queue as Python's object
  std::optional<sycl::queue> queue;  ///< the same queue
};

/// A producer's fresh capsule.
struct producer_tensor {
  nb::object capsule;
  /// The queue that may still work on the memory, if the producer reports it.
  std::optional<sycl::queue> pending;
};

/// Exports an array. Its work is ordered before the request's queue if the producer takes a
/// stream, or reports its own queue.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
producer_tensor ask_producer(nb::handle x, const import_request& request);

/// Makes the arguments of all calls.
void prepare_producers();

/// Forgets the cached types. @pre the GIL is held
void forget_producers() noexcept;

}  // namespace usm_dlpack::python
