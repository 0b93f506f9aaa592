// SPDX-License-Identifier: Apache-2.0
//
// A shared library, with visible symbols, that uses the headers.
#include <usm_dlpack/sycl/devices.hpp>
#include <usm_dlpack/sycl/queues.hpp>

/// The address of the device table, and how many root devices it has.
extern "C" const void* device_table_here(std::size_t& count) {
  const auto& table = usm_dlpack::detail::device_table::get();
  count = table.devices.size();
  return &table;
}

/// The address of what the package replaces.
extern "C" const void* queue_functions_here() {
  return &usm_dlpack::detail::current_queue_functions;
}
