// SPDX-License-Identifier: Apache-2.0
//
// Includes SYCL, which must be DPC++, and says whether the compiler makes kernels. What
// differs between versions of SYCL is decided here.
#pragma once

#if !__has_include(<sycl/sycl.hpp>)
#error sycl/sycl.hpp: expected the headers of DPC++, found none; \
with CMake link usm_dlpack::sycl_runtime, else compile with icpx or add -isystem
#endif
#include <sycl/sycl.hpp>

#if defined(SYCL_LANGUAGE_VERSION) && !defined(SYCL_KHR_DEFAULT_CONTEXT) && \
    !defined(SYCL_EXT_ONEAPI_DEFAULT_CONTEXT)
#error <sycl/sycl.hpp>: expected DPC++, which has default contexts, found another SYCL; \
use icpx or the wheel intel-sycl-rt
#endif

namespace usm_dlpack::detail {

/// Whether the compiler makes kernels: then it compiles their bodies in its host pass too.
#if defined(SYCL_LANGUAGE_VERSION)
inline constexpr bool makes_kernels = true;
#else
inline constexpr bool makes_kernels = false;
#endif

}  // namespace usm_dlpack::detail
