// SPDX-License-Identifier: Apache-2.0
//
// Producer: the export protocol. A view of USM, and its context, its queue or neither -> the
// DLTensor wrapper whose device id names the root of the true device.
//
// Nothing here waits: a DLTensor says where, not when. Whoever exports memory has the work on
// it finished, or hands over the queue; memory that is freed while exported dangles.
#pragma once

#include <usm_dlpack/export_refusals.hpp>
#include <usm_dlpack/sycl_dtype.hpp>
#include <usm_dlpack/to_dlpack.hpp>
#include <usm_dlpack/usm_accessor.hpp>

#include <sycl/sycl.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// The DLPack device of USM, by its platform: known pointer -> true device -> root -> id.
/// @param preferred device id for host USM, which belongs to no device of its context
inline DLDevice export_device(const memory_place& found, const platform_entry& entry,
                              std::int32_t preferred) noexcept {
  const std::int32_t any = preferred < 0 ? entry.first_device : preferred;
  return {kDLOneAPI, found.device_id < 0 ? any : found.device_id};
}

/// Where the memory is; the kind is asked for only if the view's type names one.
/// @param kind unknown for a view of any kind, or of no elements
/// @throws conversion_error `usm_type_not_accepted`, `runtime_error`
inline memory_place find_place(const void* pointer, const platform_entry& entry,
                               sycl::usm::alloc kind) {
  if (kind == sycl::usm::alloc::unknown) {
    return find_place(pointer, entry);
  }
  const allocation found = find_allocation(pointer, entry);
  check_kind(found, kind);
  return place_of(found);
}

/// Export protocol for memory of a given context, whose platform is found already.
/// @param entry the platform whose default context `context` is, or null
/// @param queue_id device id of the queue, or -1 if only a context was given
inline DLDevice export_device(const void* pointer, bool empty, const sycl::context& context,
                              const platform_entry* entry, sycl::usm::alloc kind,
                              std::int32_t queue_id) {
  if (entry == nullptr) {
    refuse_context(pointer, empty, context, queue_id);
  }
  const memory_place found = find_place(pointer, *entry, kind);
  if (!found.known && !empty) {
    refuse_unknown(pointer, queue_id);
  }
  return export_device(found, *entry, queue_id);
}

/// Export protocol for memory of a given context.
inline DLDevice export_device(const void* pointer, bool empty, const sycl::context& context,
                              sycl::usm::alloc kind = sycl::usm::alloc::unknown) {
  return export_device(pointer, empty, context, device_table::get().find(context), kind, -1);
}

/// Export protocol for memory that a queue works on: the queue's root device must be the
/// memory's.
inline DLDevice export_device(const void* pointer, bool empty, const sycl::queue& queue,
                              sycl::usm::alloc kind = sycl::usm::alloc::unknown) {
  const device_table& table = device_table::get();
  const sycl::context context = queue.get_context();
  const platform_entry* entry = table.find(context);
  std::int32_t queue_id =
      entry == nullptr ? -1 : table.find(queue.get_device(), entry->first_device);
  if (queue_id < 0) {
    queue_id = device_id(queue.get_device());  // a sub-device, or of no default context
  }
  DLDevice device = export_device(pointer, empty, context, entry, kind, queue_id);
  if (device.device_id != queue_id) {
    if (!empty) {
      refuse_queue(digits(device.device_id), queue_id);
    }
    device.device_id = queue_id;  // the memory is another's, which begins where the view ends
  }
  return device;
}

/// Export protocol for memory whose context is not given: every platform is asked.
inline DLDevice export_device(const void* pointer, bool empty,
                              sycl::usm::alloc kind = sycl::usm::alloc::unknown) {
  const std::vector<located_memory> places = locate(pointer);
  if (places.size() == 1) {
    check_kind(places.front().found, kind);
    return {kDLOneAPI, places.front().device_id()};
  }
  if (!places.empty() && !empty) {
    refuse_ambiguous(places);
  }
  const std::size_t count = device_table::get().devices.size();
  if (count == 0) {
    refuse_device_id(0, 0);
  }
  if (pointer == nullptr && !empty) {
    refuse_null();
  }
  if (empty && count == 1) {
    return {kDLOneAPI, 0};  // no memory to look up, and no choice of device
  }
  if (empty) {
    refuse_empty(!places.empty());
  }
  refuse_pointer("the default context of a platform",
                 "allocate with a queue made from a root device alone, or pass the context");
}

/// Describes a view, and finds its device by one of the three functions above.
template <class View, class... Place>
dlpack_tensor<View::rank()> export_view(const View& view, const Place&... place) {
  const auto described = detail::describe<empty_data::kept>(view, DLDevice{kDLOneAPI, 0});
  const bool empty = detail::is_empty(described.shape());
  const auto kind = empty ? sycl::usm::alloc::unknown : usm_kind_of<accessor_of<View>>;
  const DLDevice device = export_device(described.data(), empty, place..., kind);
  return {empty ? nullptr : described.data(), device, described.dtype(), described.shape(),
          described.strides()};
}

}  // namespace detail

/// Describes a view of USM as a DLTensor, by the export protocol: the context knows the
/// pointer, it is the default context of its platform, and the id is that of the true device's
/// root. The same fields as `to_dlpack_tensor(view, device)`, which an empty view, whose
/// pointer may be unknown, gets with the id of the platform's first device. A view whose type
/// names the USM kind (usm_mdspan.hpp) has elements of that kind.
/// @throws conversion_error `pointer_unknown`, `context_not_default`, `device_without_id`,
///         `usm_type_not_accepted`, `device_failed`, `runtime_error`, and those of the view
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] auto to_dlpack_tensor(const View& view, const sycl::context& context)
    -> dlpack_tensor<View::rank()> {
  return detail::export_view(view, context);
}

/// The same for the context of a queue, whose root device must be the memory's. Host USM,
/// which belongs to no device, gets the id of the queue's. Does not wait for the queue.
/// @throws conversion_error also `queue_device_mismatch`
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] auto to_dlpack_tensor(const View& view, const sycl::queue& queue)
    -> dlpack_tensor<View::rank()> {
  return detail::export_view(view, queue);
}

/// The same without a context: the default context of each platform is asked, and one must
/// know the pointer. Rather pass the queue: with an OpenCL GPU beside Level Zero, memory of
/// both may have the same address. An empty view that not just one knows is refused where the
/// process has several root devices: nothing says which is meant.
/// @throws conversion_error also `context_ambiguous`
template <class View, int = detail::require_view<View>(),
          int = detail::require_dtype<detail::element_of<View>>()>
[[nodiscard]] auto to_dlpack_tensor(const View& view) -> dlpack_tensor<View::rank()> {
  return detail::export_view(view);
}

/// Proves that work on views may be submitted to a queue: it is of their root device, and of
/// the context that their memory is of. Host USM goes with each device of its context.
/// @throws conversion_error `context_not_default` for a queue of another context; then as
///         `to_dlpack_tensor(view, queue)`
template <class... Views>
void check_queue(const sycl::queue& queue, const Views&... views) {
  static_assert((detail::is_view<Views> && ...),
                "views: expected types with the interface of mdspan, found another; "
                "pass the views alone, without a kernel's other arguments");
  if (detail::device_table::get().find(queue.get_context()) == nullptr) {
    detail::refuse(errc::context_not_default, "queue",
                   "one of the default context of its platform, as the views' memory is",
                   "one of another context",
                   "pass a queue made from a root device alone, or the array's own");
  }
  (static_cast<void>(detail::export_view(views, queue)), ...);
}

}  // namespace usm_dlpack
