// SPDX-License-Identifier: Apache-2.0
//
// Refuses a SYCL other than DPC++, and defines which code this compiler pass makes. Include it
// right after <sycl/sycl.hpp>, whose feature macros it reads.
#pragma once

#if defined(SYCL_LANGUAGE_VERSION) && !defined(SYCL_KHR_DEFAULT_CONTEXT) && \
    !defined(SYCL_EXT_ONEAPI_DEFAULT_CONTEXT)
#error <sycl/sycl.hpp>: expected DPC++, which has default contexts, found another SYCL; \
use icpx or the wheel intel-sycl-rt
#endif

namespace usm_dlpack::detail {

/// Code made by a compiler pass. A function may be compiled in several.
enum class compiled_code {
  host,              ///< host code alone: kernels are built elsewhere
  host_and_kernels,  ///< host code, and kernel bodies that do not run
  device,            ///< device code
};

#if defined(__SYCL_DEVICE_ONLY__)
inline constexpr compiled_code this_pass = compiled_code::device;
#elif defined(SYCL_LANGUAGE_VERSION)
inline constexpr compiled_code this_pass = compiled_code::host_and_kernels;
#else
inline constexpr compiled_code this_pass = compiled_code::host;
#endif

}  // namespace usm_dlpack::detail
