// SPDX-License-Identifier: Apache-2.0
//
// The table of root devices, platforms, default contexts and native queries, built on first
// use. A device's position is its DLPack id; a device that fails does not affect the others.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <CL/cl_ext.h>  // after SYCL, which sets the OpenCL version
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// Finds a function in a library that the SYCL runtime has loaded; nothing is linked.
/// @returns whether there is one; `function` is null otherwise
template <class Function>
bool find_function(const char* library, const char* name, Function& function) noexcept {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  function = loaded == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(loaded, name));
  return function != nullptr;
}

/// The native handles of root devices; null where `roots` is.
template <sycl::backend Backend>
auto native_devices(const std::vector<const sycl::device*>& roots) {
  std::vector<decltype(sycl::get_native<Backend>(std::declval<const sycl::device&>()))> made;
  for (const sycl::device* const root : roots) {
    made.push_back(root == nullptr ? nullptr : sycl::get_native<Backend>(*root));
  }
  return made;
}

/// The id of a root device's handle, or -1.
template <class Handle>
std::int32_t find_id(const std::vector<Handle>& devices, Handle device) noexcept {
  const auto found = std::find(devices.begin(), devices.end(), device);
  return device == nullptr || found == devices.end()
             ? -1
             : static_cast<std::int32_t>(found - devices.begin());
}

constexpr sycl::usm::alloc kind_of(cl_unified_shared_memory_type_intel type) noexcept {
  switch (type) {
    case CL_MEM_TYPE_HOST_INTEL: return sycl::usm::alloc::host;
    case CL_MEM_TYPE_DEVICE_INTEL: return sycl::usm::alloc::device;
    case CL_MEM_TYPE_SHARED_INTEL: return sycl::usm::alloc::shared;
    default: return sycl::usm::alloc::unknown;
  }
}

/// The OpenCL objects of a platform's default context, and the USM query that SYCL lacks. The
/// handles are retained for the life of the process.
struct opencl_platform {
  cl_context context = nullptr;
  clGetMemAllocInfoINTEL_fn query = nullptr;  ///< null: not OpenCL, or without USM
  std::vector<cl_device_id> devices;          ///< by device id; null for other platforms
  decltype(&clGetDeviceInfo) device_info = nullptr;

  /// The USM kind; unknown for other memory.
  sycl::usm::alloc find_kind(const void* pointer) const noexcept {
    cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
    return get(pointer, CL_MEM_ALLOC_TYPE_INTEL, type) ? kind_of(type)
                                                       : sycl::usm::alloc::unknown;
  }

  /// The USM kind and the true device; null for host USM, which is on no single device. Some
  /// drivers name one all the same: PoCL 7.1 the first of the context.
  sycl::usm::alloc find(const void* pointer, cl_device_id& device) const noexcept {
    const sycl::usm::alloc kind = find_kind(pointer);
    if (kind == sycl::usm::alloc::device || kind == sycl::usm::alloc::shared) {
      get(pointer, CL_MEM_ALLOC_DEVICE_INTEL, device);
    }
    return kind;
  }

  /// Base address and size in bytes of the allocation of `pointer`.
  /// @returns false if unknown
  bool get_range(const void* pointer, std::uintptr_t& base, std::size_t& size) const noexcept {
    void* start = nullptr;
    const bool known = get(pointer, CL_MEM_ALLOC_BASE_PTR_INTEL, start) &&
                       get(pointer, CL_MEM_ALLOC_SIZE_INTEL, size);
    base = reinterpret_cast<std::uintptr_t>(start);
    return known;
  }

  template <class Value>
  bool get(const void* pointer, cl_mem_info_intel what, Value& value) const noexcept {
    return query(context, pointer, what, sizeof(Value), &value, nullptr) == CL_SUCCESS;
  }
};

