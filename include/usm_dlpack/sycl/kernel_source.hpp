// SPDX-License-Identifier: Apache-2.0
//
// Kernels for host programs whose compiler has no SYCL: DPC++'s kernel compiler, which is part
// of the SYCL runtime, builds them from source at run time. With icpx you do not need it.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dlpack_tensor.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/kernel_signature.hpp>
#include <usm_dlpack/sycl/ordered_section.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack {

/// Passes an array to a kernel as its view, not as its pointer, for a parameter of the same
/// view type: `kernels.launch(queue, "scale", x.extents(), usm_dlpack::by_value(x))`.
template <class Array>
struct by_value {
  explicit by_value(const Array& passed) : array(passed) {}

  const Array& array;  ///< borrowed
};

namespace detail {

template <class Argument>
inline constexpr bool is_array = knows_queue<Argument> || is_view<Argument>;

/// Whether an argument is a container of arrays, such as an optional or a vector.
template <class Argument, class = void>
inline constexpr bool holds_arrays = false;
template <class Argument>
inline constexpr bool holds_arrays<Argument, std::void_t<typename Argument::value_type>> =
    is_array<typename Argument::value_type>;

/// Whether an argument is an address without a size: a pointer, a C array, or nullptr.
template <class Argument>
inline constexpr bool is_address =
    std::is_pointer_v<std::decay_t<Argument>> || std::is_null_pointer_v<Argument>;

template <class Argument>
inline constexpr bool is_tensor =
    is_one_of<Argument, DLTensor, DLManagedTensorVersioned, DLManagedTensor>;
template <std::size_t Rank>
inline constexpr bool is_tensor<dlpack_tensor<Rank>> = true;

/// The array that an argument of a kernel is, in a tuple; an empty one for another argument.
template <class Argument>
auto array_of_argument(const Argument& argument) {
  if constexpr (is_array<Argument>) {
    return std::tie(argument);
  } else {
    return std::tuple<>();
  }
}
template <class Array>
auto array_of_argument(const by_value<Array>& argument) {
  return std::tie(argument.array);
}

template <class Array>
decltype(auto) view_of_argument(const Array& array) {
  static_assert(
      !has_allocation<Array>,
      "argument: expected an array of a type, found an any_view; pass as<View>() of it");
  return memory_of_argument(array);
}

/// A value that a kernel's parameter gets, for messages.
template <class Value>
std::string name_of_value() {
  return std::is_pointer_v<Value> ? "a pointer" : digits(sizeof(Value)) + " bytes";
}

/// What a kernel's parameter gets.
template <class Argument>
auto value_of_argument(const Argument& argument) {
  if constexpr (is_array<Argument>) {
    using view_type = std::decay_t<decltype(view_of_argument(argument))>;
    static_assert(
        mapping_of<view_type>::is_always_exhaustive(),
        "argument: expected a view without gaps (layout_right or layout_left), found "
        "one with strides, which its pointer does not tell the kernel; pass "
        "data_handle() and the strides in an ordered_section, or by_value(x)");
    return view_of_argument(argument).data_handle();
  } else {
    constexpr bool is_value = !holds_arrays<Argument> && !std::is_array_v<Argument> &&
                              sycl::is_device_copyable_v<Argument>;
    static_assert(
        is_value,
        "argument: expected an array or a value that a kernel takes, found another, "
        "such as a container; pass *x of an optional; for a vector of arrays, launch "
        "for each element in one ordered_section");
    static_assert(!is_tensor<Argument>,
                  "argument: expected an array or a value, found a tensor, whose shape and "
                  "strides a kernel cannot read; pass to_mdspan<View>(tensor)");
    if constexpr (is_value) {
      return argument;
    } else {
      return 0;  // so that no other error follows
    }
  }
}
template <class Array>
auto value_of_argument(const by_value<Array>& argument) {
  return view_of_argument(argument.array);
}

template <class Get, std::size_t... Ranks>
auto checked_range(const Get& get, std::index_sequence<Ranks...>) {
  return sycl::range<static_cast<int>(sizeof...(Ranks))>(
      static_cast<std::size_t>(to_extent(get(Ranks), Ranks))...);
}

/// The work-items that are wanted, of an integer, mdspan's extents or a range.
template <class Extents>
auto range_of(const Extents& extents) {
  static_assert(std::is_integral_v<Extents> || (has_extents<Extents> && !is_array<Extents>),
                "extents: expected an integer, mdspan's extents, a sycl::range or a "
                "sycl::nd_range, found another type; pass x.extents() of a view");
  if constexpr (std::is_integral_v<Extents>) {
    return detail::checked_range([&](std::size_t) { return extents; },
                                 std::make_index_sequence<1>());
  } else if constexpr (has_extents<Extents>) {
    static_assert(Extents::rank() >= 1 && Extents::rank() <= 3,
                  "extents: expected 1 to 3 dimensions, found another number; pass a "
                  "sycl::range with some of them multiplied");
    return detail::checked_range([&](std::size_t r) { return extents.extent(r); },
                                 std::make_index_sequence<Extents::rank()>());
  }
}
template <int Dimensions>
auto range_of(const sycl::range<Dimensions>& extents) {
  return detail::checked_range(
      [&](std::size_t r) { return extents.get(static_cast<int>(r)); },
      std::make_index_sequence<static_cast<std::size_t>(Dimensions)>());
}

/// A power of two: 64 work-items a group, or more, up to a quarter of the limit, if each
/// compute unit then still gets a group.
constexpr std::size_t group_size(std::size_t items, std::size_t limit,
                                 std::size_t compute_units) {
  std::size_t size = 1;
  while (2 * size <= std::min<std::size_t>(limit, 64) ||
         (8 * size <= limit && 2 * size * compute_units <= items)) {
    size *= 2;
  }
  return size;
}

/// Divides work-items into groups. Only the last extent is rounded up, so that a kernel has
/// one bound to check; a large one at most by an eighth.
/// @param size of a group, a power of two
/// @param limits of a group in each dimension: a `sycl::range`; in DPC++ before 2026 an id
template <int Dimensions, class Limits>
sycl::nd_range<Dimensions> divide(sycl::range<Dimensions> items, std::size_t size,
                                  const Limits& limits) {
  constexpr int last = Dimensions - 1;
  sycl::range<Dimensions> group = items;
  std::size_t along = 1;
  while (2 * along <= std::min<std::size_t>(size, limits[last]) && along < items[last] &&
         (along < 64 || 16 * along <= items[last])) {
    along *= 2;
  }
  group[last] = along;
  items[last] = (items[last] + along - 1) / along * along;
  size /= along;
  for (int r = last - 1; r >= 0; --r) {
    group[r] = std::gcd(items[r], std::min<std::size_t>(size, limits[r]));
    size /= group[r];
  }
  return {items, group};
}

template <int Dimensions>
constexpr int dimensions_of(const sycl::nd_range<Dimensions>&) {
  return Dimensions;
}

template <int Dimensions>
bool has_no_items(const sycl::nd_range<Dimensions>& range) {
  const sycl::range<Dimensions> items = range.get_global_range();
  bool found = false;
  for (int r = 0; r < Dimensions; ++r) {
    found = found || items[r] == 0;
  }
  return found;
}

}  // namespace detail

