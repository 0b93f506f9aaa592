// SPDX-License-Identifier: Apache-2.0
//
// Producer: what the export protocol says where it refuses, and what it finds out to say it.
#pragma once

#include <usm_dlpack/allocation.hpp>
#include <usm_dlpack/layout.hpp>

#include <sycl/sycl.hpp>

#include <cstdint>
#include <string>

namespace usm_dlpack::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_pointer(const std::string& context,
                                                                  const char* remedy) {
  refuse(errc::pointer_unknown, "data", "USM of " + context, "an allocation unknown to it",
         remedy);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_queue(std::int32_t memory_id,
                                                                std::int32_t queue_id) {
  refuse(errc::queue_device_mismatch, "queue",
         "a queue on device " + digits(memory_id) + ", where the memory is",
         "one on device " + digits(queue_id),
         "pass a queue of the memory's device, or its context");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_null() {
  refuse(errc::data_null, "data", "the address of USM", "null",
         "check that the allocation succeeded: sycl::malloc_* returns null where it fails");
}

/// No context knows where an empty view points, and there are several root devices.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_empty() {
  refuse(errc::pointer_unknown, "data",
         "the address of USM, or a context, for a view without elements",
         "an address unknown to all contexts",
         "pass a queue, or the context, of the device that is meant");
}

/// Says more than "unknown" where some platform knows the memory.
/// @param queue_id device id of the queue, or -1 if only a context was given
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_unknown(const void* pointer,
                                                                  std::int32_t queue_id) {
  if (pointer == nullptr) {
    refuse_null();
  }
  allocation found;
  if (const platform_entry* entry = find_platform(pointer, found)) {
    const std::int32_t memory_id = found.device_id < 0 ? entry->first_device : found.device_id;
    if (queue_id >= 0 && memory_id != queue_id) {
      refuse_queue(memory_id, queue_id);
    }
    refuse_pointer(
        "the given context",
        "pass the context that it is of, the default one of its platform, or a queue "
        "made from a root device alone");
  }
  refuse_pointer(
      "the given context",
      "check that it is USM and not freed, and allocate it with a queue made from a "
      "root device alone");
}

/// The second rule of the export protocol: exchanged memory lives in a default context,
/// because that is the only one that a consumer can find by a device id.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_context(const void* pointer,
                                                                  bool empty,
                                                                  const sycl::context& context,
                                                                  std::int32_t queue_id) {
  const bool known =
      empty || ask_runtime("context", [&] {
        return sycl::get_pointer_type(pointer, context) != sycl::usm::alloc::unknown;
      });
  if (!known) {
    refuse_unknown(pointer, queue_id);
  }
  const auto devices = ask_runtime("context", [&] { return context.get_devices(); });
  const std::string platform = ask_runtime("context", [&] {
    return context.get_platform().template get_info<sycl::info::platform::name>();
  });
  refuse(errc::context_not_default, "context",
         "the default context of the platform \"" + platform + "\"",
         "another one, of " + std::to_string(devices.size()) + " device(s)",
         "allocate with a queue made from a root device alone, or copy to such memory");
}

/// The rule of a view whose type names the USM kind.
inline void check_kind(const allocation& found, sycl::usm::alloc kind) {
  if (found.kind != sycl::usm::alloc::unknown && kind != found.kind) {
    refuse(errc::usm_type_not_accepted, "data",
           std::string(usm_dlpack::to_string(kind)) + " USM, as the type of the view says",
           std::string(usm_dlpack::to_string(found.kind)) + " USM",
           "use a view of the kind that was allocated, or copy the elements");
  }
}

}  // namespace usm_dlpack::detail
