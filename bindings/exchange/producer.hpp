// SPDX-License-Identifier: Apache-2.0
//
// Exports arrays of other libraries, by the C exchange API of their type or by `__dlpack__`. A
// new form of `__dlpack__` goes in `call_dlpack_forms`, a quirk of a library in
// `try_exchange_api`.
#pragma once

#include "arguments/errors.hpp"

#include <usm_dlpack/sycl/config.hpp>

#include <functional>
#include <optional>

namespace usm_dlpack::python {

/// What a producer is asked for.
struct import_request {
  std::optional<bool> copy;  ///< only False is passed on
  bool host = false;         ///< whether arrays in host memory are accepted
  /// For casters, which must be quick: `sycl_queue` is read after the export, and
  /// `__dlpack_device__` only where the memory may be CUDA's or nothing names a queue.
  bool for_extension = false;
  std::optional<sycl::queue> queue;  ///< the consumer's
};

/// A producer's fresh capsule.
struct offered_capsule {
  nb::object capsule;  ///< invalid for an array in host memory that an extension asks for
  /// The queue that may still work on the memory, if the producer reports it.
  std::optional<sycl::queue> queue;
};

/// The device in the tensor that the C exchange API of an array's type gives; nothing if there
/// is no such API. @throws what the producer raises
std::optional<DLDevice> exchanged_device(nb::handle array);

/// Whether an array says, by its queue or its interface, that its memory is of a context that
/// DLPack does not name. Errors of reading them do not count.
bool has_other_context(nb::handle x);

/// Exports an array. If the producer names its own queue, the request's queue is ordered
/// behind it. Otherwise the producer gets the request's queue as `stream`, or else dpctl's, if
/// it takes one.
/// The producer of a CUDA array gets a CUDA stream of this package, and a queue is ordered
/// behind that: the request's, or else the package's.
/// @throws nb::type_error for an object without __dlpack__, and whatever the producer raises
offered_capsule export_array(nb::handle x, const import_request& request);

/// Offers a capsule itself. If it is of a DLPackTensor, the request's queue is ordered behind
/// the consumer's queue that its export was given, or else behind the tensor's. A queue is
/// ordered behind CUDA's legacy default stream, as for a producer that takes no stream.
/// @throws conversion_error as `read_capsule`, and for memory of another GPU
offered_capsule offer_capsule(nb::handle capsule, const import_request& request);

/// Proves the tensor in a producer's capsule, and takes or copies it.
using capsule_reader = std::function<void(const offered_capsule& offered)>;

/// Exports an array, and calls a function with the capsule.
/// @param through_host whether to call it again with a copy that the producer makes in host
///        memory, if the first call or the producer refuses USM that only the producer can
///        read
/// @throws as `export_array` and the function; if both calls fail, the first error
void read_producer(nb::handle x, const import_request& request, bool through_host,
                   const capsule_reader& read);

}  // namespace usm_dlpack::python
