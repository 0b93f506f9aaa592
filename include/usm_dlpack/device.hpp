// SPDX-License-Identifier: Apache-2.0
//
// Root devices, their DLPack device ids, platforms and default contexts: one table, built on
// first use, in which a device that the runtime lists and cannot use takes its place and
// disturbs no other.
#pragma once

#include <usm_dlpack/error.hpp>

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl_config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// Calls the runtime; what it throws becomes a `conversion_error` with the runtime's text.
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

template <class Platform, class = void>
inline constexpr bool has_khr_default_context = false;
template <class Platform>
inline constexpr bool has_khr_default_context<
    Platform, std::void_t<decltype(std::declval<Platform&>().khr_get_default_context())>> =
    true;

/// The context that every queue made from a device alone gets. Two spellings: the KHR one came
/// with DPC++ 2025.2, which deprecated the oneAPI one.
template <class Platform>
sycl::context default_context_of(const Platform& platform) {
  if constexpr (has_khr_default_context<Platform>) {
    return platform.khr_get_default_context();
  } else {
    return platform.ext_oneapi_get_default_context();
  }
}

struct platform_entry {
  sycl::platform platform;
  /// Null if the platform failed to make it. Not std::optional: SYCL's headers have compiled
  /// this template already.
  std::shared_ptr<sycl::context> context;
  std::int32_t first_device = 0;  ///< the lowest device id on the platform
  std::int32_t device_count = 0;  ///< root devices on the platform
};

struct device_entry {
  sycl::device device;
  std::size_t platform = 0;  ///< its place in `device_table::platforms`
  std::string failure;       ///< the runtime's text, if it cannot use the device
};

/// The root devices in the order of `sycl::device::get_devices()`: a device's place is its id.
struct device_table {
  std::vector<platform_entry> platforms;
  std::vector<device_entry> devices;

  static constexpr std::size_t no_platform = static_cast<std::size_t>(-1);

  device_table() {
    for (const sycl::device& device : sycl::device::get_devices()) {
      devices.push_back(device_entry{device, no_platform, {}});
      add_platform_of(devices.back());
    }
  }

  /// The process's table. Never destroyed: SYCL's own statics may be gone before ours. One for
  /// each extension module that includes this header, by choice.
  static const device_table& get() {
    static const device_table& table = make();
    return table;
  }

  /// The id of a root device of this process, or -1. @pre `device` is compared, never used
  std::int32_t find(const sycl::device& device) const noexcept {
    for (std::size_t id = 0; id < devices.size(); ++id) {
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
             "correct ONEAPI_DEVICE_SELECTOR, or repair the driver");
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
        sycl::context context = default_context_of(platform);
        platforms[place].context = std::make_shared<sycl::context>(context);
      }
    } catch (const sycl::exception& error) {
      entry.failure = error.what();
    }
  }
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_device_id(std::int32_t device_id,
                                                                    std::size_t count) {
  if (count == 0) {
    refuse(errc::no_device, "device.device_id", "a root device of this process", "none at all",
           "check ONEAPI_DEVICE_SELECTOR; install a driver, or make the one of the wheel "
           "intel-opencl-rt known by OCL_ICD_FILENAMES before the first device query");
  }
  refuse(errc::device_id_out_of_range, "device.device_id",
         "from 0 to " + std::to_string(count - 1) + " (root devices in this process)",
         std::to_string(device_id), "check ONEAPI_DEVICE_SELECTOR");
}

/// The entry of a root device that works.
/// @throws conversion_error `no_device`, `device_id_out_of_range`, `device_failed`
inline const device_entry& working_device(std::int32_t device_id) {
  const device_table& table = device_table::get();
  if (device_id < 0 || static_cast<std::size_t>(device_id) >= table.devices.size()) {
    refuse_device_id(device_id, table.devices.size());
  }
  const device_entry& entry = table.devices[static_cast<std::size_t>(device_id)];
  if (!entry.failure.empty()) {
    refuse(errc::device_failed, "device.device_id", "a device that the SYCL runtime can use",
           "device " + std::to_string(device_id) + ", for which it throws \"" + entry.failure +
               "\"",
           "repair its driver or hide it with ONEAPI_DEVICE_SELECTOR");
  }
  return entry;
}

/// The device that `device` is a part of, however often it was partitioned; itself if it is a
/// root.
inline sycl::device root_of(sycl::device device) {
  while (device.get_info<sycl::info::device::partition_type_property>() !=
         sycl::info::partition_property::no_partition) {
    device = device.get_info<sycl::info::device::parent_device>();
  }
  return device;
}

}  // namespace detail

/// The name of a backend, as in the filter strings of ONEAPI_DEVICE_SELECTOR.
constexpr const char* to_string(sycl::backend backend) noexcept {
  switch (backend) {
    case sycl::backend::opencl: return "opencl";
    case sycl::backend::ext_oneapi_level_zero: return "level_zero";
    case sycl::backend::ext_oneapi_cuda: return "cuda";
    case sycl::backend::ext_oneapi_hip: return "hip";
    case sycl::backend::ext_oneapi_native_cpu: return "native_cpu";
    default: return "unknown";
  }
}

namespace detail {

/// The backends that have a name here.
inline constexpr std::initializer_list<sycl::backend> known_backends = {
    sycl::backend::opencl, sycl::backend::ext_oneapi_level_zero,
    sycl::backend::ext_oneapi_cuda, sycl::backend::ext_oneapi_hip,
    sycl::backend::ext_oneapi_native_cpu};

}  // namespace detail

/// The DLPack device id: the position of the device's root in `sycl::device::get_devices()`.
/// Defined within a process only: ONEAPI_DEVICE_SELECTOR and the drivers found change it.
/// @throws conversion_error `device_without_id`, `runtime_error`
inline std::int32_t device_id(const sycl::device& device) {
  const detail::device_table& table = detail::device_table::get();
  std::int32_t id = table.find(device);
  if (id < 0) {
    id = table.find(detail::ask_runtime("device", [&] { return detail::root_of(device); }));
  }
  if (id < 0) {
    detail::refuse(errc::device_without_id, "device",
                   "a device whose root is in sycl::device::get_devices()", "one that is not",
                   "check ONEAPI_DEVICE_SELECTOR");
  }
  return id;
}

/// The root device of an id.
/// @throws conversion_error `no_device`, `device_id_out_of_range`, `device_failed`
inline sycl::device root_device(std::int32_t device_id) {
  return detail::working_device(device_id).device;
}

/// The default context of the platform of a root device, in which exchanged memory must live.
/// @throws conversion_error as `root_device`
inline sycl::context default_context(std::int32_t device_id) {
  return *detail::device_table::get()
              .platforms[detail::working_device(device_id).platform]
              .context;
}

}  // namespace usm_dlpack
