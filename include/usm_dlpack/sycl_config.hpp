// SPDX-License-Identifier: Apache-2.0
//
// Refuses a SYCL that is not DPC++, in words: to be included right after <sycl/sycl.hpp>,
// whose feature macros it reads. (config.hpp cannot: they do not exist before.)
#pragma once

#if defined(SYCL_LANGUAGE_VERSION) && !defined(SYCL_KHR_DEFAULT_CONTEXT) && \
    !defined(SYCL_EXT_ONEAPI_DEFAULT_CONTEXT)
#error <sycl/sycl.hpp>: expected DPC++, which has default contexts, found another SYCL; \
use icpx or the wheel intel-sycl-rt
#endif
