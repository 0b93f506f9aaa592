// SPDX-License-Identifier: Apache-2.0
//
// The core: needs neither SYCL nor a device. A new header of core/ is included here.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dlpack_tensor.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/mapping.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/to_dlpack.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>
#include <usm_dlpack/core/view.hpp>
