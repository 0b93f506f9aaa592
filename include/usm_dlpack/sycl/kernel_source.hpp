// SPDX-License-Identifier: Apache-2.0
//
// Kernels for host programs whose compiler has no SYCL: DPC++'s kernel compiler, which is part
// of the SYCL runtime, builds them from source at run time. With icpx you do not need it. What
// a launch orders and waits for is in ordered_section.hpp; here are only builds, ranges and
// arguments.
#pragma once

#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/ordered_section.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

template <class Argument>
inline constexpr bool is_array = has_queue<Argument> || is_view<Argument>;

/// Whether an argument is an address without a size: a pointer, a C array, or nullptr.
template <class Argument>
inline constexpr bool is_address =
    std::is_pointer_v<std::decay_t<Argument>> || std::is_null_pointer_v<Argument>;

/// A tuple of a kernel's argument if it is an array; otherwise an empty tuple.
template <class Argument>
auto array_of_argument(const Argument& argument) {
  if constexpr (is_array<Argument>) {
    return std::tie(argument);
  } else {
    return std::tuple<>();
  }
}

/// The value for a kernel's parameter: the pointer of an array, or the argument itself.
template <class Argument>
auto value_of_argument(const Argument& argument) {
  if constexpr (is_array<Argument>) {
    const auto& view = memory_of_argument(argument);
    static_assert(
        mapping_of<std::decay_t<decltype(view)>>::is_always_exhaustive(),
        "argument: expected a view without gaps (layout_right or layout_left), found one with "
        "strides, which its pointer does not tell the kernel; pass data_handle() and the "
        "strides in an ordered_section");
    return view.data_handle();
  } else {
    return argument;
  }
}

/// Divides the last dimension into groups of 64 work-items, or fewer if there are not as many
/// or the limit is lower, and rounds it up to whole groups.
template <class Get, std::size_t... Ranks>
auto in_groups(const Get& get, std::size_t limit, std::index_sequence<Ranks...>) {
  constexpr int dimensions = sizeof...(Ranks);
  sycl::range<dimensions> items(static_cast<std::size_t>(to_extent(get(Ranks), Ranks))...);
  sycl::range<dimensions> group((static_cast<void>(Ranks), std::size_t{1})...);
  std::size_t& last = items[dimensions - 1];
  const std::size_t size = std::clamp<std::size_t>(last, 1, std::min<std::size_t>(limit, 64));
  group[dimensions - 1] = size;
  last = (last + size - 1) / size * size;
  return sycl::nd_range<dimensions>(items, group);
}

/// The range of a launch: of a number or of extents in groups; others as they are.
/// @param limit the most work-items in a group
template <class Range>
auto range_of_launch(const Range& range, std::size_t limit) {
  if constexpr (std::is_integral_v<Range>) {
    return in_groups([&](std::size_t) { return range; }, limit, std::make_index_sequence<1>());
  } else if constexpr (has_extents<Range>) {
    return in_groups([&](std::size_t r) { return range.extent(r); }, limit,
                     std::make_index_sequence<Range::rank()>());
  } else {
    return range;
  }
}

template <int Dimensions>
bool has_no_items(const sycl::range<Dimensions>& range) {
  bool any = false;
  for (int r = 0; r < Dimensions; ++r) {
    any = any || range[r] == 0;
  }
  return any;
}
template <int Dimensions>
bool has_no_items(const sycl::nd_range<Dimensions>& range) {
  return has_no_items(range.get_global_range());
}

}  // namespace detail

/// SYCL source with kernels, built once for each context and device that it is used with.
///
/// A kernel is a free function `extern "C"
/// SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<Dimensions>)) void name(...)`. A build
/// takes seconds. The environment variable `SYCL_CACHE_PERSISTENT=1` keeps builds on disk.
///
/// Several threads may use it at once; those that need the same build wait for it. Make it
/// `static`: the source, the builds and their contexts are never freed, because at process
/// exit the runtime may be destroyed before them. Copies share all of them. Source: the
/// extension sycl_ext_oneapi_kernel_compiler.
class kernel_source {
 public:
  /// @param text the source, with its `#include <sycl/sycl.hpp>`
  /// @param build_options as for a compiler: `-I<folder>`, `-D<macro>`, `-std=c++17`
  explicit kernel_source(std::string text, std::vector<std::string> build_options = {})
      : source_(*new source{std::move(text), std::move(build_options), {}, {}}) {}

  /// Launches a kernel, in order: as if the call stood in an `ordered_section` of the queue
  /// and the arrays among the arguments. So the queue is checked against them, and the kernel
  /// is done on return. While the queue records a graph, the kernel is recorded, and nothing
  /// waits.
  ///
  /// A view, an `owned_view` or a `usm_array` is passed as its pointer (`data_handle()`). Any
  /// other argument is passed as it is. Each must have exactly its parameter's type (`int` is
  /// not `long`): only their number is checked, on OpenCL and Level Zero. A pointer does not
  /// compile, because nothing could check or order its memory: launch in an `ordered_section`
  /// of the arrays. Nor does a view with strides, because its pointer does not tell them.
  ///
  /// @param range the work-items to run, in as many dimensions as the kernel declares. Of a
  ///        number, or mdspan's extents, the last dimension is rounded up to whole groups of
  ///        64, or of the kernel's limit if that is lower: the kernel must return if its last
  ///        index is not below it. Up to one group is exact, and so are the other dimensions.
  ///        A `sycl::range` or `sycl::nd_range` is used as it is. A single-task kernel gets 1,
  ///        which nothing checks. If a dimension is 0, nothing is launched.
  ///        For more than 2^31 - 1 work-items, rounded up, the kernel needs the build option
  ///        `-fno-sycl-id-queries-fit-in-int`.
  /// @returns the kernel's event, complete if nothing was launched
  /// @throws conversion_error as `check_queue`, `out_of_range`; sycl::exception as
  ///         `find`, errc::kernel_argument for another number of arguments than the kernel has
  ///         parameters, what the runtime throws for the launch, and of a failed command
  template <class Range, class... Arguments>
  sycl::event launch(const sycl::queue& queue, const std::string& name, const Range& range,
                     const Arguments&... arguments) const {
    static_assert((!detail::is_address<Arguments> && ...),
                  "argument: expected an array or a value, found a pointer, whose memory "
                  "launch cannot check or order; pass the view, or an ordered_section of its "
                  "arrays in place of the queue");
    const auto arrays = std::tuple_cat(detail::array_of_argument(arguments)...);
    ordered_section work = std::apply(
        [&](const auto&... array) { return ordered_section(queue, array...); }, arrays);
    return submit(work, name, range, arguments...);
  }

