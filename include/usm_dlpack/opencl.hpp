// SPDX-License-Identifier: Apache-2.0
//
// Opt-in: what programs need that are OpenCL on one side. Handles of SYCL objects and of
// validated memory, SYCL objects of handles, and the export of USM that only OpenCL code
// knows, for example what clDeviceMemAllocINTEL(context.get(), device.get(), ...) gives after
//
//   const auto device = usm_dlpack::opencl_device(usm_dlpack::root_device(0));
//   const auto context = usm_dlpack::opencl_context(usm_dlpack::default_context(0));
//
// is exported, where `view` is an mdspan of it, by
//
//   const auto wrapper = usm_dlpack::to_dlpack_tensor(view, context.get(), device.get());
#pragma once

#include <usm_dlpack/opencl/handle.hpp>
#include <usm_dlpack/opencl/interop.hpp>
#include <usm_dlpack/usm_dlpack.hpp>