/// @param context the default context
/// @param roots working root devices, by device id; null for all others
/// @pre the platform is of the backend opencl
inline opencl_platform make_opencl_platform(const sycl::platform& platform,
                                            const sycl::context& context,
                                            const std::vector<const sycl::device*>& roots) {
  constexpr const char* library = "libOpenCL.so.1";
  opencl_platform made;
  decltype(&clGetExtensionFunctionAddressForPlatform) find = nullptr;
  if (!find_function(library, "clGetExtensionFunctionAddressForPlatform", find) ||
      !find_function(library, "clGetDeviceInfo", made.device_info)) {
    return {};
  }
  made.context = sycl::get_native<sycl::backend::opencl>(context);
  made.devices = native_devices<sycl::backend::opencl>(roots);
  const auto native = sycl::get_native<sycl::backend::opencl>(platform);
  made.query =
      reinterpret_cast<clGetMemAllocInfoINTEL_fn>(find(native, "clGetMemAllocInfoINTEL"));
  return made;
}

/// The id of an OpenCL device's root device, or -1.
inline std::int32_t root_id_of(const opencl_platform& native, cl_device_id device) noexcept {
  std::int32_t id = -1;
  while (device != nullptr && (id = find_id(native.devices, device)) < 0) {
    cl_device_id parent = nullptr;
    native.device_info(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, nullptr);
    device = parent;
  }
  return id;
}

/// `ze_memory_allocation_properties_t`. Source: Level Zero specification 1.0, "Memory".
struct level_zero_properties {
  std::uint32_t stype = 0x17;  // ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
  void* next = nullptr;
  std::uint32_t type = 0;  // ZE_MEMORY_TYPE_UNKNOWN
  std::uint64_t id = 0;
  std::uint64_t page_size = 0;
};

/// libumf, if the SYCL runtime has loaded it.
struct memory_pools {
  // `umfPoolByPtr`, `umfPoolMallocUsableSize`
  int (*pool_of)(const void*, void**) = nullptr;
  int (*usable_size)(void*, const void*, std::size_t*) = nullptr;

  enum class answer { told, not_of_a_pool, none };

  /// Finds the bytes from an address to the end of its chunk in a pool; for an allocation that
  /// was not cut, its whole size at any address.
  answer ask(std::uintptr_t address, std::size_t& bytes) const noexcept {
    if (pool_of == nullptr || usable_size == nullptr) {
      return answer::none;
    }
    const auto* pointer = reinterpret_cast<const void*>(address);
    void* pool = nullptr;
    if (pool_of(pointer, &pool) != 0 || pool == nullptr) {
      return answer::not_of_a_pool;
    }
    return usable_size(pool, pointer, &bytes) == 0 ? answer::told : answer::none;
  }
};

/// The Level Zero objects of a platform's default context, and the queries that SYCL lacks.
struct level_zero_platform {
  // Both return a ze_result_t, 0 for success.
  using properties_query = int (*)(ze_context_handle_t, const void*, level_zero_properties*,
                                   ze_device_handle_t*);
  using range_query = int (*)(ze_context_handle_t, const void*, void**, std::size_t*);

  ze_context_handle_t context = nullptr;
  properties_query query = nullptr;         ///< null: not Level Zero
  range_query range = nullptr;              ///< null: not Level Zero
  std::vector<ze_device_handle_t> devices;  ///< by device id; null for other platforms

  /// USM kind and true device; the kind is unknown for other memory. The driver knows the
  /// memory of every context of its platform.
  sycl::usm::alloc find(const void* pointer, ze_device_handle_t& device) const noexcept {
    level_zero_properties properties;
    const bool answered = query(context, pointer, &properties, &device) == 0;
    switch (answered ? properties.type : 0) {
      case 1: return sycl::usm::alloc::host;
      case 2: return sycl::usm::alloc::device;
      case 3: return sycl::usm::alloc::shared;
      default: return sycl::usm::alloc::unknown;
    }
  }

  /// Base address and size in bytes of the driver's allocation, which SYCL may have cut up.
  /// @returns false if unknown
  bool get_range(const void* pointer, std::uintptr_t& base, std::size_t& size) const noexcept {
    void* start = nullptr;
    const bool known = range(context, pointer, &start, &size) == 0;
    base = reinterpret_cast<std::uintptr_t>(start);
    return known;
  }
};

