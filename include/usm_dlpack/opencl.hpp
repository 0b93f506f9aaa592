// SPDX-License-Identifier: Apache-2.0
//
// Opt-in: what programs need that are OpenCL on one side. Handles of SYCL objects and of
// validated memory, SYCL objects of handles, and the export of USM that only OpenCL code
// knows.
#pragma once

#include <usm_dlpack/opencl_export.hpp>
#include <usm_dlpack/opencl_handle.hpp>
#include <usm_dlpack/opencl_interop.hpp>
#include <usm_dlpack/usm.hpp>