/// SYCL source with kernels, built once for each context and device that it is used with.
///
/// A kernel is a free function `extern "C"
/// SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<Dimensions>)) void name(...)`. A build
/// takes seconds; the first one says so if standard error is a terminal. The environment
/// variable `SYCL_CACHE_PERSISTENT=1` keeps builds on disk.
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

  /// Launches a kernel, in order: as if the call stood in an `ordered_section` of the queue
  /// and the arrays among the arguments. So the queue is checked against them, and the kernel
  /// is done on return. While the queue records a graph, the kernel is recorded, and nothing
  /// waits.
  ///
  /// A view, an `owned_view` or a `usm_array` is passed as its pointer (`data_handle()`), or
  /// as its view by `by_value(x)`; then the build options name the folders of the headers. A
  /// view with strides is passed only by `by_value`, because its pointer does not tell them.
  ///
  /// Any other argument is passed as it is, and must have the type of its parameter (`int` is
  /// not `long`). A pointer does not compile, because nothing could check or order its memory:
  /// launch in an `ordered_section` of the arrays.
  ///
  /// Types are checked for each parameter that the source spells as `[const] type [*] name`,
  /// with an arithmetic type of the language or like `std::int64_t`, `sycl::half`, or an alias
  /// by `using`. Nothing checks a `typedef`, a macro, a template or `std::complex`, or if
  /// several declarations of the name differ; OpenCL alone then refuses another size, or an
  /// array in place of a value.
  ///
  /// @param extents the work-items to run, in one to three dimensions, as many as the kernel
  ///        declares (checked if `nd_range_kernel<2>))` stands directly before `void name(`):
  ///        an integer, mdspan's extents, or a `sycl::range`.
  ///        The last one is rounded up to a whole number of groups, so the kernel must return
  ///        if its last index is not below it; the others are exact. If one is 0, nothing is
  ///        launched. A `sycl::nd_range` is used as it is. For more than 2^31 - 1
  ///        work-items, rounded up, the kernel needs the build option
  ///        `-fno-sycl-id-queries-fit-in-int`.
  /// @returns the kernel's event, complete if nothing was launched
  /// @throws conversion_error as `check_queue`, `extent_out_of_range`; sycl::exception as
  ///         `find`, errc::kernel_argument for another number of arguments than the kernel has
  ///         parameters (on OpenCL and Level Zero, the only backends that report it) and for
  ///         one of another type, errc::nd_range for another number of dimensions, what the
  ///         runtime throws for the launch, and of work that failed
  template <class Extents, class... Arguments>
  sycl::event launch(const sycl::queue& queue, const std::string& name, const Extents& extents,
                     const Arguments&... arguments) const {
    static_assert((!detail::is_address<Arguments> && ...),
                  "argument: expected an array or a value, found a pointer, whose memory "
                  "launch cannot check or order; pass the view, or an ordered_section of its "
                  "arrays in place of the queue");
    const auto arrays = std::tuple_cat(detail::array_of_argument(arguments)...);
    ordered_section work = std::apply(
        [&](const auto&... array) { return ordered_section(queue, array...); }, arrays);
    return submit(work, name, extents, arguments...);
  }

  /// Launches a kernel in a section, without waiting for it: for functions that launch
  /// several. They run one after another, and after what the function itself submitted to the
  /// queue before; on an out-of-order queue the host waits for that. The section takes the
  /// arrays that it does not have yet. A pointer is passed as it is: its array must be one of
  /// the section.
  template <class Extents, class... Arguments>
  sycl::event launch(ordered_section& work, const std::string& name, const Extents& extents,
                     const Arguments&... arguments) const {
    std::apply([&](const auto&... arrays) { work.add(arrays...); },
               std::tuple_cat(detail::array_of_argument(arguments)...));
    work.begin_launch();
    return submit(work, name, extents, arguments...);
  }

  /// Finds the kernel of a function, for a queue's context and device, to launch it by a
  /// handler. The first call for them builds all kernels of the source; if that fails, the
  /// next call builds again. In Python, release the GIL.
  /// @throws sycl::exception errc::build with the compiler's log, errc::invalid for a name
  ///         that the source does not have, and whatever else the runtime throws
  sycl::kernel find(const sycl::queue& queue, const std::string& name) const {
    return find_known(queue, name).kernel;
  }

 private:
  using kernels = sycl::kernel_bundle<sycl::bundle_state::executable>;

  struct known_kernel {
    sycl::kernel kernel;
    detail::kernel_signature signature;
  };

  struct target {
    explicit target(const sycl::queue& queue)
        : context(queue.get_context()), device(queue.get_device()) {}

    sycl::context context;
    sycl::device device;
    std::mutex building;
    std::optional<kernels> built;
    /// One object for each kernel: DPC++ locks a kernel's arguments by its object, but all
    /// objects of one name share the arguments (DPC++ 2026.2).
    std::map<std::string, known_kernel> found;
  };

  struct kept {
    std::string text;
    std::vector<std::string> build_options;
    std::mutex adding;
    std::list<target> targets;
  };

  /// Launches a kernel in a section whose arguments are known, and whose queue is ordered.
  template <class Extents, class... Arguments>
  sycl::event submit(ordered_section& work, const std::string& name, const Extents& extents,
                     const Arguments&... arguments) const {
    const known_kernel& known = find_known(work.queue_, name);
    check_count(known, name, sizeof...(Arguments));
    const auto range = groups_of(known.kernel, work.queue_.get_device(), extents);
    detail::check_launch(
        known.signature, name, detail::dimensions_of(range),
        {detail::type_of_value<decltype(detail::value_of_argument(arguments))>()...});
    if (detail::has_no_items(range)) {
      return {};
    }
    try {
      return work.queue_.submit([&](sycl::handler& handler) {
        handler.set_args(detail::value_of_argument(arguments)...);
        handler.parallel_for(range, known.kernel);
      });
    } catch (const sycl::exception& error) {
      refuse_arguments(
          error, known.signature.describe(name),
          {detail::name_of_value<decltype(detail::value_of_argument(arguments))>()...});
      throw;
    }
  }

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

  /// The kernel, which stays where it is and as it is.
  const known_kernel& find_known(const sycl::queue& queue, const std::string& name) const {
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
                                "\"; correct it, or declare the function extern \"C\" "
                                "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((nd_range_kernel<1>))");
    }
    return here.found
        .emplace(name, known_kernel{here.built->ext_oneapi_get_kernel(name),
                                    detail::read_signature(kept_.text, name)})
        .first->second;
  }

  static void check_count(const known_kernel& known, const std::string& name,
                          std::size_t found) {
    const sycl::kernel& kernel = known.kernel;
    const sycl::backend backend = kernel.get_backend();
    if (backend != sycl::backend::opencl && backend != sycl::backend::ext_oneapi_level_zero) {
      return;  // CUDA reports how many arguments the kernel got the last time
    }
    const auto expected = kernel.get_info<sycl::info::kernel::num_args>();
    if (expected != found) {
      throw sycl::exception(make_error_code(sycl::errc::kernel_argument),
                            "arguments: expected " + detail::digits(expected) +
                                " for the kernel " + known.signature.describe(name) +
                                ", found " + detail::digits(found) +
                                "; pass one for each of its parameters");
    }
  }

  /// Names the kernel and the arguments that a launch was refused for. The runtime does not
  /// say which argument is wrong, and its text alone tells these errors from others.
  static void refuse_arguments(const sycl::exception& error, const std::string& kernel,
                               std::initializer_list<std::string> arguments) {
    const std::string text = error.what();
    const auto is = [&](const char* code) { return text.find(code) != std::string::npos; };
    if (!is("INVALID_KERNEL_ARGUMENT_SIZE") && !is("INVALID_ARGUMENT") &&
        !is("INVALID_MEM_OBJECT")) {
      return;
    }
    std::string found;
    for (const std::string& argument : arguments) {
      found += (found.empty() ? "" : ", ") + argument;
    }
    throw sycl::exception(
        make_error_code(sycl::errc::kernel_argument),
        "arguments: expected the types of the parameters of the kernel " + kernel +
            ", found " + found + ", for which the runtime throws \"" + text +
            "\"; pass arrays for pointers, and others with exactly their parameter's type, "
            "such as long{n} for a long");
  }

  template <class Extents>
  static auto groups_of(const sycl::kernel& kernel, const sycl::device& device,
                        const Extents& extents) {
    const auto items = detail::range_of(extents);
    using limit = sycl::info::kernel_device_specific::work_group_size;
    constexpr int dimensions = decltype(items)::dimensions;
    return detail::divide(
        items,
        detail::group_size(items.size(), kernel.get_info<limit>(device),
                           device.get_info<sycl::info::device::max_compute_units>()),
        device.get_info<sycl::info::device::max_work_item_sizes<dimensions>>());
  }
  template <int Dimensions>
  static const sycl::nd_range<Dimensions>& groups_of(
      const sycl::kernel&, const sycl::device&, const sycl::nd_range<Dimensions>& extents) {
    return extents;
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