/// @pre the context is of the backend ext_oneapi_level_zero
inline level_zero_platform make_level_zero_platform(
    const sycl::context& context, const std::vector<const sycl::device*>& roots) {
  constexpr const char* library = "libze_loader.so.1";
  constexpr auto backend = sycl::backend::ext_oneapi_level_zero;
  level_zero_platform made;
  if (!find_function(library, "zeMemGetAllocProperties", made.query) ||
      !find_function(library, "zeMemGetAddressRange", made.range)) {
    return {};
  }
  made.context = sycl::get_native<backend>(context);
  made.devices = native_devices<backend>(roots);
  return made;
}

/// The context of every queue made from a device alone. The KHR spelling came with DPC++
/// 2025.2, which deprecated the oneAPI spelling.
template <class Platform>
auto default_context_of(const Platform& platform, int)
    -> decltype(platform.khr_get_default_context()) {
  return platform.khr_get_default_context();
}
template <class Platform>
sycl::context default_context_of(const Platform& platform, long) {
  return platform.ext_oneapi_get_default_context();
}

/// Whether SYCL pools allocations of a USM kind: cuts several from one of the driver's.
enum class pooling { not_asked, pooled, unpooled };

struct platform_entry {
  sycl::platform platform;
  /// Null if the platform failed to make it. SYCL already compiles shared_ptr, not optional.
  std::shared_ptr<sycl::context> context;
  std::int32_t first_device = 0;  ///< the lowest device id on the platform
  std::int32_t device_count = 0;  ///< root devices on the platform
  sycl::backend backend = platform.get_backend();
  bool has_usm = true;  ///< without USM, SYCL's queries throw
  /// Native handles, found once: `get_native` takes microseconds. If null, SYCL is queried.
  opencl_platform opencl{};
  level_zero_platform level_zero{};
  /// Of Level Zero alone: the pools that SYCL may cut memory from.
  memory_pools pools{};
  std::shared_ptr<std::array<std::atomic<pooling>, 4>> pooling_of_kind{};  ///< by USM kind
};

/// Whether SYCL gives each driver allocation of a kind whole to one caller. Tested once, with
/// one byte, the likeliest size to be pooled. Shared USM is pooled only if devices only read
/// it.
/// @pre the platform is of the backend ext_oneapi_level_zero
inline bool is_unpooled(const platform_entry& entry, sycl::usm::alloc kind) noexcept {
  std::atomic<pooling>& state = entry.pooling_of_kind->at(static_cast<std::size_t>(kind));
  const sycl::context& context = *entry.context;
  if (state == pooling::not_asked) {
    bool whole = false;
    try {
      sycl::property_list properties;
      if (kind == sycl::usm::alloc::shared) {
        properties = {sycl::ext::oneapi::property::usm::device_read_only()};
      }
      void* const byte =
          sycl::malloc(1, context.get_devices().front(), context, kind, properties);
      std::uintptr_t base = 0;
      std::size_t size = 0;
      whole = byte != nullptr && entry.level_zero.get_range(byte, base, size) && size == 1;
      sycl::free(byte, context);
    } catch (const sycl::exception&) {  // no such memory: counts as pooled
    }
    state = whole ? pooling::unpooled : pooling::pooled;
  }
  return state == pooling::unpooled;
}

struct device_entry {
  sycl::device device;
  std::size_t platform = SIZE_MAX;  ///< index in `device_table::platforms`
  std::string failure{};            ///< the runtime's text if it cannot use the device
};

/// The root devices in the order of `sycl::device::get_devices()`: the position is the id.
struct device_table {
  std::vector<platform_entry> platforms;
  std::vector<device_entry> devices;

  device_table() {
    for (const sycl::device& device : sycl::device::get_devices()) {
      devices.push_back(device_entry{device});
      add_platform_of(devices.back());
    }
    for (std::size_t place = 0; place < platforms.size(); ++place) {
      find_handles_of(place);
    }
  }

