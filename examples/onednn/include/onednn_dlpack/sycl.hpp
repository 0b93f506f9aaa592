// SPDX-License-Identifier: Apache-2.0
//
// DLTensor <-> dnnl::memory on USM, and the engine and stream that go with it. oneDNN checks
// none of this. A dnnl::memory made here keeps nothing alive: the tensor's owner, and the
// stream, must outlive the work.
#pragma once

#include <onednn_dlpack/desc.hpp>

#include <oneapi/dnnl/dnnl_sycl.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace onednn_dlpack {
namespace detail {

/// Refuses what is not in the default context of its device.
inline void check_context(const char* field, std::int32_t id, bool is_default,
                          const char* remedy) {
  if (!is_default) {
    refuse(usm_dlpack::errc::context_not_default, field,
           "one of the default context of device " + std::to_string(id),
           "one of another context", remedy);
  }
}

/// Refuses a queue of another device than the engine's, or outside its default context.
inline void check_queue(const sycl::queue& queue, std::int32_t engine_id) {
  const std::int32_t id = usm_dlpack::device_id(queue.get_device());
  if (id != engine_id) {
    refuse(usm_dlpack::errc::device_mismatch, "queue",
           "one on device " + std::to_string(engine_id) + ", where the engine is",
           "one on device " + std::to_string(id), "make the engine of the queue's device");
  }
  check_context("queue", id, queue.get_context() == usm_dlpack::default_context(id),
                "pass a queue of the root device alone, as sycl::queue(device)");
}

/// Proves a tensor to be on a device; returns its descriptor and address.
inline std::pair<dnnl::memory::desc, void*> prove(const DLTensor& tensor,
                                                  std::int32_t device_id) {
  usm_dlpack::requirements wanted;
  wanted.device_id = device_id;
  const usm_dlpack::usm_allocation proved = usm_dlpack::validate(tensor, wanted);
  // An empty tensor may point anywhere, and some addresses are words of oneDNN's.
  const bool is_usm = proved.usm_type() != sycl::usm::alloc::unknown;
  return {to_desc(tensor), is_usm ? proved.data() : DNNL_MEMORY_NONE};
}

}  // namespace detail

/// The engine of a root device in the default context of its platform.
/// @throws conversion_error as `usm_dlpack::root_device`; `request_unsupported` for a device
///         that oneDNN has no engine for
inline dnnl::engine make_engine(std::int32_t device_id) {
  const sycl::device device = usm_dlpack::root_device(device_id);
  const sycl::context context = usm_dlpack::default_context(device_id);
  return detail::ask_onednn("engine", "a device that oneDNN has an engine for",
                            "use a CPU, or an Intel GPU",
                            [&] { return dnnl::sycl_interop::make_engine(device, context); });
}

/// The DLPack device id of an engine.
/// @throws conversion_error `context_not_default` for an engine in another context, such as
///         `dnnl::engine(kind, index)`
inline std::int32_t device_id(const dnnl::engine& engine) {
  const std::int32_t id = usm_dlpack::device_id(dnnl::sycl_interop::get_device(engine));
  detail::check_context(
      "engine", id, dnnl::sycl_interop::get_context(engine) == usm_dlpack::default_context(id),
      "make it in usm_dlpack::default_context(id)");
  return id;
}

/// The stream of a queue, which orders as the queue does.
/// @throws conversion_error `device_mismatch`, `context_not_default`
inline dnnl::stream make_stream(const dnnl::engine& engine, sycl::queue queue) {
  detail::check_queue(queue, device_id(engine));
  return dnnl::sycl_interop::make_stream(engine, queue);
}

/// A memory object over a tensor's memory, without a copy; the tensor is proved first.
/// @throws conversion_error as `usm_dlpack::validate`, then as `to_desc`
inline dnnl::memory make_memory(const DLTensor& tensor, const dnnl::engine& engine) {
  const auto [desc, data] = detail::prove(tensor, device_id(engine));
  return dnnl::sycl_interop::make_memory(desc, engine, dnnl::sycl_interop::memory_kind::usm,
                                         data);
}

/// The same for a managed tensor, which stays the caller's.
/// @param wanted `writable` for an output
/// @throws conversion_error also `version_unsupported`, `read_only`, and
///         `dtype_unsupported` for padded elements of 4 bits
inline dnnl::memory make_memory(const DLManagedTensorVersioned& managed,
                                const dnnl::engine& engine,
                                const usm_dlpack::requirements& wanted = {}) {
  static_cast<void>(usm_dlpack::validate(managed, wanted));
  if ((managed.flags & usm_dlpack::flag::is_subbyte_type_padded) != 0) {
    detail::refuse(usm_dlpack::errc::dtype_unsupported, "flags",
                   "packed elements, as oneDNN has them",
                   "elements of fewer than 8 bits in a byte each",
                   "pack the array, or convert it to int8 or uint8");
  }
  return make_memory(managed.dl_tensor, engine);
}

/// A managed tensor over the memory of a memory object, proved, which keeps the object. oneDNN
/// frees without a wait: work on the memory must be done before the deleter runs.
/// @pre oneDNN has allocated the memory, or its owner outlives the tensor
/// @throws conversion_error `usm_type_not_accepted` for a SYCL buffer, and as `describe`,
///         `device_id` and `usm_dlpack::validate`
[[nodiscard]] inline usm_dlpack::managed_tensor to_managed_tensor(const dnnl::memory& memory) {
  if (dnnl::sycl_interop::get_memory_kind(memory) != dnnl::sycl_interop::memory_kind::usm) {
    detail::refuse(usm_dlpack::errc::usm_type_not_accepted, "memory", "USM", "a SYCL buffer",
                   "make it with dnnl::sycl_interop::memory_kind::usm");
  }
  const DLDevice device{kDLOneAPI, device_id(memory.get_engine())};
  description said = describe(memory.get_desc());
  const auto ndim = static_cast<std::int32_t>(said.shape.size());
  const DLTensor tensor{
      memory.get_data_handle(), device,          ndim, said.dtype, said.shape.data(),
      said.strides.data(),      said.byte_offset};
  static_cast<void>(usm_dlpack::validate(tensor));
  return usm_dlpack::to_managed_tensor(tensor, dnnl::memory(memory));
}

}  // namespace onednn_dlpack
