// SPDX-License-Identifier: Apache-2.0
//
// What Level Zero itself knows of a pointer: base and size, which no SYCL query tells. (The
// device is SYCL's to tell: its Level Zero adapter asks the driver.) The library is found at
// run time, and its one function declared by hand, so that neither is needed to build or to
// run.
#pragma once

#include <dlfcn.h>
#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl_config.hpp>

#include <cstddef>
#include <cstdint>

namespace usm_dlpack::detail {

/// The Level Zero context behind a platform's default context, and the query that SYCL lacks.
struct level_zero_platform {
  /// `ze_result_t zeMemGetAddressRange(ze_context_handle_t, const void*, void**, size_t*)`,
  /// whose result is 0 for success. Source: Level Zero specification 1.0, "Memory".
  using query_type = int (*)(ze_context_handle_t, const void*, void**, std::size_t*);

  ze_context_handle_t context = nullptr;
  query_type query = nullptr;  ///< null: not Level Zero

  /// Base address and size in bytes of the allocation that holds `pointer`; false if unknown.
  bool get_range(const void* pointer, std::uintptr_t& base, std::size_t& size) const noexcept {
    void* start = nullptr;
    const bool known = query(context, pointer, &start, &size) == 0;
    base = reinterpret_cast<std::uintptr_t>(start);
    return known;
  }
};

/// Finds the query through the Level Zero loader that the SYCL runtime has loaded already.
/// @pre the context is of the backend ext_oneapi_level_zero
inline level_zero_platform make_level_zero_platform(const sycl::context& context) {
  level_zero_platform made;
  void* loader = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (loader != nullptr) {
    made.query = reinterpret_cast<level_zero_platform::query_type>(
        dlsym(loader, "zeMemGetAddressRange"));
    made.context = sycl::get_native<sycl::backend::ext_oneapi_level_zero>(context);
  }
  return made;
}

}  // namespace usm_dlpack::detail
