// SPDX-License-Identifier: Apache-2.0
//
// Opt-in, for programs that also use OpenCL: handles of SYCL objects, the SYCL context of a
// handle, and the export of USM that OpenCL code allocated (docs/how-to/opencl.md).
#pragma once

#include <usm_dlpack/opencl/interop.hpp>
#include <usm_dlpack/usm_dlpack.hpp>
