// SPDX-License-Identifier: Apache-2.0
//
// From SYCL to OpenCL and back: the OpenCL handles of SYCL objects, the SYCL context of a
// handle, and the export of USM that OpenCL code allocated. Only what `sycl::get_native` and
// `sycl::make_context` lack belongs here: the release of what `get_native` retains, and the
// context of the device table, because `make_context` makes another one, whose memory cannot
// be exchanged.
//
// All functions may be called by several threads at once.
#pragma once

#include <usm_dlpack/core/dlpack_tensor.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/devices.hpp>
#include <usm_dlpack/sycl/to_dlpack.hpp>

#include <CL/cl.h>

#include <memory>
#include <string>
#include <type_traits>

namespace usm_dlpack {
namespace detail {

/// Owns one reference to an OpenCL object, which its OpenCL function releases.
template <class Native>
using opencl_reference = std::unique_ptr<std::remove_pointer_t<Native>, cl_int (*)(Native)>;

inline void check_is_opencl(sycl::backend backend, const char* field) {
  if (backend != sycl::backend::opencl) {
    refuse(errc::device_not_accepted, field, "one of the backend opencl",
           std::string("one of the backend ") + to_string(backend),
           "use a device of the backend opencl, or the handles of the other backend");
  }
}

/// The handle of a SYCL object, which `sycl::get_native` retains for the caller.
/// @param release the name of the OpenCL function that releases it
template <class Native, class Object>
opencl_reference<Native> retained_handle(const Object& object, const char* field,
                                         const char* release) {
  check_is_opencl(object.get_backend(), field);
  cl_int (*function)(Native) = nullptr;
  find_function("libOpenCL.so.1", release, function);
  return {with_runtime_errors(field,
                              [&] { return sycl::get_native<sycl::backend::opencl>(object); }),
          function};
}

/// The queries of an OpenCL platform; null for another one, or if OpenCL cannot be queried.
inline const opencl_queries* opencl_of(const platform_entry& entry) noexcept {
  return dynamic_cast<const opencl_queries*>(entry.queries.get());
}

}  // namespace detail

/// Gets the handle of a device, or of a queue's device. The result is a `std::unique_ptr` that
/// owns a reference and releases it; OpenCL does not count references to root devices. Destroy
/// it before the OpenCL driver is unloaded: do not make it a static variable.
/// @throws conversion_error `device_not_accepted`, `runtime_error`
[[nodiscard]] inline detail::opencl_reference<cl_device_id> opencl_device(
    const sycl::device& device) {
  return detail::retained_handle<cl_device_id>(device, "device", "clReleaseDevice");
}
[[nodiscard]] inline detail::opencl_reference<cl_device_id> opencl_device(
    const sycl::queue& queue) {
  return opencl_device(queue.get_device());
}

/// Gets the handle of a context, or of a queue's context, as `opencl_device` does.
/// @throws conversion_error `device_not_accepted`, `runtime_error`
[[nodiscard]] inline detail::opencl_reference<cl_context> opencl_context(
    const sycl::context& context) {
  return detail::retained_handle<cl_context>(context, "context", "clReleaseContext");
}
[[nodiscard]] inline detail::opencl_reference<cl_context> opencl_context(
    const sycl::queue& queue) {
  return opencl_context(queue.get_context());
}

/// Gets the handle of a queue, as `opencl_device` does. Commands that OpenCL code submits to
/// it are ordered with SYCL's only if the queue is in order; otherwise wait in between.
/// @throws conversion_error `device_not_accepted`, `runtime_error`
[[nodiscard]] inline detail::opencl_reference<cl_command_queue> opencl_queue(
    const sycl::queue& queue) {
  return detail::retained_handle<cl_command_queue>(queue, "queue", "clReleaseCommandQueue");
}

/// Gets the SYCL context of a handle: the default context if the handle is its own, otherwise
/// a new context, equal to no other, whose memory cannot be exchanged. The caller must keep
/// its reference until a new context and its copies are destroyed, because libsycl 8 and 9 do
/// not retain it. Reuse new contexts: libsycl 8 and 9 leak 64 bytes with each.
/// @pre a valid handle: OpenCL cannot detect one that was released
/// @throws conversion_error `runtime_error` for null and handles that OpenCL refuses
[[nodiscard]] inline sycl::context sycl_context(cl_context context) {
  for (const detail::platform_entry& entry : detail::device_table::get().platforms) {
    const detail::opencl_queries* const queries = detail::opencl_of(entry);
    if (queries != nullptr && queries->native == context) {
      return *entry.context;
    }
  }
  return detail::with_runtime_errors(
      "context", [&] { return sycl::make_context<sycl::backend::opencl>(context); });
}

/// Describes a view of an OpenCL context's USM as a DLTensor, as
/// `to_dlpack_tensor(view, sycl_context(context))` does: the context must know the pointer and
/// be its platform's default context. Neither retains nor releases the handle, and does not
/// wait.
/// @pre as `sycl_context`
/// @throws conversion_error as `sycl_context`, then as `to_dlpack_tensor` with a context
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] auto to_dlpack_tensor(const View& view, cl_context context)
    -> dlpack_tensor<View::rank()> {
  return to_dlpack_tensor(view, sycl_context(context));
}

}  // namespace usm_dlpack
