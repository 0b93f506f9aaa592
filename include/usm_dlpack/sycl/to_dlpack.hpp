// SPDX-License-Identifier: Apache-2.0
//
// Producer: describes views of USM as DLTensors, by the export protocol. A new rule is a step
// here, and a row in docs/checks.md.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dlpack_tensor.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/accessor.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/dtype.hpp>
#include <usm_dlpack/sycl/memory.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace usm_dlpack {
namespace detail {

USM_DLPACK_COLD inline void refuse_queue_device(const std::string& memory_id,
                                                std::int32_t queue_id) {
  refuse(errc::device_mismatch, "queue",
         "a queue on device " + memory_id + ", where the memory is",
         "one on device " + digits(queue_id),
         "pass a queue of that device, or copy the memory to the queue's device");
}

USM_DLPACK_COLD inline void refuse_null() {
  refuse(errc::invalid_tensor, "data", "the address of USM", "null",
         "check that the allocation succeeded: sycl::malloc_* returns null where it fails");
}

/// Refuses an address at which several drivers have different memory.
USM_DLPACK_COLD inline void refuse_ambiguous(const std::vector<located_memory>& candidates) {
  std::string names;
  for (const located_memory& candidate : candidates) {
    const std::string backend = usm_dlpack::to_string(candidate.entry->backend);
    names.append(names.empty() ? "device " : " and device ");
    names.append(digits(candidate.device_id()) + " (" + backend + ")");
  }
  refuse(errc::context_not_default, "data", "an address that one platform knows",
         "memory of " + names + " at it",
         "pass the queue or the context of the one that is meant");
}

/// Names the platform that knows the memory, if there is one.
/// @param queue_id device id of the queue, or -1 if the caller passed only a context
USM_DLPACK_COLD inline void refuse_unknown(const void* pointer, std::int32_t queue_id) {
  if (pointer == nullptr) {
    refuse_null();
  }
  const std::vector<located_memory> candidates = locate(pointer);
  const bool is_elsewhere = queue_id >= 0 && std::none_of(candidates.begin(), candidates.end(),
                                                          [&](const auto& candidate) {
                                                            return candidate.is_on(queue_id);
                                                          });
  if (!candidates.empty() && is_elsewhere) {
    refuse_queue_device(ids_of(candidates), queue_id);
  }
  refuse_pointer("the given context",
                 candidates.empty()
                     ? allocation_remedy
                     : "pass the context that it is of, the default one of its platform, or a "
                       "queue of its root device alone, as sycl::queue(device)");
}

/// Refuses a context that is not a default one: a consumer cannot find it by a device id.
USM_DLPACK_COLD inline void refuse_context(const void* pointer, bool empty,
                                           const sycl::context& context,
                                           std::int32_t queue_id) {
  const bool knows_pointer =
      empty || with_runtime_errors("context", [&] {
        return sycl::get_pointer_type(pointer, context) != sycl::usm::alloc::unknown;
      });
  if (!knows_pointer) {
    refuse_unknown(pointer, queue_id);
  }
  const std::string devices = with_runtime_errors("context", [&] {
    const std::vector<sycl::device> all = context.get_devices();
    const bool has_sub_devices = std::any_of(
        all.begin(), all.end(),
        [](const sycl::device& device) { return detail::root_of(device) != device; });
    return std::to_string(all.size()) + (has_sub_devices ? " sub-device(s)" : " device(s)");
  });
  refuse(
      errc::context_not_default, "context",
      "the default context of " + platform_name(context.get_platform()),
      "another one, of " + devices,
      "allocate with a queue of the root device alone, as sycl::queue(device) or "
      "dpctl.SyclQueue(device), or copy to such memory, in Python by usm_dlpack.empty and copy_from");
}

/// The memory of a view that is exported.
struct exported_memory {
  const void* pointer;  ///< to the first element
  bool empty;           ///< the view has no elements, so `pointer` may be unknown
  /// The USM kind that the type of the view names; unknown for any kind, or if `empty`.
  sycl::usm::alloc kind = sycl::usm::alloc::unknown;
};

/// Checks the USM kind that the view's type names.
inline void check_view_kind(const exported_memory& memory, sycl::usm::alloc kind) {
  constexpr auto unknown = sycl::usm::alloc::unknown;
  if (memory.kind != unknown && kind != unknown && memory.kind != kind) {
    refuse(
        errc::usm_type_not_accepted, "data",
        std::string(usm_dlpack::to_string(memory.kind)) + " USM, as the type of the view says",
        std::string(usm_dlpack::to_string(kind)) + " USM",
        "use a view of the kind that was allocated, or copy the elements");
  }
}

/// Runs the export protocol for a context.
/// @param queue_id device id of the queue, or -1 if the caller passed only a context
/// @param other_id without a queue, of memory that belongs to no device; -1 for the platform's
///        first
inline DLDevice find_device_by_context(const exported_memory& memory,
                                       const sycl::context& context,
                                       std::int32_t queue_id = -1,
                                       std::int32_t other_id = -1) {
  const platform_entry* const entry = device_table::get().find(context);
  if (entry == nullptr) {
    refuse_context(memory.pointer, memory.empty, context, queue_id);
  }
  allocation usm;
  if (entry->device_count == 1) {  // the kind suffices, and its query may be cheaper
    usm.kind =
        with_runtime_errors("data", [&] { return entry->queries->find_kind(memory.pointer); });
  } else {
    usm = find_allocation(memory.pointer, *entry);
  }
  check_view_kind(memory, usm.kind);
  if (usm.kind == sycl::usm::alloc::unknown && !memory.empty) {
    refuse_unknown(memory.pointer, queue_id);
  }
  for (const std::int32_t id : {usm.device_id, queue_id, other_id}) {
    if (id >= 0) {
      return {kDLOneAPI, id};
    }
  }
  return {kDLOneAPI, entry->first_device};
}

/// Runs the export protocol for a queue, whose root device must be the memory's.
inline DLDevice find_device_by_queue(const exported_memory& memory, const sycl::queue& queue) {
  const device_table& table = device_table::get();
  const sycl::context context = queue.get_context();
  const platform_entry* entry = table.find(context);
  std::int32_t queue_id =
      entry == nullptr ? -1 : table.find(queue.get_device(), entry->first_device);
  if (queue_id < 0) {
    queue_id = device_id(queue.get_device());  // a sub-device, or another context
  }
  DLDevice device = find_device_by_context(memory, context, queue_id);
  if (device.device_id != queue_id) {
    if (!memory.empty) {
      refuse_queue_device(digits(device.device_id), queue_id);
    }
    device.device_id = queue_id;  // its pointer may belong to the next allocation
  }
  return device;
}

/// Runs the export protocol without a context, by querying every platform.
inline DLDevice find_device_by_address(const exported_memory& memory) {
  const std::vector<located_memory> candidates = locate(memory.pointer);
  if (candidates.size() == 1) {
    check_view_kind(memory, candidates.front().memory.kind);
    return {kDLOneAPI, candidates.front().device_id()};
  }
  if (!candidates.empty() && !memory.empty) {
    refuse_ambiguous(candidates);
  }
  const std::size_t count = device_table::get().devices.size();
  if (count == 0) {
    refuse_device_id(0, 0);
  }
  if (memory.pointer == nullptr && !memory.empty) {
    refuse_null();
  }
  if (memory.empty && count == 1) {
    return {kDLOneAPI, 0};  // the only device
  }
  if (memory.empty) {  // its address does not determine the root device
    refuse(errc::pointer_unknown, "data",
           "the address of USM, or a context, for a view without elements",
           candidates.empty() ? "an address unknown to all contexts"
                              : "an address that several contexts know",
           "pass a queue, or the context, of the device that is meant");
  }
  refuse_pointer("the default context of a platform",
                 std::string(allocation_remedy) + ", or pass the context");
}

/// Describes a view.
/// @param find_device finds the device of an `exported_memory`
template <class View, class Find>
dlpack_tensor<View::rank()> export_view(const View& view, const Find& find_device) {
  const auto tensor = detail::describe<empty_data::handle>(view, DLDevice{kDLOneAPI, 0});
  const auto& shape = tensor.shape();
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  const auto kind = empty ? sycl::usm::alloc::unknown : usm_kind_of<accessor_of<View>>;
  const DLDevice device = find_device(exported_memory{tensor.data(), empty, kind});
  return {empty ? nullptr : tensor.data(), device, tensor.dtype(), tensor.shape(),
          tensor.strides()};
}

template <class View>
dlpack_tensor<View::rank()> export_by_queue(const View& view, const sycl::queue& queue) {
  return export_view(view, [&](const exported_memory& memory) {
    return find_device_by_queue(memory, queue);
  });
}

/// Refuses a queue of another context than the default one of its platform.
/// @param field of the refusal
inline void check_default_context(const sycl::queue& queue, const char* field) {
  if (device_table::get().find(queue.get_context()) == nullptr) {
    refuse(errc::context_not_default, field, "a queue of the default context of its platform",
           "one of another context",
           "pass a queue of the root device alone, as sycl::queue(device) or "
           "dpctl.SyclQueue(device)");
  }
}

/// Checks a queue for one of several views or allocations; a refusal names it, counted from 1.
template <class Memory>
void check_queue_for(const Memory& memory, const sycl::queue& queue, std::size_t number,
                     std::size_t count) {
  try {
    if constexpr (std::is_same_v<Memory, usm_allocation>) {
      static_cast<void>(
          find_device_by_queue({memory.data(), memory.structure().empty}, queue));
    } else {
      static_cast<void>(export_by_queue(memory, queue));
    }
  } catch (const conversion_error& error) {
    if (count == 1) {
      throw;
    }
    refuse(error.code(), error.field(), error.expected(),
           error.found() + ", for view " + std::to_string(number), error.remedy());
  }
}

}  // namespace detail

