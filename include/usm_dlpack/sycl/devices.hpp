// SPDX-License-Identifier: Apache-2.0
//
// The table of root devices, their platforms and default contexts, built on first use. A
// device's position is its DLPack id; a device that fails does not affect the others. Which
// devices have ids, and which, is decided only here.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/sycl/backends.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

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

struct platform_entry {
  sycl::platform platform;
  std::optional<sycl::context> context;  ///< the default context; none if making it failed
  std::int32_t first_device = 0;         ///< the lowest device id on the platform
  std::int32_t device_count = 0;         ///< root devices on the platform
  sycl::backend backend = platform.get_backend();
  std::shared_ptr<const backend_queries> queries{};  ///< null if there is no context
};

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
    for (std::size_t index = 0; index < platforms.size(); ++index) {
      find_queries_of(index);
    }
    is_made_ = true;
  }

  /// Whether the table is built, and its devices are known.
  static bool is_made() noexcept { return is_made_; }

  /// The table, built on first use. Never destroyed, because SYCL's statics may be destroyed
  /// before it. Each program and shared library has its own, because another may use another
  /// version of this header.
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

  /// The ordinal by which CUDA knows a root device, or -1.
  std::int32_t cuda_ordinal(std::int32_t device_id) const noexcept {
    const std::size_t platform = devices[static_cast<std::size_t>(device_id)].platform;
    const bool works = platform < platforms.size() && platforms[platform].queries != nullptr;
    return works ? platforms[platform].queries->cuda_ordinal(device_id) : -1;
  }

 private:
  [[gnu::visibility("hidden")]] static inline std::atomic<bool> is_made_{false};

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
      std::size_t index = 0;
      while (index < platforms.size() && platforms[index].platform != platform) {
        ++index;
      }
      if (index == platforms.size()) {
        const auto id = static_cast<std::int32_t>(devices.size() - 1);
        platforms.push_back(platform_entry{platform, std::nullopt, id, 0});
      }
      entry.platform = index;
      ++platforms[index].device_count;
      if (!platforms[index].context) {
        platforms[index].context = default_context_of(platform, 0);
      }
    } catch (const sycl::exception& error) {
      entry.failure = error.what();
    }
  }

  void find_queries_of(std::size_t index) {
    platform_entry& entry = platforms[index];
    if (!entry.context) {
      return;
    }
    std::vector<const sycl::device*> roots(devices.size());
    for (std::size_t id = 0; id < devices.size(); ++id) {
      const bool works_here = devices[id].platform == index && devices[id].failure.empty();
      roots[id] = works_here ? &devices[id].device : nullptr;
    }
    entry.queries = make_queries({entry.platform, *entry.context, std::move(roots)});
  }
};

/// Runs a query of the runtime, and turns its exception into a `conversion_error`.
template <class Query>
auto with_runtime_errors(const char* field, Query&& query) -> decltype(query()) {
  try {
    return query();
  } catch (const sycl::exception& error) {
    refuse(errc::runtime_error, field, "an answer of the SYCL runtime",
           std::string("the exception \"") + error.what() + "\"",
           "check that the device works, for example with python -m usm_dlpack");
  }
}

inline std::string platform_name(const sycl::platform& platform) {
  return "the platform \"" +
         with_runtime_errors("context",
                             [&] { return platform.get_info<sycl::info::platform::name>(); }) +
         "\"";
}

USM_DLPACK_COLD inline void refuse_device_id(std::int32_t device_id, std::size_t count) {
  if (count == 0) {
    refuse(
        errc::no_device, "device.device_id", "a root device of this process", "none at all",
        "install a driver, correct what hides it, such as ONEAPI_DEVICE_SELECTOR (python -m "
        "usm_dlpack finds it), or start a C++ program with "
        "OCL_ICD_FILENAMES=<folder of libsycl.so>/libintelocl.so");
  }
  const std::string last = std::to_string(count - 1);
  refuse(errc::no_device, "device.device_id",
         count == 1 ? "0 (the only root device in this process)"
                    : "from 0 to " + last + " (root devices in this process)",
         std::to_string(device_id),
         device_id < 0 ? "give the id of a root device"
                       : "give an id of this process, or check ONEAPI_DEVICE_SELECTOR");
}

USM_DLPACK_COLD inline void refuse_failed_device(std::size_t device_id,
                                                 const std::string& failure) {
  refuse(errc::no_device, "device.device_id", "a device that the SYCL runtime can use",
         "device " + std::to_string(device_id) + ", for which it throws \"" + failure + "\"",
         "repair its driver or hide it with ONEAPI_DEVICE_SELECTOR");
}

