// SPDX-License-Identifier: Apache-2.0
//
// Python's `to_dlpack_tensor`: the export protocol. A rule for what the object says belongs
// here, one for all memory in sycl/to_dlpack.hpp.
#pragma once

#include "order/guarded.hpp"
#include "tensor/proved_tensor.hpp"

#include <usm_dlpack/core/config.hpp>

namespace usm_dlpack::python {

/// Proves a view of an object's memory. The arguments are those of Python's
/// `to_dlpack_tensor`, whose docstring describes them.
/// @param producer becomes the queue that the object names, whatever `queue` is
detail::proved_tensor prove_memory(nb::handle obj, nb::handle shape, nb::handle dtype,
                                   nb::handle strides, nb::handle byte_offset,
                                   nb::handle queue,
                                   std::optional<sycl::queue>* producer = nullptr);

/// Returns the device of memory that is exported with a queue. Refuses a queue of another
/// context or root device. Compares the contexts themselves, because the Level Zero driver
/// knows a pointer in each context of its platform.
/// @param context a default context that knows the memory
DLDevice device_for_queue(const void* pointer, bool empty, DLDevice device,
                          const sycl::context& context, const sycl::queue& queue);

}  // namespace usm_dlpack::python