/// Describes a view of USM as a DLTensor. The context must know the pointer and be the default
/// context of its platform. The device id is that of the memory's root device; the other
/// fields are as in `to_dlpack_tensor(view, device)`. An empty view's pointer may be unknown:
/// its id is then that of the platform's first device. If the view's type names a USM kind
/// (sycl/to_mdspan.hpp), its elements must be of that kind.
/// @throws conversion_error `pointer_unknown`, `context_not_default`, `device_without_id`,
///         `usm_type_not_accepted`, `no_device`, `runtime_error`, and those of the view
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] auto to_dlpack_tensor(const View& view, const sycl::context& context)
    -> dlpack_tensor<View::rank()> {
  return detail::export_view(view, [&](const detail::exported_memory& memory) {
    return detail::find_device_by_context(memory, context);
  });
}

/// Describes a view of USM in a queue's context; the queue's root device must be the memory's.
/// For host USM the device id is the queue's. Does not wait for the queue.
/// @throws conversion_error also `device_mismatch`
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] auto to_dlpack_tensor(const View& view, const sycl::queue& queue)
    -> dlpack_tensor<View::rank()> {
  return detail::export_by_queue(view, queue);
}

/// Describes a view of USM of an unnamed context: exactly one platform's default context must
/// know the pointer. Prefer to pass the queue: an OpenCL GPU and Level Zero may give the
/// same address to different memory. Among several root devices, an empty view is refused
/// unless exactly one context knows its pointer.
/// @throws conversion_error also `context_not_default`
template <class View, class = detail::required_bare_view<View>>
[[nodiscard]] auto to_dlpack_tensor(const View& view) -> dlpack_tensor<View::rank()> {
  return detail::export_view(view, detail::find_device_by_address);
}

/// Checks that work on views may be submitted to a queue: the queue must be on the root device
/// and in the context of their memory. Host USM fits each device of its context. Among several
/// views, `found` names the refused one by its number, from 1.
/// @param views views of USM, or allocations that `validate` proved
/// @throws conversion_error `context_not_default` for a queue of another context; then as
///         `to_dlpack_tensor(view, queue)`
template <class... Views>
void check_queue(const sycl::queue& queue, const Views&... views) {
  static_assert(((detail::is_view<Views> || std::is_same_v<Views, usm_allocation>) && ...),
                "views: expected types with the interface of mdspan, found another; pass only "
                "arrays, and *x of an optional; for a vector of arrays, launch for each "
                "element in one ordered_section");
  detail::check_default_context(queue, "queue");
  std::size_t number = 0;
  (detail::check_queue_for(views, queue, ++number, sizeof...(views)), ...);
}

}  // namespace usm_dlpack
