// SPDX-License-Identifier: Apache-2.0
//
// For icpx, which compiles kernels.cpp here, with the extension. Source: the extension
// sycl_ext_oneapi_free_function_kernels.
#include "find_kernel.hpp"

#include "kernels.cpp"

#include <map>

namespace grid_kernels {
namespace {

template <auto* Function>
sycl::kernel built_kernel(const sycl::context& context) {
  constexpr auto executable = sycl::bundle_state::executable;
  auto bundle = syclexp::get_kernel_bundle<Function, executable>(context);
  return bundle.template ext_oneapi_get_kernel<Function>();
}

const std::map<std::string, sycl::kernel (*)(const sycl::context&)> kernels = {
    {"laplacian_float32", &built_kernel<laplacian_float32>},
    {"laplacian_int32", &built_kernel<laplacian_int32>},
    {"total_float32", &built_kernel<total_float32>},
    {"matmul_float32", &built_kernel<matmul_float32>},
};

}  // namespace

void set_kernel_source(const std::string&, const std::vector<std::string>&) {}

sycl::kernel find_kernel(const sycl::queue& queue, const std::string& name) {
  return kernels.at(name)(queue.get_context());
}

}  // namespace grid_kernels