USM_DLPACK_COLD inline void refuse_device_without_id() {
  refuse(errc::device_without_id, "device",
         "a device whose root is in sycl::device::get_devices()", "one that is not",
         "check ONEAPI_DEVICE_SELECTOR");
}

inline const device_entry& working_device(std::int32_t device_id) {
  const device_table& table = device_table::get();
  const auto index = static_cast<std::size_t>(device_id);
  if (device_id < 0 || index >= table.devices.size()) {
    refuse_device_id(device_id, table.devices.size());
  }
  const device_entry& entry = table.devices[index];
  if (!entry.failure.empty()) {
    refuse_failed_device(index, entry.failure);
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

/// The id of the root device that CUDA knows by an ordinal, or -1.
inline std::int32_t find_cuda_device(std::int32_t ordinal) {
  const device_table& table = device_table::get();
  for (std::int32_t id = 0; static_cast<std::size_t>(id) < table.devices.size(); ++id) {
    if (ordinal >= 0 && table.cuda_ordinal(id) == ordinal) {
      return id;
    }
  }
  return -1;
}

inline bool has_cuda_devices() {
  const device_table& table = device_table::get();
  for (std::int32_t id = 0; static_cast<std::size_t>(id) < table.devices.size(); ++id) {
    if (table.cuda_ordinal(id) >= 0) {
      return true;
    }
  }
  return false;
}

/// The id of the root device that a tensor names. Only this function decides which device
/// types an import accepts without a copy. The id of kDLOneAPI is returned unchecked.
inline std::int32_t id_named_by(const DLDevice& device) {
  if (!is_cuda(device.device_type)) {
    check_device_type(device);
    return device.device_id;
  }
  const std::int32_t id = find_cuda_device(device.device_id);
  if (id < 0) {
    refuse(errc::device_type_unsupported, "device.device_type",
           "kDLOneAPI (14), or CUDA memory of a GPU that is a SYCL device of this process",
           device_type_name(static_cast<std::int32_t>(device.device_type)) +
               " of CUDA device " + digits(device.device_id) + ", which is none",
           "use that GPU by SYCL's backend cuda, or copy the array to the host first");
  }
  return id;
}

}  // namespace detail

/// The DLPack device id: the position of the root device in `sycl::device::get_devices()`.
/// Valid within a process: it depends on ONEAPI_DEVICE_SELECTOR and the installed drivers.
/// @throws conversion_error `device_without_id`, `runtime_error`
inline std::int32_t device_id(const sycl::device& device) {
  const detail::device_table& table = detail::device_table::get();
  std::int32_t id = table.find(device);
  if (id < 0) {
    id = table.find(
        detail::with_runtime_errors("device", [&] { return detail::root_of(device); }));
  }
  if (id < 0) {
    detail::refuse_device_without_id();
  }
  return id;
}

/// The root device with an id.
/// @throws conversion_error `no_device`, `runtime_error`
inline sycl::device root_device(std::int32_t device_id) {
  return detail::working_device(device_id).device;
}

/// The default context of a root device's platform. Exchanged memory must live in it.
inline sycl::context default_context(std::int32_t device_id) {
  return *detail::working_platform(device_id).context;
}

/// The root device with an id, as CUDA code names it: kDLCUDA and the ordinal. Pass it to
/// `to_dlpack_tensor(view, device)` to describe USM of any kind for CUDA code, which uses the
/// same address. The caller must order CUDA's stream behind the queue's work.
/// @throws conversion_error `device_not_accepted` for a device of another backend than CUDA,
///         and as `root_device`
inline DLDevice cuda_device(std::int32_t device_id) {
  const detail::platform_entry& entry = detail::working_platform(device_id);
  const std::int32_t ordinal = detail::device_table::get().cuda_ordinal(device_id);
  if (ordinal < 0) {
    detail::refuse(errc::device_not_accepted, "device.device_id",
                   "a device of the backend cuda",
                   "device " + std::to_string(device_id) + " of the backend " +
                       usm_dlpack::to_string(entry.backend),
                   "copy the array to a device of the backend cuda, or to the host");
  }
  return {kDLCUDA, ordinal};
}

/// The id of the root device that a DLDevice names: kDLOneAPI by its id; kDLCUDA, kDLCUDAHost
/// and kDLCUDAManaged by CUDA's ordinal.
/// @throws conversion_error `device_type_unsupported` for other types, and for a GPU that is
///         not a SYCL device of this process; as `root_device`
inline std::int32_t device_id(const DLDevice& device) {
  const std::int32_t id = detail::id_named_by(device);
  detail::working_device(id);
  return id;
}

}  // namespace usm_dlpack
