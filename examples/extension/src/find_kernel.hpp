// SPDX-License-Identifier: Apache-2.0
//
// Kernels by name, compiled when they are first needed.
#pragma once

#include <sycl/sycl.hpp>

#include <string>
#include <vector>

namespace grid_kernels {

/// Says where kernels.cpp is installed, and the folders of the headers that it includes.
void set_kernel_source(const std::string& file,
                       const std::vector<std::string>& include_folders);

/// A function of kernels.cpp as a kernel for the context and device of a queue.
/// @throws std::runtime_error, sycl::exception if it cannot be built
sycl::kernel find_kernel(const sycl::queue& queue, const std::string& name);

}  // namespace grid_kernels
