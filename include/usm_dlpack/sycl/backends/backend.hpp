// SPDX-License-Identifier: Apache-2.0
//
// The queries of memory that each backend implements, and SYCL's own, which serve a backend
// without a file in this folder. A new query needs an answer here for all backends.
#pragma once

#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace usm_dlpack {

/// How the root device of the memory is known.
enum class device_proof {
  backend,      ///< the backend reports it
  only_device,  ///< the context has no other root device
  runtime,      ///< SYCL reports it, possibly wrong among several root devices
  none,         ///< host USM or no memory: there is no single device
};

/// How far it is known that a view lies in one allocation.
enum class bounds_proof {
  allocation,  ///< exactly: the backend reports base and size of SYCL's allocation
  block,       ///< the driver's allocation, which may hold several of SYCL's; or adjacent
               ///< pieces of memory, mapped in one reservation of virtual memory
  both_ends,   ///< the first and the last byte of the view are USM of one kind and device
  none,        ///< the tensor is empty
};

namespace detail {

/// The bytes in which a view must lie; size 0 if the backend does not report them.
struct allocation_range {
  std::uintptr_t base = 0;
  std::size_t size = 0;
  bounds_proof proof = bounds_proof::both_ends;

  constexpr bool contains(const tensor_structure& view) const noexcept {
    return view.lowest >= base && view.nbytes <= size &&
           view.lowest - base <= size - view.nbytes;
  }
};

/// The allocation that a pointer points into.
struct allocation {
  sycl::usm::alloc kind = sycl::usm::alloc::unknown;  ///< unknown if not USM of the context
  std::int32_t device_id = -1;                        ///< of the root device; -1 if unknown
  std::optional<sycl::device> part;                   ///< the true device, if a sub-device
  device_proof device = device_proof::none;
  allocation_range range{};  ///< if the query of kind and device reports it
};

/// Joins adjacent pieces of mapped memory, from the one at a view's lowest address to the one
/// at its end, or to the last before a gap.
/// @param find_piece finds the piece of a pointer; size 0 if there is none that may be joined
template <class Find>
allocation_range join_pieces(const tensor_structure& view, const Find& find_piece) {
  allocation_range joined = find_piece(reinterpret_cast<const void*>(view.lowest));
  while (!joined.contains(view)) {
    const std::uintptr_t end = joined.base + joined.size;
    const allocation_range next = find_piece(reinterpret_cast<const void*>(end));
    if (next.size == 0 || next.base != end) {
      break;
    }
    joined.size += next.size;
  }
  return joined;
}

/// Whether USM of a kind is on a single device.
constexpr bool is_on_one_device(sycl::usm::alloc kind) noexcept {
  return kind == sycl::usm::alloc::device || kind == sycl::usm::alloc::shared;
}

/// Queries memory in a platform's default context. This class queries SYCL; a backend's class
/// queries the driver for what SYCL does not report. Nothing is cached by address, because
/// memory is freed and reused.
class backend_queries {
 public:
  explicit backend_queries(const sycl::context& default_context)
      : sycl_context(default_context) {}
  virtual ~backend_queries() = default;

  /// The USM kind; unknown for other memory. May be cheaper than `find`.
  virtual sycl::usm::alloc find_kind(const void* pointer) const {
    return sycl::get_pointer_type(pointer, sycl_context);
  }

  /// The USM kind and the true device. If the device is known but not its id, `device_id` is
  /// -1 and `part` is the device, whose id the caller finds.
  virtual allocation find(const void* pointer) const {
    allocation memory;
    memory.kind = backend_queries::find_kind(pointer);
    if (is_on_one_device(memory.kind)) {
      memory.part = sycl::get_pointer_device(pointer, sycl_context);
      memory.device = device_proof::runtime;
    }
    return memory;
  }

  /// The bounds of a view that is not empty. SYCL does not report them.
  /// @param memory what `find` has found at the view's first element
  virtual allocation_range range(const tensor_structure& /*view*/,
                                 const allocation& /*memory*/) const noexcept {
    return {};
  }

  /// The ordinal by which CUDA knows a root device of the platform; -1 if it is not CUDA's.
  virtual std::int32_t cuda_ordinal(std::int32_t /*device_id*/) const noexcept { return -1; }

  sycl::context sycl_context;
};

/// The platform whose memory is queried.
struct queried_platform {
  const sycl::platform& sycl_platform;
  const sycl::context& context;            ///< the default context
  std::vector<const sycl::device*> roots;  ///< by device id; null for devices of other
                                           ///< platforms, and for those that fail
};

/// The native handles of root devices, by device id; null where `roots` is.
template <sycl::backend Backend>
auto native_devices(const std::vector<const sycl::device*>& roots) {
  std::vector<decltype(sycl::get_native<Backend>(std::declval<const sycl::device&>()))>
      handles;
  for (const sycl::device* const root : roots) {
    handles.push_back(root == nullptr ? nullptr : sycl::get_native<Backend>(*root));
  }
  return handles;
}

/// The id of a root device's handle, or -1, also for a handle of `none`.
template <class Handle>
std::int32_t find_id(const std::vector<Handle>& devices, Handle device,
                     Handle none = Handle{}) noexcept {
  const auto position = std::find(devices.begin(), devices.end(), device);
  return device == none || position == devices.end()
             ? -1
             : static_cast<std::int32_t>(position - devices.begin());
}

/// Finds a function in a library that the SYCL runtime has loaded; nothing is linked.
/// @returns whether there is one; `function` is null otherwise
template <class Function>
bool find_function(const char* library, const char* name, Function& function) noexcept {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  function = loaded == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(loaded, name));
  return function != nullptr;
}

}  // namespace detail
}  // namespace usm_dlpack