  /// The process's table. Never destroyed: SYCL's statics may be gone before. One for each
  /// program and shared library, because others may use another version of this header.
  [[gnu::visibility("hidden")]] static const device_table& get() {
    static const device_table& table = make();
    return table;
  }

  /// The id of a root device, or -1.
  /// @param first the lowest id to search
  std::int32_t find(const sycl::device& device, std::int32_t first = 0) const noexcept {
    for (auto id = static_cast<std::size_t>(first); id < devices.size(); ++id) {
      if (devices[id].device == device) {
        return static_cast<std::int32_t>(id);
      }
    }
    return -1;
  }

  /// The platform whose default context `context` is, or null.
  const platform_entry* find(const sycl::context& context) const noexcept {
    for (const platform_entry& entry : platforms) {
      if (entry.context && *entry.context == context) {
        return &entry;
      }
    }
    return nullptr;
  }

  const platform_entry& platform_of(std::int32_t device_id) const noexcept {
    return platforms[devices[static_cast<std::size_t>(device_id)].platform];
  }

 private:
  static const device_table& make() {
    try {
      return *new device_table;
    } catch (const sycl::exception& error) {
      refuse(errc::runtime_error, "device", "the root devices of this process",
             std::string("the exception \"") + error.what() + "\"",
             "unset ONEAPI_DEVICE_SELECTOR, correct it, for example to *:gpu, or repair the "
             "driver");
    }
  }

  void add_platform_of(device_entry& entry) {
    try {
      const sycl::platform platform = entry.device.get_platform();
      std::size_t place = 0;
      while (place < platforms.size() && platforms[place].platform != platform) {
        ++place;
      }
      if (place == platforms.size()) {
        const auto id = static_cast<std::int32_t>(devices.size() - 1);
        platforms.push_back(platform_entry{platform, nullptr, id, 0});
      }
      entry.platform = place;
      ++platforms[place].device_count;
      if (platforms[place].context == nullptr) {
        sycl::context context = default_context_of(platform, 0);
        platforms[place].context = std::make_shared<sycl::context>(context);
      }
    } catch (const sycl::exception& error) {
      entry.failure = error.what();
    }
  }

  void find_handles_of(std::size_t place) {
    platform_entry& entry = platforms[place];
    std::vector<const sycl::device*> roots(devices.size());
    for (std::size_t id = 0; id < devices.size(); ++id) {
      const bool works_here = devices[id].platform == place && devices[id].failure.empty();
      roots[id] = works_here ? &devices[id].device : nullptr;
    }
    try {
      if (entry.context && entry.backend == sycl::backend::opencl) {
        entry.opencl = make_opencl_platform(entry.platform, *entry.context, roots);
        entry.has_usm = entry.opencl.context == nullptr || entry.opencl.query != nullptr;
      }
      if (entry.context && entry.backend == sycl::backend::ext_oneapi_level_zero) {
        entry.level_zero = make_level_zero_platform(*entry.context, roots);
        find_function("libumf.so.1", "umfPoolByPtr", entry.pools.pool_of);
        find_function("libumf.so.1", "umfPoolMallocUsableSize", entry.pools.usable_size);
        entry.pooling_of_kind = std::make_shared<std::array<std::atomic<pooling>, 4>>();
      }
    } catch (const sycl::exception&) {  // keeps no handles
    }
  }
};

/// Calls the runtime and turns its exception into a `conversion_error` with its text.
template <class Query>
auto ask_runtime(const char* field, Query&& query) -> decltype(query()) {
  try {
    return query();
  } catch (const sycl::exception& error) {
    refuse(errc::runtime_error, field, "an answer of the SYCL runtime",
           std::string("the exception \"") + error.what() + "\"",
           "check that the device works, for example with python -m usm_dlpack devices");
  }
}

inline std::string name_of(const sycl::platform& platform) {
  return "the platform \"" +
         ask_runtime("context",
                     [&] { return platform.get_info<sycl::info::platform::name>(); }) +
         "\"";
}

