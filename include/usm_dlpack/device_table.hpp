// SPDX-License-Identifier: Apache-2.0
//
// Root devices, platforms, default contexts and the backends' own queries: one table, built on
// first use, in which a device that the runtime lists and cannot use takes its place and
// disturbs no other. A place in it is a device's DLPack id.
#pragma once

#include <usm_dlpack/error.hpp>
#include <usm_dlpack/level_zero_query.hpp>
#include <usm_dlpack/opencl_query.hpp>

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl_config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack::detail {

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
  sycl::backend backend = platform.get_backend();
  bool has_usm = true;  ///< SYCL's queries throw where there is none
  /// What the backend itself is asked by, found once: `get_native` costs microseconds. Without
  /// handles, SYCL is asked instead.
  opencl_platform opencl{};
  level_zero_platform level_zero{};
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
    for (std::size_t place = 0; place < platforms.size(); ++place) {
      find_handles_of(place);
    }
  }

  /// The process's table. Never destroyed: SYCL's own statics may be gone before ours. One for
  /// each program and each shared library that includes this header, also where its symbols
  /// are visible: another's may be of another version, and look otherwise.
  [[gnu::visibility("hidden")]] static const device_table& get() {
    static const device_table& table = make();
    return table;
  }

  /// The id of a root device of this process, or -1. @pre `device` is compared, never used
  /// @param first the id at which the search begins
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
      }
    } catch (const sycl::exception&) {  // as it was made: without handles
    }
  }
};

}  // namespace usm_dlpack::detail
