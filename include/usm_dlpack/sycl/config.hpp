// SPDX-License-Identifier: Apache-2.0
//
// Refuses a SYCL that is not DPC++, in words, and says which code this pass of the compiler
// makes: to be included right after <sycl/sycl.hpp>, whose feature macros it reads.
// (config.hpp cannot: they do not exist before.)
#pragma once

#if defined(SYCL_LANGUAGE_VERSION) && !defined(SYCL_KHR_DEFAULT_CONTEXT) && \
    !defined(SYCL_EXT_ONEAPI_DEFAULT_CONTEXT)
#error <sycl/sycl.hpp>: expected DPC++, which has default contexts, found another SYCL; \
use icpx or the wheel intel-sycl-rt
#endif

namespace usm_dlpack::detail {

/// What a compiler's pass over a source makes. The same function may be compiled in several.
enum class compiled_code {
  host,              ///< code of the host alone: kernels stand elsewhere
  host_and_kernels,  ///< code of the host; the bodies of kernels are seen too, and not run
  device,            ///< code of a device
};

#if defined(__SYCL_DEVICE_ONLY__)
inline constexpr compiled_code this_pass = compiled_code::device;
#elif defined(SYCL_LANGUAGE_VERSION)
inline constexpr compiled_code this_pass = compiled_code::host_and_kernels;
#else
inline constexpr compiled_code this_pass = compiled_code::host;
#endif

}  // namespace usm_dlpack::detail
