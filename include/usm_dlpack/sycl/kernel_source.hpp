// SPDX-License-Identifier: Apache-2.0
//
// Kernels for host programs whose compiler has no SYCL: DPC++'s kernel compiler, which is part
// of the SYCL runtime, builds them from source at run time. With icpx you do not need it.
#pragma once

#include <usm_dlpack/sycl/config.hpp>

#include <unistd.h>

#include <cstdio>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace usm_dlpack {

/// SYCL source with kernels, built once for each context and device that it is used with.
///
/// A build takes seconds; the first one says so if standard error is a terminal. The
/// environment variable `SYCL_CACHE_PERSISTENT=1` keeps builds on disk. A kernel is a free
/// function `extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<Dimensions>)) void
/// name(...)`, launched with `handler::set_args` and `parallel_for`. Its arguments may be
/// views, if the build options name the folders of the headers. `set_args` must get exactly
/// the types of the kernel's parameters: the error for another size does not name the
/// argument, and another type of the same size is no error.
///
/// Several threads may use it at once; those that need the same build wait for it. Make it
/// `static`: the source, the builds and their contexts are never freed, because at the end of
/// a process the runtime may go first. Copies share all of them. Source: the extension
/// sycl_ext_oneapi_kernel_compiler.
class kernel_source {
 public:
  /// @param text the source, with its `#include <sycl/sycl.hpp>`
  /// @param build_options as for a compiler: `-I<folder>`, `-D<macro>`, `-std=c++17`
  explicit kernel_source(std::string text, std::vector<std::string> build_options = {})
      : kept_(*new kept{std::move(text), std::move(build_options), {}, {}}) {}

  /// Finds the kernel of a function, for a queue's context and device. The first call for them
  /// builds all kernels of the source; if that fails, the next call builds again. In Python,
  /// release the GIL.
  /// @throws sycl::exception errc::build with the compiler's log, errc::invalid for a name
  ///         that the source does not have, and whatever else the runtime throws
  sycl::kernel find(const sycl::queue& queue, const std::string& name) const {
    target& here = find_target(queue);
    const std::lock_guard<std::mutex> lock(here.building);
    if (const auto known = here.found.find(name); known != here.found.end()) {
      return known->second;
    }
    if (!here.built) {
      here.built = build(here);
    }
    if (!here.built->ext_oneapi_has_kernel(name)) {
      throw sycl::exception(make_error_code(sycl::errc::invalid),
                            "name: expected a kernel of the source, found \"" + name +
                                "\"; correct it, or declare the kernel extern \"C\"");
    }
    return here.found.emplace(name, here.built->ext_oneapi_get_kernel(name)).first->second;
  }

 private:
  using kernels = sycl::kernel_bundle<sycl::bundle_state::executable>;

  struct target {
    explicit target(const sycl::queue& queue)
        : context(queue.get_context()), device(queue.get_device()) {}

    sycl::context context;
    sycl::device device;
    std::mutex building;
    std::optional<kernels> built;
    /// One object for each kernel: DPC++ locks a kernel's arguments by its object, but all
    /// objects of one name share the arguments (DPC++ 2026.2).
    std::map<std::string, sycl::kernel> found;
  };

  struct kept {
    std::string text;
    std::vector<std::string> build_options;
    std::mutex adding;
    std::list<target> targets;
  };

  target& find_target(const sycl::queue& queue) const {
    const std::lock_guard<std::mutex> lock(kept_.adding);
    for (target& known : kept_.targets) {
      if (known.context == queue.get_context() && known.device == queue.get_device()) {
        return known;
      }
    }
    if (kept_.targets.empty() && isatty(STDERR_FILENO) == 1) {
      std::fputs("SYCL kernels are built from source: the first build takes seconds\n",
                 stderr);
    }
    return kept_.targets.emplace_back(queue);
  }

  kernels build(const target& here) const {
    namespace experimental = sycl::ext::oneapi::experimental;
    auto source = experimental::create_kernel_bundle_from_source(
        here.context, experimental::source_language::sycl, kept_.text);
    return experimental::build(
        source, {here.device},
        experimental::properties{experimental::build_options{kept_.build_options}});
  }

  kept& kept_;
};

}  // namespace usm_dlpack
