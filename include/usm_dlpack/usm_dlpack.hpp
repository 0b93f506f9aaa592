// SPDX-License-Identifier: Apache-2.0
//
// The core and all that needs SYCL: export and import of USM, device ids, views and arrays
// with a USM kind, and kernels built at run time. A new header of sycl/ for users is included
// here.
#pragma once

#include <usm_dlpack/core.hpp>
#include <usm_dlpack/sycl/accessor.hpp>
#include <usm_dlpack/sycl/backends.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/devices.hpp>
#include <usm_dlpack/sycl/dtype.hpp>
#include <usm_dlpack/sycl/kernel_source.hpp>
#include <usm_dlpack/sycl/memory.hpp>
#include <usm_dlpack/sycl/ordered_section.hpp>
#include <usm_dlpack/sycl/queues.hpp>
#include <usm_dlpack/sycl/to_dlpack.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>
#include <usm_dlpack/sycl/validate.hpp>
