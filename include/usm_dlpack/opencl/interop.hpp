// SPDX-License-Identifier: Apache-2.0
//
// From SYCL to OpenCL and back: handles of a device, a context, a queue or a validated
// allocation, and SYCL objects of handles. The handle of a default context gives the context
// of the device table, because sycl::make_context would make another one, whose memory cannot
// be exchanged.
//
// No function takes over the caller's reference. If one throws, no reference count has
// changed. SYCL 2020 says that the runtime retains contexts and queues that it is given;
// libsycl 8 and 9 do not. For each sub-device that the runtime is given, alone or in a
// context, it keeps one reference of its own for the life of the process.
//
// All functions may be called by several threads at once.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dlpack_tensor.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/opencl/handle.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/to_dlpack.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace usm_dlpack {
namespace detail {

inline void check_is_opencl(sycl::backend backend, const char* field) {
  if (backend != sycl::backend::opencl) {
    refuse(errc::backend_not_accepted, field, "one of the backend opencl",
           std::string("one of the backend ") + to_string(backend),
           "use a device of the backend opencl, or the handles of the other backend");
  }
}

/// The handle of a SYCL object. `sycl::get_native` retains it for the caller.
template <class Native, class Object>
opencl_handle<Native> opencl_handle_of(const Object& object) {
  const char* field = opencl_names<Native>::field;
  check_is_opencl(ask_runtime(field, [&] { return object.get_backend(); }), field);
  static_cast<void>(opencl_functions<Native>::get());  // may throw, while nothing is retained
  return opencl_handle<Native>(
      ask_runtime(field, [&] { return sycl::get_native<sycl::backend::opencl>(object); }));
}

/// The queries of an OpenCL platform; null for another one, or if OpenCL cannot be queried.
inline const opencl_queries* opencl_of(const platform_entry& entry) noexcept {
  return dynamic_cast<const opencl_queries*>(entry.queries.get());
}

/// The id of a device's root, or -1.
inline std::int32_t find_root(cl_device_id device) {
  std::int32_t id = -1;
  for (const platform_entry& entry : device_table::get().platforms) {
    const opencl_queries* const native = opencl_of(entry);
    if (id < 0 && native != nullptr) {
      id = native->find_root(device);
    }
  }
  return id;
}

inline bool is_root(cl_device_id device, std::int32_t id) noexcept {
  return opencl_of(device_table::get().platform_of(id))->is_root(device, id);
}

/// Whether a handle belongs to a listed root device that SYCL cannot use.
inline bool is_failed(cl_device_id device, const device_entry& listed) {
  try {
    return !listed.failure.empty() &&
           opencl_handle_of<cl_device_id>(listed.device).get() == device;
  } catch (const conversion_error&) {
    return false;  // it is of another backend, or fails here too
  }
}

/// Refuses a device without a usable root: by `device_failed` if the root is listed, otherwise
/// by `device_without_id`.
USM_DLPACK_COLD inline void refuse_rootless(cl_device_id device, const char* field) {
  static_cast<void>(ask_opencl<cl_device_type>(device, CL_DEVICE_TYPE));
  const auto& devices = device_table::get().devices;
  for (std::size_t id = 0; id < devices.size(); ++id) {
    if (is_failed(device, devices[id])) {
      refuse_failed_device(id, devices[id].failure, field);
    }
  }
  refuse_device_without_id(field);
}

/// The id of the root of a given device, or of a device of a given context.
inline std::int32_t working_root(cl_device_id device, const char* field) {
  const std::int32_t id = find_root(device);
  if (id < 0) {
    refuse_rootless(device, field);
  }
  return id;
}

/// The platform whose default context has this handle, or null.
inline const platform_entry* find_platform(cl_context context) {
  for (const platform_entry& entry : device_table::get().platforms) {
    const opencl_queries* const native = opencl_of(entry);
    if (context != nullptr && native != nullptr && native->native == context) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace detail

/// Gets the handle of a device, or of a queue's device. Owns a reference; OpenCL does not
/// count references to root devices.
/// @throws conversion_error `backend_not_accepted`, `runtime_error`
[[nodiscard]] inline opencl_handle<cl_device_id> opencl_device(const sycl::device& device) {
  return detail::opencl_handle_of<cl_device_id>(device);
}
[[nodiscard]] inline opencl_handle<cl_device_id> opencl_device(const sycl::queue& queue) {
  return opencl_device(queue.get_device());
}
/// Gets the handle of the device that validated memory is on; for host USM and empty tensors,
/// of the root device that the tensor named.
[[nodiscard]] inline opencl_handle<cl_device_id> opencl_device(const usm_allocation& memory) {
  return opencl_device(memory.device());
}

/// Gets the handle of a context, or of a queue's context. Owns a reference.
/// @throws conversion_error `backend_not_accepted`, `runtime_error`
[[nodiscard]] inline opencl_handle<cl_context> opencl_context(const sycl::context& context) {
  return detail::opencl_handle_of<cl_context>(context);
}
[[nodiscard]] inline opencl_handle<cl_context> opencl_context(const sycl::queue& queue) {
  return opencl_context(queue.get_context());
}
/// Gets the handle of the default context that validated memory belongs to.
[[nodiscard]] inline opencl_handle<cl_context> opencl_context(const usm_allocation& memory) {
  return opencl_context(memory.context());
}

/// Gets the handle of a queue. Owns a reference. Commands that OpenCL code submits to it are
/// ordered with SYCL's only if the queue is in order; otherwise wait in between.
/// @throws conversion_error `backend_not_accepted`, `runtime_error`
[[nodiscard]] inline opencl_handle<cl_command_queue> opencl_queue(const sycl::queue& queue) {
  return detail::opencl_handle_of<cl_command_queue>(queue);
}

/// Gets the SYCL device of a handle. A root device is the one in
/// `sycl::device::get_devices()`. A sub-device has such a root; it equals other results for
/// the same handle, but not the results of `create_sub_devices`. The caller may release its
/// reference at once; the runtime keeps its own to a sub-device.
/// @pre null, or a valid handle: OpenCL cannot detect one that was released
/// @throws conversion_error `device_without_id`, `device_failed`; `runtime_error` for null and
///         handles that OpenCL refuses
[[nodiscard]] inline sycl::device sycl_device(cl_device_id device) {
  static_cast<void>(detail::working_root(device, "device"));
  return detail::ask_runtime("device",
                             [&] { return sycl::make_device<sycl::backend::opencl>(device); });
}

/// Gets the SYCL context of a handle: the default context if the handle is its own, otherwise
/// a new context, equal to no other, whose memory cannot be exchanged. The caller must keep
/// its reference until a new context and its copies are gone. Reuse new contexts: libsycl 8
/// and 9 leak 64 bytes with each.
/// @throws conversion_error `device_without_id`, `device_failed` of the context's devices;
///         `runtime_error` for null and handles that OpenCL refuses
[[nodiscard]] inline sycl::context sycl_context(cl_context context) {
  if (const detail::platform_entry* entry = detail::find_platform(context)) {
    return *entry->context;
  }
  for (const cl_device_id device : detail::devices_of(context)) {
    static_cast<void>(detail::working_root(device, "context"));
  }
  return detail::ask_runtime(
      "context", [&] { return sycl::make_context<sycl::backend::opencl>(context); });
}

/// Makes a SYCL queue of a handle, in the `sycl_context` of the handle's context. It submits
/// to the same OpenCL queue, and equals no other queue. The caller must keep its reference to
/// the queue until the SYCL queue and its copies are gone, and needs none to the context.
/// `is_in_order()` is always false, because `sycl::make_queue` has no way to set it; the
/// commands run in the order of the OpenCL queue.
/// @pre null, or a valid handle of a queue of the host (no `CL_QUEUE_ON_DEVICE`)
[[nodiscard]] inline sycl::queue sycl_queue(cl_command_queue queue) {
  const sycl::context context =
      sycl_context(detail::ask_opencl<cl_context>(queue, CL_QUEUE_CONTEXT));
  return detail::ask_runtime(
      "queue", [&] { return sycl::make_queue<sycl::backend::opencl>(queue, context); });
}

namespace detail {

/// The handles that an export is given.
struct opencl_place {
  cl_context context;
  std::optional<cl_device_id> device;  ///< none if it is not given
};

/// Refuses a pointer that the context does not know: the first rule of the export protocol.
USM_DLPACK_COLD inline void refuse_opencl_pointer(const void* pointer) {
  if (pointer == nullptr) {
    refuse(errc::data_null, "data", "the address of USM", "null",
           "check that the allocation succeeded: clDeviceMemAllocINTEL and its like return "
           "null where it fails");
  }
  refuse_pointer("the given context",
                 "check that it is USM and not freed, and pass the context that it was "
                 "allocated in");
}

/// Refuses a context that is not its platform's default context: the second rule.
USM_DLPACK_COLD inline void refuse_opencl_context(const void* pointer, bool empty,
                                                  cl_context context) {
  const std::vector<cl_device_id> devices = devices_of(context);
  const std::int32_t root = find_root(devices.front());
  std::string platform = "a platform in sycl::platform::get_platforms()";
  if (root >= 0) {
    const platform_entry& entry = device_table::get().platform_of(root);
    const auto kind = opencl_of(entry)->find_kind_in(context, pointer);
    if (kind == sycl::usm::alloc::unknown && !empty) {
      refuse_opencl_pointer(pointer);
    }
    platform = platform_name(entry.platform);
  }
  refuse(errc::context_not_default, "context", "the default context of " + platform,
         "another one, of " + std::to_string(devices.size()) +
             (root < 0 || is_root(devices.front(), root) ? " device(s)" : " sub-device(s)"),
         "allocate in the cl_context of usm_dlpack::default_context, or copy to such memory");
}

/// For example `device 0` or, with the article "a", `a sub-device of device 0`.
inline std::string opencl_device_name(cl_device_id device, std::int32_t root,
                                      const char* article) {
  const std::string name = "device " + digits(root);
  return is_root(device, root) ? name : std::string(article) + " sub-device of " + name;
}

/// Checks the last rule: a given device is the one that the memory is on, or its root. For
/// host USM and unknown memory, it is any device of the platform.
inline void check_device(const void* pointer, const platform_entry& entry, cl_device_id device,
                         std::int32_t root) {
  const opencl_queries& native = *opencl_of(entry);
  const cl_device_id true_device = native.find_device(pointer, native.find_kind(pointer));
  const std::int32_t true_root = native.find_root(true_device);
  const bool known = true_root >= 0;
  if (known ? device != true_device && !is_root(device, true_root)
            : &device_table::get().platform_of(root) != &entry) {
    const bool siblings = known && root == true_root && !is_root(true_device, true_root);
    refuse(errc::device_mismatch, "device",
           known ? opencl_device_name(true_device, true_root, "a") + ", where the memory is"
                 : "a device of the given context",
           opencl_device_name(device, root, siblings ? "another" : "a"),
           "pass the device that the memory was allocated for, or none");
  }
}

/// Runs the export protocol for an OpenCL context and, if given, a device.
inline DLDevice find_device_by_handles(const exported_memory& memory,
                                       const opencl_place& place) {
  const platform_entry* entry = find_platform(place.context);
  if (entry == nullptr) {
    static_cast<void>(devices_of(place.context));
  }
  std::int32_t root = -1;
  if (place.device) {
    root = working_root(*place.device, "device");
  }
  if (entry == nullptr) {
    refuse_opencl_context(memory.pointer, memory.empty, place.context);
  }
  const memory_place found = find_place(memory, *entry, root);
  if (!found.known && !memory.empty) {
    refuse_opencl_pointer(memory.pointer);
  }
  if (place.device) {
    check_device(memory.pointer, *entry, *place.device, root);
  }
  return found.device;
}

template <class View>
dlpack_tensor<View::rank()> export_by_handles(const View& view, const opencl_place& place) {
  return export_view(view, [&](const exported_memory& memory) {
    return find_device_by_handles(memory, place);
  });
}

}  // namespace detail

/// Describes a view of an OpenCL context's USM as a DLTensor, by the same export protocol as
/// `to_dlpack_tensor(view, const sycl::context&)`: the context must know the pointer and be
/// its platform's default context; the id is that of the root of the memory's device. Host USM
/// gets the id of the platform's first device. Neither retains nor releases the context.
///
/// For a `cl_command_queue`, pass `sycl_queue(queue)` instead. Does not wait.
/// @pre `context` is null or a valid handle
/// @throws conversion_error of the first broken rule (docs/checks.md, "opencl")
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] auto to_dlpack_tensor(const View& view, cl_context context)
    -> dlpack_tensor<View::rank()> {
  return detail::export_by_handles(view, {context, {}});
}

/// Describes a view of USM on a given device: the one that it was allocated for, or its root.
/// Host USM, and an empty view with an unknown pointer, get the id of the device's root.
/// Neither retains nor releases the handles.
/// @throws conversion_error also `device_without_id`, `device_failed`, `device_mismatch`
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] auto to_dlpack_tensor(const View& view, cl_context context, cl_device_id device)
    -> dlpack_tensor<View::rank()> {
  return detail::export_by_handles(view, {context, device});
}

}  // namespace usm_dlpack
