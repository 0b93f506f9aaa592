// SPDX-License-Identifier: Apache-2.0
//
// Kernels for host programs whose compiler has no SYCL: DPC++'s kernel compiler, which is in
// the SYCL runtime, builds them from source at run time. With icpx nothing of this is needed.
#pragma once

#include <sycl/sycl.hpp>
#include <usm_dlpack/sycl/config.hpp>

#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace usm_dlpack {

/// SYCL source with kernels, built once for each context and device that asks.
///
/// A build takes seconds; where standard error is a terminal, it says so there. The
/// environment variable `SYCL_CACHE_PERSISTENT=1` keeps on disk what was built. A kernel is a
/// free function `extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<Dimensions>))
/// void name(...)`, launched with `handler::set_args` and `parallel_for`. Its arguments may be
/// views, if the build options name the folders of the headers.
///
/// Several threads may use it at once. In Python hold it for the life of the process: a
/// `static` reference to one made by `new`, because the runtime may end before statics do.
/// Source: the extension sycl_ext_oneapi_kernel_compiler.
class kernel_source {
 public:
  /// @param text the source, with its `#include <sycl/sycl.hpp>`
  /// @param build_options as for a compiler: `-I<folder>`, `-D<macro>`, `-std=c++17`
  explicit kernel_source(std::string text, std::vector<std::string> build_options = {})
      : text_(std::move(text)), build_options_(std::move(build_options)) {}

  kernel_source(const kernel_source&) = delete;
  kernel_source& operator=(const kernel_source&) = delete;

  /// The kernel of a function for a queue's context and device. The first call for them builds
  /// all kernels of the source.
  /// @throws sycl::exception errc::build with the compiler's log, errc::invalid for a name
  /// that
  ///         the source does not have, and what else the runtime throws
  sycl::kernel find(const sycl::queue& queue, const std::string& name) {
    kernels built = find_built(queue.get_context(), queue.get_device());
    if (!built.ext_oneapi_has_kernel(name)) {
      throw sycl::exception(make_error_code(sycl::errc::invalid),
                            "name: expected a kernel of the source, found \"" + name +
                                "\"; correct it, or declare the kernel extern \"C\"");
    }
    return built.ext_oneapi_get_kernel(name);
  }

 private:
  using kernels = sycl::kernel_bundle<sycl::bundle_state::executable>;

  struct built_kernels {
    sycl::context context;
    sycl::device device;
    kernels bundle;
  };

  kernels find_built(const sycl::context& context, const sycl::device& device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const built_kernels& known : built_) {
      if (known.context == context && known.device == device) {
        return known.bundle;
      }
    }
    built_.push_back({context, device, build(context, device)});
    return built_.back().bundle;
  }

  kernels build(const sycl::context& context, const sycl::device& device) const {
    namespace experimental = sycl::ext::oneapi::experimental;
    const bool watched = isatty(STDERR_FILENO) == 1;
    if (watched) {
      std::fprintf(stderr, "building kernels for %s: takes seconds, once\n",
                   device.get_info<sycl::info::device::name>().c_str());
    }
    auto source = experimental::create_kernel_bundle_from_source(
        context, experimental::source_language::sycl, text_);
    return experimental::build(
        source, {device},
        experimental::properties{experimental::build_options{build_options_}});
  }

  std::string text_;
  std::vector<std::string> build_options_;
  std::mutex mutex_;
  std::vector<built_kernels> built_;
};

}  // namespace usm_dlpack
