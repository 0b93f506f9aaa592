// SPDX-License-Identifier: Apache-2.0
//
// Exports of other libraries' arrays, by the C exchange API of their type, or by __dlpack__.
#pragma once

#include "errors.hpp"

#include <usm_dlpack/sycl/config.hpp>

#include <optional>

namespace usm_dlpack::python {

/// What a producer is asked for.
struct import_request {
  std::optional<bool> copy;  ///< only False is passed on
  bool host = false;         ///< whether arrays in host memory are accepted
  /// For an extension: neither the device before the export, nor the queue is queried.
  bool anywhere = false;
  nb::object stream = nb::none();    ///< the consumer's queue as Python's object
  std::optional<sycl::queue> queue;  ///< the same queue
};

/// A producer's fresh capsule.
struct offered_capsule {
  nb::object capsule;
  /// The queue that may still work on the memory, if the producer reports it.
  std::optional<sycl::queue> queue;
};

/// Exports an array. Its work is ordered before the request's queue if the producer reports
/// its own queue, or else takes a stream.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
offered_capsule ask_producer(nb::handle x, const import_request& request);

/// Whether an array reports that its memory is USM; false if it fails to.
bool reports_usm(nb::handle x);

/// Makes a producer copy its array to host memory, after all work on its `sycl_queue`.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
offered_capsule ask_for_host(nb::handle x);

}  // namespace usm_dlpack::python
