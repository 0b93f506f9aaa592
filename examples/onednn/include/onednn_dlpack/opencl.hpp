// SPDX-License-Identifier: Apache-2.0
//
// The same as sycl.hpp for a program that uses OpenCL: oneDNN's objects of a cl_device_id, a
// cl_context, a cl_command_queue and a USM pointer. oneDNN has OpenCL engines only of Intel
// GPUs.
//
// oneDNN retains the handles that it is given. Its getters return (get_device, get_context,
// get_command_queue, get_mem_object) handles that are not retained. The cl_event that
// dnnl::ocl_interop::execute returns is the caller's to release.
#pragma once

#include <onednn_dlpack/desc.hpp>

#include <oneapi/dnnl/dnnl_ocl.hpp>
#include <usm_dlpack/opencl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <string>

namespace onednn_dlpack {

/// The engine of OpenCL handles. oneDNN retains both, and releases them when it goes.
/// @throws conversion_error `request_unsupported` for a device that is no Intel GPU
inline dnnl::engine make_opencl_engine(cl_device_id device, cl_context context) {
  return detail::ask_onednn("engine", "an Intel GPU, of which oneDNN has OpenCL engines",
                            "use onednn_dlpack::make_engine, which has engines of CPUs too",
                            [&] { return dnnl::ocl_interop::make_engine(device, context); });
}

/// The DLPack device id of an engine's handles.
/// @throws conversion_error as `usm_dlpack::sycl_device`; `context_not_default`
inline std::int32_t opencl_device_id(cl_device_id device, cl_context context) {
  const std::int32_t id = usm_dlpack::device_id(usm_dlpack::sycl_device(device));
  detail::check_engine(
      id, usm_dlpack::opencl_context(usm_dlpack::default_context(id)).get() == context);
  return id;
}

/// The DLPack device id of an engine.
/// @throws conversion_error as for its handles; `request_unsupported` for an engine that is
///         not OpenCL's
inline std::int32_t opencl_device_id(const dnnl::engine& engine) {
  return detail::ask_onednn(
      "engine", "one made of OpenCL handles",
      "use onednn_dlpack::make_stream and make_memory for an engine of SYCL objects", [&] {
        return opencl_device_id(dnnl::ocl_interop::get_device(engine),
                                dnnl::ocl_interop::get_context(engine));
      });
}

/// Refuses a queue of another device than the engine's, or outside its default context.
inline void check_opencl_queue(cl_command_queue queue, std::int32_t engine_id) {
  const sycl::queue seen = usm_dlpack::sycl_queue(queue);
  const std::int32_t id = usm_dlpack::device_id(seen.get_device());
  detail::check_queue(engine_id, id, seen.get_context() == usm_dlpack::default_context(id));
}

/// The stream of an OpenCL queue, which it retains; it orders as the queue does.
/// @throws conversion_error as `opencl_device_id`, then as `check_opencl_queue`
inline dnnl::stream make_opencl_stream(const dnnl::engine& engine, cl_command_queue queue) {
  check_opencl_queue(queue, opencl_device_id(engine));
  return detail::ask_onednn("queue", "one that oneDNN makes a stream of",
                            "pass a queue of the host",
                            [&] { return dnnl::ocl_interop::make_stream(engine, queue); });
}

/// A memory object over a tensor's memory, without a copy; the tensor is proved first.
/// @throws conversion_error as `opencl_device_id`, `usm_dlpack::validate`, then `to_desc`
inline dnnl::memory make_opencl_memory(const DLTensor& tensor, const dnnl::engine& engine,
                                       usm_dlpack::requirements wanted = {}) {
  wanted.device_id = opencl_device_id(engine);
  const usm_dlpack::usm_allocation proved = usm_dlpack::validate(tensor, wanted);
  const dnnl::memory::desc desc = to_desc(tensor);
  const bool is_usm = proved.usm_type() != sycl::usm::alloc::unknown;
  return dnnl::ocl_interop::make_memory(desc, engine, dnnl::ocl_interop::memory_kind::usm,
                                        is_usm ? proved.data() : DNNL_MEMORY_NONE);
}

}  // namespace onednn_dlpack
