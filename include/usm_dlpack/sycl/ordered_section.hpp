// SPDX-License-Identifier: Apache-2.0
//
// Orders the work that a function submits with its callers' work, so that callers who pass no
// queue get right values. The order between Python consumers is in bindings/order/queues.hpp.
#pragma once

#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/queues.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <exception>
#include <type_traits>

namespace usm_dlpack {

class kernel_source;

namespace detail {

/// Whether an argument has a queue: an `owned_view`, an `any_view` or a `usm_array`.
template <class Argument, class = void>
inline constexpr bool has_queue = false;
template <class Argument>
inline constexpr bool
    has_queue<Argument, std::void_t<decltype(std::declval<const Argument&>().queue())>> = true;
/// Whether an argument has a proof instead of a view: an `any_view`.
template <class Argument, class = void>
inline constexpr bool has_allocation = false;
template <class Argument>
inline constexpr bool has_allocation<
    Argument, std::void_t<decltype(std::declval<const Argument&>().allocation())>> = true;

template <class Argument>
decltype(auto) memory_of_argument(const Argument& argument) {
  if constexpr (has_allocation<Argument>) {
    return argument.allocation();
  } else if constexpr (has_queue<Argument>) {
    return argument.view();
  } else {
    return (argument);
  }
}

}  // namespace detail

/// Orders the work that a function submits to a queue between the work on its arguments before
/// the call and the caller's next work on them. Libraries such as dpnp and dpctl order their
/// work by events of their own, not by the queue, so a caller who passes no queue gets right
/// values only if the host waits:
///
///     usm_dlpack::ordered_section work(queue, x, out);
///
/// The constructor checks the queue as `check_queue` does. It waits for the arguments' other
/// queues; in a Python extension for dpctl's queue of the device, which dpnp uses; and for the
/// section's queue, if it is out of order. The destructor waits for the section's queue. To
/// read a result before the section ends, call `wait`.
///
/// A plain view has no queue: its work must have finished, as it has for a parameter of a
/// Python function. Open one section at a time: two on two queues over one array are not
/// ordered.
///
/// While the queue records a graph, the section waits for nothing, and the arguments may have
/// any queue. The work on them must have finished before the graph runs.
///
/// `kernel_source::launch` accepts a section in place of a queue, for several kernels.
///
/// In a Python extension the waits release the GIL.
class ordered_section {
 public:
  /// @param arguments views, `owned_view`s, `any_view`s or `usm_array`s: all that the work
  /// uses
  /// @throws conversion_error as `check_queue`; sycl::exception of a failed command
  template <class... Arguments>
  [[nodiscard]] explicit ordered_section(const sycl::queue& queue,
                                         const Arguments&... arguments)
      : queue_(queue) {
    add(arguments...);
    if (!detail::is_recording(queue_)) {
      detail::queue_functions_now().wait_for_default_queue(queue_);
    }
    begin_launch();
  }

  /// Waits for the work so far, for example before the host reads a result of it.
  /// @throws sycl::exception of a failed command; conversion_error `runtime_error` while the
  ///         queue records a graph
  void wait() const { detail::queue_functions_now().wait_for_queue(queue_); }

  ordered_section(const ordered_section&) = delete;
  ordered_section& operator=(const ordered_section&) = delete;
  /// @throws sycl::exception of a failed command, unless another exception ends the section
  ~ordered_section() noexcept(false) {
    try {
      if (!detail::is_recording(queue_)) {
        wait();
      }
    } catch (...) {
      if (std::uncaught_exceptions() == exceptions_before_) {
        throw;
      }
    }
  }

 private:
  friend class kernel_source;

  /// Checks further arguments, and waits for their other queues.
  template <class... Arguments>
  void add(const Arguments&... arguments) {
    usm_dlpack::check_queue(queue_, detail::memory_of_argument(arguments)...);
    (wait_for_argument(arguments), ...);
  }

  template <class Argument>
  void wait_for_argument(const Argument& argument) const {
    if constexpr (detail::has_queue<Argument>) {
      if (argument.queue() != queue_ && !detail::is_recording(queue_)) {
        detail::queue_functions_now().wait_for_queue(argument.queue());
      }
    }
  }

  /// Orders the next command behind the present work of the queue.
  void begin_launch() {
    if (queue_.is_in_order()) {
      return;
    }
    if (detail::is_recording(queue_)) {
      queue_.ext_oneapi_submit_barrier();
    } else {
      wait();
    }
  }

  sycl::queue queue_;
  int exceptions_before_ = std::uncaught_exceptions();
};

}  // namespace usm_dlpack
