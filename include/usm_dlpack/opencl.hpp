// SPDX-License-Identifier: Apache-2.0
//
// Opt-in, for programs that also use OpenCL: handles of SYCL objects and of validated memory,
// SYCL objects of handles, and the export of USM that only OpenCL code knows
// (docs/how-to/opencl.md).
#pragma once

#include <usm_dlpack/opencl/handle.hpp>
#include <usm_dlpack/opencl/interop.hpp>
#include <usm_dlpack/usm_dlpack.hpp>
