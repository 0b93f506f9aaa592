// SPDX-License-Identifier: Apache-2.0
//
// The twin of sycl.hpp for a program that is OpenCL on its side: the same proof and the same
// descriptor, and oneDNN's objects made of a cl_device_id, a cl_context, a cl_command_queue
// and a USM pointer by dnnl::ocl_interop. Needs an Intel GPU: oneDNN has OpenCL engines of no
// other device, and says so.
#pragma once

#include <onednn_dlpack/desc.hpp>

#include <oneapi/dnnl/dnnl_ocl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>

namespace onednn_dlpack {

/// The engine of OpenCL handles. oneDNN retains both, and releases them when it goes.
/// @throws conversion_error `request_unsupported` for a device that is no Intel GPU
inline dnnl::engine make_opencl_engine(cl_device_id device, cl_context context) {
  return detail::ask_onednn("engine", "an Intel GPU, of which oneDNN has OpenCL engines",
                            "use onednn_dlpack::make_engine, which has engines of CPUs too",
                            [&] { return dnnl::ocl_interop::make_engine(device, context); });
}

/// The stream of an OpenCL queue, which it retains; it orders as the queue does.
/// @throws conversion_error `request_unsupported` for an engine that is not OpenCL's
inline dnnl::stream make_opencl_stream(const dnnl::engine& engine, cl_command_queue queue) {
  return detail::ask_onednn(
      "engine", "one made of OpenCL handles, and a queue of its device and context",
      "use onednn_dlpack::make_stream for an engine of SYCL objects",
      [&] { return dnnl::ocl_interop::make_stream(engine, queue); });
}

/// A memory object over a tensor's memory, without a copy. USM has no reference count: the
/// tensor's owner keeps the memory.
/// @param id the DLPack device id of the engine
/// @throws conversion_error as `usm_dlpack::validate`, then as `to_desc`; then
///         `request_unsupported` for an engine that is not OpenCL's
inline dnnl::memory make_opencl_memory(const DLTensor& tensor, const dnnl::engine& engine,
                                       std::int32_t id) {
  usm_dlpack::requirements wanted;
  wanted.device_id = id;
  const usm_dlpack::usm_allocation proved = usm_dlpack::validate(tensor, wanted);
  const dnnl::memory::desc desc = to_desc(tensor);
  const bool is_usm = proved.usm_type() != sycl::usm::alloc::unknown;
  return detail::ask_onednn("engine", "one made of OpenCL handles",
                            "use onednn_dlpack::make_memory for an engine of SYCL objects",
                            [&] {
                              return dnnl::ocl_interop::make_memory(
                                  desc, engine, dnnl::ocl_interop::memory_kind::usm,
                                  is_usm ? proved.data() : DNNL_MEMORY_NONE);
                            });
}

}  // namespace onednn_dlpack
