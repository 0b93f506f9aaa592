// SPDX-License-Identifier: Apache-2.0
//
// Root devices, their DLPack device ids and their default contexts, from the process's table.
#pragma once

#include <usm_dlpack/device_table.hpp>

#include <sycl/sycl.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

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

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_failed_device(
    std::int32_t device_id, const std::string& failure) {
  refuse(errc::device_failed, "device.device_id", "a device that the SYCL runtime can use",
         "device " + std::to_string(device_id) + ", for which it throws \"" + failure + "\"",
         "repair its driver or hide it with ONEAPI_DEVICE_SELECTOR");
}

/// The entry of a root device that works.
/// @throws conversion_error `no_device`, `device_id_out_of_range`, `device_failed`
inline const device_entry& working_device(std::int32_t device_id,
                                          const device_table& table = device_table::get()) {
  if (device_id < 0 || static_cast<std::size_t>(device_id) >= table.devices.size()) {
    refuse_device_id(device_id, table.devices.size());
  }
  const device_entry& entry = table.devices[static_cast<std::size_t>(device_id)];
  if (!entry.failure.empty()) {
    refuse_failed_device(device_id, entry.failure);
  }
  return entry;
}

/// The entry of its platform.
/// @throws conversion_error as `working_device`
inline const platform_entry& working_platform(std::int32_t device_id) {
  const device_table& table = device_table::get();
  return table.platforms[working_device(device_id, table).platform];
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
  return *detail::working_platform(device_id).context;
}

}  // namespace usm_dlpack
