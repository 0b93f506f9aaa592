// SPDX-License-Identifier: Apache-2.0
//
// Opt-in, for programs that also use OpenCL: handles of SYCL objects and of validated memory,
// SYCL objects of handles, and the export of USM that only OpenCL code knows. For example,
// memory of clDeviceMemAllocINTEL(context.get(), device.get(), ...) with
//
//   const auto device = usm_dlpack::opencl_device(usm_dlpack::root_device(0));
//   const auto context = usm_dlpack::opencl_context(usm_dlpack::default_context(0));
//
// is exported through an mdspan `view` of it by
//
//   const auto wrapper = usm_dlpack::to_dlpack_tensor(view, context.get(), device.get());
#pragma once

#include <usm_dlpack/opencl/handle.hpp>
#include <usm_dlpack/opencl/interop.hpp>
#include <usm_dlpack/usm_dlpack.hpp>
