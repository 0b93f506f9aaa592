// SPDX-License-Identifier: Apache-2.0
//
// Both protocols of exchanging USM over DLPack, and the device map that they share.
#pragma once

#include <usm_dlpack/core.hpp>
#include <usm_dlpack/device.hpp>
#include <usm_dlpack/sycl_dtype.hpp>
#include <usm_dlpack/usm_export.hpp>
#include <usm_dlpack/usm_import.hpp>
