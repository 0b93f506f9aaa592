// SPDX-License-Identifier: Apache-2.0
//
// Both protocols of exchanging USM over DLPack, the device map that they share, and the views
// and arrays that know their USM kind.
#pragma once

#include <usm_dlpack/core.hpp>
#include <usm_dlpack/device.hpp>
#include <usm_dlpack/sycl_dtype.hpp>
#include <usm_dlpack/usm_accessor.hpp>
#include <usm_dlpack/usm_array.hpp>
#include <usm_dlpack/usm_export.hpp>
#include <usm_dlpack/usm_import.hpp>
#include <usm_dlpack/usm_mdspan.hpp>