USM_DLPACK_COLD inline void refuse_device_id(std::int32_t device_id, std::size_t count) {
  if (count == 0) {
    refuse(errc::no_device, "device.device_id", "a root device of this process", "none at all",
           "check ONEAPI_DEVICE_SELECTOR; install a driver, or make the one of the wheel "
           "intel-opencl-rt known by OCL_ICD_FILENAMES before the first device query");
  }
  const std::string last = std::to_string(count - 1);
  refuse(errc::device_id_out_of_range, "device.device_id",
         count == 1 ? "0 (the only root device in this process)"
                    : "from 0 to " + last + " (root devices in this process)",
         std::to_string(device_id), "check ONEAPI_DEVICE_SELECTOR");
}

USM_DLPACK_COLD inline void refuse_failed_device(std::size_t device_id,
                                                 const std::string& failure,
                                                 const char* field = "device.device_id") {
  refuse(errc::device_failed, field, "a device that the SYCL runtime can use",
         "device " + std::to_string(device_id) + ", for which it throws \"" + failure + "\"",
         "repair its driver or hide it with ONEAPI_DEVICE_SELECTOR");
}

USM_DLPACK_COLD inline void refuse_device_without_id(const char* field = "device") {
  refuse(errc::device_without_id, field,
         "a device whose root is in sycl::device::get_devices()", "one that is not",
         "check ONEAPI_DEVICE_SELECTOR");
}

inline const device_entry& working_device(std::int32_t device_id) {
  const device_table& table = device_table::get();
  const auto place = static_cast<std::size_t>(device_id);
  if (device_id < 0 || place >= table.devices.size()) {
    refuse_device_id(device_id, table.devices.size());
  }
  const device_entry& entry = table.devices[place];
  if (!entry.failure.empty()) {
    refuse_failed_device(place, entry.failure);
  }
  return entry;
}

inline const platform_entry& working_platform(std::int32_t device_id) {
  return device_table::get().platforms[working_device(device_id).platform];
}

/// The root device of a sub-device at any depth; a root device itself.
inline sycl::device root_of(sycl::device device) {
  while (device.get_info<sycl::info::device::partition_type_property>() !=
         sycl::info::partition_property::no_partition) {
    device = device.get_info<sycl::info::device::parent_device>();
  }
  return device;
}

}  // namespace detail

/// The name of a backend, as in ONEAPI_DEVICE_SELECTOR.
constexpr const char* to_string(sycl::backend backend) noexcept {
  // No switch: it would have to name each backend, of which each SYCL has others.
  return backend == sycl::backend::opencl                  ? "opencl"
         : backend == sycl::backend::ext_oneapi_level_zero ? "level_zero"
         : backend == sycl::backend::ext_oneapi_cuda       ? "cuda"
         : backend == sycl::backend::ext_oneapi_hip        ? "hip"
         : backend == sycl::backend::ext_oneapi_native_cpu ? "native_cpu"
                                                           : "unknown";
}

/// The DLPack device id: the position of the root device in `sycl::device::get_devices()`.
/// Valid within a process: it depends on ONEAPI_DEVICE_SELECTOR and the installed drivers.
/// @throws conversion_error `device_without_id`, `runtime_error`
inline std::int32_t device_id(const sycl::device& device) {
  const detail::device_table& table = detail::device_table::get();
  std::int32_t id = table.find(device);
  if (id < 0) {
    id = table.find(detail::ask_runtime("device", [&] { return detail::root_of(device); }));
  }
  if (id < 0) {
    detail::refuse_device_without_id();
  }
  return id;
}

/// The root device with an id.
/// @throws conversion_error `no_device`, `device_id_out_of_range`, `device_failed`
inline sycl::device root_device(std::int32_t device_id) {
  return detail::working_device(device_id).device;
}

/// The default context of a root device's platform. Exchanged memory must live in it.
inline sycl::context default_context(std::int32_t device_id) {
  return *detail::working_platform(device_id).context;
}

}  // namespace usm_dlpack
