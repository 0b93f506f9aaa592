// SPDX-License-Identifier: Apache-2.0
//
// Everything that needs neither SYCL nor a device.
#pragma once

#include <usm_dlpack/config.hpp>
#include <usm_dlpack/dlpack_tensor.hpp>
#include <usm_dlpack/dtype.hpp>
#include <usm_dlpack/error.hpp>
#include <usm_dlpack/layout.hpp>
#include <usm_dlpack/managed.hpp>
#include <usm_dlpack/relaxed_layout.hpp>
#include <usm_dlpack/structure.hpp>
#include <usm_dlpack/to_dlpack.hpp>
#include <usm_dlpack/to_mdspan.hpp>
#include <usm_dlpack/view.hpp>