  /// Launches a kernel in a section, without waiting for it: for functions that launch
  /// several. They run one after another, and after what the function itself submitted to the
  /// queue before; on an out-of-order queue the host waits for that. Adds arrays that the
  /// section does not have yet. A pointer is passed as it is: its array must be one of the
  /// section.
  template <class Range, class... Arguments>
  sycl::event launch(ordered_section& work, const std::string& name, const Range& range,
                     const Arguments&... arguments) const {
    std::apply([&](const auto&... arrays) { work.add(arrays...); },
               std::tuple_cat(detail::array_of_argument(arguments)...));
    work.begin_launch();
    return submit(work, name, range, arguments...);
  }

  /// Finds the kernel of a function, for a queue's context and device, to launch it by a
  /// handler. The first call for them builds all kernels of the source; if that fails, the
  /// next call builds again. In Python, release the GIL.
  /// @throws sycl::exception errc::build with the compiler's log, errc::invalid for a name
  ///         that the source does not have, and whatever else the runtime throws
  sycl::kernel find(const sycl::queue& queue, const std::string& name) const {
    build& entry = find_build(queue);
    const std::lock_guard<std::mutex> lock(entry.mutex);
    if (const auto kernel = entry.kernels.find(name); kernel != entry.kernels.end()) {
      return kernel->second;
    }
    if (!entry.bundle) {
      entry.bundle = compile(entry);
    }
    if (!entry.bundle->ext_oneapi_has_kernel(name)) {
      throw sycl::exception(make_error_code(sycl::errc::invalid),
                            "name: expected a kernel of the source, found \"" + name +
                                "\"; correct it, or declare the function extern \"C\" "
                                "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<1>))");
    }
    return entry.kernels.emplace(name, entry.bundle->ext_oneapi_get_kernel(name))
        .first->second;
  }

 private:
  using kernel_bundle = sycl::kernel_bundle<sycl::bundle_state::executable>;

  /// The kernels of one context and device.
  struct build {
    explicit build(const sycl::queue& queue)
        : context(queue.get_context()), device(queue.get_device()) {}

    sycl::context context;
    sycl::device device;
    std::mutex mutex;  ///< of `bundle` and `kernels`
    std::optional<kernel_bundle> bundle;
    /// One object for each kernel: DPC++ locks a kernel's arguments by its object, but all
    /// objects of one name share the arguments (DPC++ 2026.2).
    std::map<std::string, sycl::kernel> kernels;
  };

  struct source {
    std::string text;
    std::vector<std::string> build_options;
    std::mutex mutex;  ///< of `builds`
    std::list<build> builds;
  };

  /// Launches a kernel in a section that has its arguments, and whose queue is ordered.
  template <class Range, class... Arguments>
  sycl::event submit(ordered_section& work, const std::string& name, const Range& range,
                     const Arguments&... arguments) const {
    const sycl::kernel kernel = find(work.queue_, name);
    check_count(kernel, name, sizeof...(Arguments));
    using limit = sycl::info::kernel_device_specific::work_group_size;
    const auto items =
        detail::range_of_launch(range, kernel.get_info<limit>(work.queue_.get_device()));
    if (detail::has_no_items(items)) {
      return {};
    }
    return work.queue_.submit([&](sycl::handler& handler) {
      handler.set_args(detail::value_of_argument(arguments)...);
      handler.parallel_for(items, kernel);
    });
  }

  static void check_count(const sycl::kernel& kernel, const std::string& name,
                          std::size_t count) {
    const sycl::backend backend = kernel.get_backend();
    if (backend != sycl::backend::opencl && backend != sycl::backend::ext_oneapi_level_zero) {
      return;  // CUDA reports the count of arguments of the last launch
    }
    const std::size_t expected = kernel.get_info<sycl::info::kernel::num_args>();
    if (expected != count) {
      throw sycl::exception(
          make_error_code(sycl::errc::kernel_argument),
          "arguments: expected " + std::to_string(expected) + " for the kernel \"" + name +
              "\", found " + std::to_string(count) + "; pass one for each of its parameters");
    }
  }

  build& find_build(const sycl::queue& queue) const {
    const std::lock_guard<std::mutex> lock(source_.mutex);
    for (build& entry : source_.builds) {
      if (entry.context == queue.get_context() && entry.device == queue.get_device()) {
        return entry;
      }
    }
    return source_.builds.emplace_back(queue);
  }

  kernel_bundle compile(const build& entry) const {
    namespace experimental = sycl::ext::oneapi::experimental;
    auto bundle = experimental::create_kernel_bundle_from_source(
        entry.context, experimental::source_language::sycl, source_.text);
    return experimental::build(
        bundle, {entry.device},
        experimental::properties{experimental::build_options{source_.build_options}});
  }

  source& source_;
};

}  // namespace usm_dlpack
