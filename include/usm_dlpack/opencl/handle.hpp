// SPDX-License-Identifier: Apache-2.0
//
// Owning handles of OpenCL devices, contexts and queues, and queries of them. OpenCL's library
// is found at run time, as the one that the SYCL runtime has loaded; nothing is linked.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/memory.hpp>

#include <CL/cl.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// The names of a handle type: in OpenCL's functions, as a field in refusals, and its own.
template <class Native>
struct opencl_names;
template <>
struct opencl_names<cl_device_id> {
  static constexpr const char *noun = "Device", *field = "device", *type = "cl_device_id";
};
template <>
struct opencl_names<cl_context> {
  static constexpr const char *noun = "Context", *field = "context", *type = "cl_context";
};
template <>
struct opencl_names<cl_command_queue> {
  static constexpr const char *noun = "CommandQueue", *field = "queue",
                              *type = "cl_command_queue";
};

/// The OpenCL functions of a handle type: `clGetDeviceInfo` and so on.
template <class Native>
struct opencl_functions {
  cl_int (*query)(Native, cl_uint, std::size_t, void*, std::size_t*) = nullptr;
  cl_int (*retain)(Native) = nullptr;
  cl_int (*release)(Native) = nullptr;

  /// Looked up on first use, and again on the next use if that failed.
  static const opencl_functions& get() {
    static const opencl_functions found = find();
    return found;
  }

 private:
  static opencl_functions find() {
    static_cast<void>(device_table::get());  // the SYCL runtime loads OpenCL, if at all, here
    opencl_functions made;
    const auto look_up = [](const std::string& name, auto& function) {
      return find_function("libOpenCL.so.1", name.c_str(), function);
    };
    const std::string noun = opencl_names<Native>::noun;
    if (!look_up("clGet" + noun + "Info", made.query) ||
        !look_up("clRetain" + noun, made.retain) ||
        !look_up("clRelease" + noun, made.release)) {
      refuse(errc::backend_not_accepted, "device",
             "libOpenCL.so.1 (1.2 or newer), loaded by the SYCL runtime", "no such library",
             "install an OpenCL driver, and let ONEAPI_DEVICE_SELECTOR show its devices");
    }
    return made;
  }
};

inline std::string name_of_opencl_error(cl_int status) {
  const char* name = status == CL_INVALID_DEVICE          ? "CL_INVALID_DEVICE"
                     : status == CL_INVALID_CONTEXT       ? "CL_INVALID_CONTEXT"
                     : status == CL_INVALID_COMMAND_QUEUE ? "CL_INVALID_COMMAND_QUEUE"
                                                          : "error";
  return std::string(name) + " (" + std::to_string(status) + ")";
}

template <class Native>
void check_answer(Native handle, cl_int status) {
  using names = opencl_names<Native>;
  if (status != CL_SUCCESS) {
    refuse(errc::runtime_error, names::field, std::string("a ") + names::type,
           handle == nullptr ? "null"
                             : "one for which OpenCL says " + name_of_opencl_error(status),
           "pass a handle that OpenCL made and that is not released");
  }
}

template <class Value, class Native>
Value ask_opencl(Native handle, cl_uint what) {
  Value value{};
  check_answer(handle, opencl_functions<Native>::get().query(handle, what, sizeof value,
                                                             &value, nullptr));
  return value;
}

inline std::vector<cl_device_id> devices_of(cl_context context) {
  std::vector<cl_device_id> devices(ask_opencl<cl_uint>(context, CL_CONTEXT_NUM_DEVICES));
  check_answer(context, opencl_functions<cl_context>::get().query(
                            context, CL_CONTEXT_DEVICES, devices.size() * sizeof(cl_device_id),
                            devices.data(), nullptr));
  return devices;
}

struct opencl_release {
  template <class Object>
  void operator()(Object* handle) const noexcept {
    opencl_functions<Object*>::get().release(handle);
  }
};

}  // namespace detail

/// Owns one reference to a `cl_device_id`, a `cl_context` or a `cl_command_queue`, or none.
///
/// Movable, not copyable. The destructor releases the reference (`clReleaseContext` and so
/// on), which must happen before the OpenCL driver is unloaded: do not make it a static
/// variable. Like a `std::unique_ptr`, an object is for one thread at a time.
template <class Native>
class opencl_handle {
 public:
  /// Owns nothing.
  opencl_handle() noexcept = default;

  /// Takes over a reference that the caller owns, such as that of `clCreateContext`; the count
  /// stays the same. Null is no reference. If this throws, the caller keeps the reference.
  /// @pre null, or a valid handle
  /// @throws conversion_error `backend_not_accepted` if the process has no OpenCL
  explicit opencl_handle(Native owned) {
    static_cast<void>(detail::opencl_functions<Native>::get());  // the destructor needs them
    handle_.reset(owned);
  }

  /// Adds a reference to a handle whose own reference the caller keeps.
  /// @pre null, or a valid handle
  /// @throws conversion_error `runtime_error` for null or a handle that OpenCL refuses;
  ///         `backend_not_accepted` if the process has no OpenCL
  [[nodiscard]] static opencl_handle retain(Native kept) {
    detail::check_answer(kept, detail::opencl_functions<Native>::get().retain(kept));
    return opencl_handle(kept);
  }

  /// The handle, valid as long as this object owns it; null if it owns none.
  Native get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Hands the reference to the caller, who must release it; the count stays the same.
  [[nodiscard]] Native release() noexcept { return handle_.release(); }

 private:
  std::unique_ptr<std::remove_pointer_t<Native>, detail::opencl_release> handle_;
};

}  // namespace usm_dlpack
