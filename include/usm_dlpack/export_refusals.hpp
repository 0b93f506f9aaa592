// SPDX-License-Identifier: Apache-2.0
//
// Producer: what the export protocol says where it refuses, and what it finds out to say it.
#pragma once

#include <usm_dlpack/allocation.hpp>
#include <usm_dlpack/layout.hpp>

#include <sycl/sycl.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace usm_dlpack::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_pointer(const std::string& context,
                                                                  const char* remedy) {
  refuse(errc::pointer_unknown, "data", "USM of " + context, "an allocation unknown to it",
         remedy);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_queue(const std::string& memory_id,
                                                                std::int32_t queue_id) {
  refuse(errc::queue_device_mismatch, "queue",
         "a queue on device " + memory_id + ", where the memory is",
         "one on device " + digits(queue_id),
         "pass a queue of the memory's device, or its context");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_null() {
  refuse(errc::data_null, "data", "the address of USM", "null",
         "check that the allocation succeeded: sycl::malloc_* returns null where it fails");
}

/// No context, or not just one, knows where an empty view points, and there are several root
/// devices.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_empty(bool is_known) {
  refuse(errc::pointer_unknown, "data",
         "the address of USM, or a context, for a view without elements",
         is_known ? "an address that several contexts know"
                  : "an address unknown to all contexts",
         "pass a queue, or the context, of the device that is meant");
}

/// Several drivers may give the same address, each to memory of its own.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_ambiguous(
    const std::vector<located_memory>& places) {
  std::string names;
  for (const located_memory& place : places) {
    names.append(names.empty() ? "device " : " and device ")
        .append(digits(place.device_id()))
        .append(" (")
        .append(usm_dlpack::to_string(place.entry->backend))
        .append(")");
  }
  refuse(errc::context_ambiguous, "data", "an address that one platform knows",
         "memory of " + names + " at it",
         "pass the queue or the context of the one that is meant");
}

/// Says more than "unknown" where some platform knows the memory.
/// @param queue_id device id of the queue, or -1 if only a context was given
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_unknown(const void* pointer,
                                                                  std::int32_t queue_id) {
  if (pointer == nullptr) {
    refuse_null();
  }
  const std::vector<located_memory> places = locate(pointer);
  const bool on_queue =
      std::any_of(places.begin(), places.end(),
                  [&](const located_memory& place) { return place.device_id() == queue_id; });
  if (!places.empty() && queue_id >= 0 && !on_queue) {
    refuse_queue(ids_of(places), queue_id);
  }
  if (!places.empty()) {
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
/// @param kind unknown for a view of any kind
inline void check_kind(const allocation& found, sycl::usm::alloc kind) {
  constexpr auto unknown = sycl::usm::alloc::unknown;
  if (kind != unknown && found.kind != unknown && kind != found.kind) {
    refuse(errc::usm_type_not_accepted, "data",
           std::string(usm_dlpack::to_string(kind)) + " USM, as the type of the view says",
           std::string(usm_dlpack::to_string(found.kind)) + " USM",
           "use a view of the kind that was allocated, or copy the elements");
  }
}

}  // namespace usm_dlpack::detail
