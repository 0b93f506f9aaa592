// SPDX-License-Identifier: Apache-2.0
//
// The same as sycl.hpp for a program that uses OpenCL. oneDNN has OpenCL engines only of Intel
// GPUs. It retains the handles that it is given; its getters return handles that are not
// retained. The cl_event that dnnl::ocl_interop::execute returns is the caller's to release.
#pragma once

#include <onednn_dlpack/sycl.hpp>

#include <oneapi/dnnl/dnnl_ocl.hpp>
#include <usm_dlpack/opencl.hpp>

#include <cstdint>

namespace onednn_dlpack {

/// The engine of OpenCL handles.
/// @throws conversion_error `request_unsupported` for a device that is no Intel GPU
inline dnnl::engine make_opencl_engine(cl_device_id device, cl_context context) {
  return detail::ask_onednn("engine", "an Intel GPU, of which oneDNN has OpenCL engines",
                            "use onednn_dlpack::make_engine, which has engines of CPUs too",
                            [&] { return dnnl::ocl_interop::make_engine(device, context); });
}

/// The DLPack device id of an engine of OpenCL handles.
/// @throws conversion_error as `usm_dlpack::device_id`; `context_not_default`;
///         `request_unsupported` for an engine that is not OpenCL's
inline std::int32_t opencl_device_id(const dnnl::engine& engine) {
  return detail::ask_onednn(
      "engine", "one made of OpenCL handles",
      "use onednn_dlpack::make_stream and make_memory for an engine of SYCL objects", [&] {
        const cl_device_id device = dnnl::ocl_interop::get_device(engine);
        const std::int32_t id =
            usm_dlpack::device_id(sycl::make_device<sycl::backend::opencl>(device));
        const auto ours = usm_dlpack::opencl_context(usm_dlpack::default_context(id));
        detail::check_context("engine", id,
                              ours.get() == dnnl::ocl_interop::get_context(engine),
                              "make it in usm_dlpack::default_context(id)");
        return id;
      });
}

/// The stream of an OpenCL queue; it orders as the queue does.
/// @throws conversion_error as `opencl_device_id`; `request_unsupported` for a queue that
///         oneDNN refuses, such as one of another device or context than the engine's
inline dnnl::stream make_opencl_stream(const dnnl::engine& engine, cl_command_queue queue) {
  static_cast<void>(opencl_device_id(engine));
  return detail::ask_onednn("queue", "one of the engine's device and context",
                            "pass a queue of the engine's context",
                            [&] { return dnnl::ocl_interop::make_stream(engine, queue); });
}

/// A memory object over a tensor's memory, without a copy; the tensor is proved first.
/// @throws conversion_error as `opencl_device_id`, `usm_dlpack::validate`, then `to_desc`
inline dnnl::memory make_opencl_memory(const DLTensor& tensor, const dnnl::engine& engine) {
  const auto [desc, data] = detail::prove(tensor, opencl_device_id(engine));
  return dnnl::ocl_interop::make_memory(desc, engine, dnnl::ocl_interop::memory_kind::usm,
                                        data);
}

}  // namespace onednn_dlpack
