// SPDX-License-Identifier: Apache-2.0
//
// DPC++'s kernel compiler, which is in the SYCL runtime, builds kernels.cpp once for each
// context and device, so the extension needs no SYCL compiler. Source:
// sycl_ext_oneapi_kernel_compiler.
#include "find_kernel.hpp"

#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>

namespace grid_kernels {
namespace {

namespace syclexp = sycl::ext::oneapi::experimental;
using kernels = sycl::kernel_bundle<sycl::bundle_state::executable>;

struct built_kernels {
  sycl::context context;
  sycl::device device;
  kernels bundle;
};

std::string source_file;
std::vector<std::string> compiler_options;

kernels build(const sycl::context& context, const sycl::device& device) {
  std::ifstream file(source_file);
  if (!file) {
    throw std::runtime_error(source_file +
                             ": expected the kernels, found no file to read; "
                             "install the package again");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto source =
      syclexp::create_kernel_bundle_from_source(context, syclexp::source_language::sycl, text);
  std::string log;
  const syclexp::properties how{syclexp::build_options{compiler_options},
                                syclexp::save_log{&log}};
  kernels built = syclexp::build(source, {device}, how);
  // What a device cannot run is built all the same, and only told in the log.
  if (!log.empty()) {
    throw std::runtime_error(source_file + ": expected an empty build log, found " + log +
                             "; correct the kernels");
  }
  return built;
}

}  // namespace

void set_kernel_source(const std::string& file,
                       const std::vector<std::string>& include_folders) {
  source_file = file;
  compiler_options = {"-std=c++17", "-DMDSPAN_IMPL_STANDARD_NAMESPACE=Kokkos",
                      "-DMDSPAN_IMPL_PROPOSED_NAMESPACE=Experimental"};
  for (const std::string& folder : include_folders) {
    compiler_options.push_back("-I" + folder);
  }
}

sycl::kernel find_kernel(const sycl::queue& queue, const std::string& name) {
  // Never destroyed: at the end of the process the runtime may go first.
  static auto& all = *new std::vector<built_kernels>;
  static std::mutex mutex;
  const sycl::context context = queue.get_context();
  const sycl::device device = queue.get_device();
  const std::lock_guard lock(mutex);
  for (built_kernels& known : all) {
    if (known.context == context && known.device == device) {
      return known.bundle.ext_oneapi_get_kernel(name);
    }
  }
  all.push_back({context, device, build(context, device)});
  return all.back().bundle.ext_oneapi_get_kernel(name);
}

}  // namespace grid_kernels
