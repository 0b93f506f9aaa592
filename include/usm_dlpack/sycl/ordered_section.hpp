// SPDX-License-Identifier: Apache-2.0
//
// One line at the top of a function that submits work on arrays, so that callers who pass no
// queues get right values.
#pragma once

#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <type_traits>
#include <vector>

namespace usm_dlpack {

class kernel_source;

namespace detail {

/// Whether an argument knows a queue: an `owned_view`, an `any_view` or a `usm_array`.
template <class Argument, class = void>
inline constexpr bool knows_queue = false;
template <class Argument>
inline constexpr bool
    knows_queue<Argument, std::void_t<decltype(std::declval<const Argument&>().queue())>> =
        true;
/// Whether an argument has proved memory instead of a view: an `any_view`.
template <class Argument, class = void>
inline constexpr bool has_allocation = false;
template <class Argument>
inline constexpr bool has_allocation<
    Argument, std::void_t<decltype(std::declval<const Argument&>().allocation())>> = true;

template <class Argument>
decltype(auto) memory_of_argument(const Argument& argument) {
  if constexpr (has_allocation<Argument>) {
    return argument.allocation();
  } else if constexpr (knows_queue<Argument>) {
    return argument.view();
  } else {
    return (argument);
  }
}

/// Whether something besides the queue may use an argument next: the caller, or the host. A
/// `usm_array` of device USM is the function's own, and not the host's.
template <class Argument>
bool is_for_others(const Argument&) noexcept {
  return true;
}
template <class View>
bool is_for_others(const usm_array<View>& array) noexcept {
  return array.usm_type() != sycl::usm::alloc::device;
}

}  // namespace detail

/// Orders the work that a function submits to a queue behind the work on its arguments before
/// the call, and before the caller's next work on them. Libraries such as dpnp and dpctl order
/// their work by events of their own, not by the queue, so a caller who passes no queue gets
/// right values only if the host waits:
///
///     usm_dlpack::ordered_section work(queue, x, out);
///
/// The constructor checks the queue as `check_queue` does. It waits for the work that an
/// out-of-order queue has so far, and for the other queues that arguments know; between two
/// in-order queues of one context an event orders the work instead.
///
/// The destructor waits for the queue's work, unless the queue is in order and the arguments
/// are only `usm_array`s of device USM, or none. It waits for an argument that is the
/// caller's, because the caller may write to it next, even if the work only reads it, and for
/// a `usm_array` of host or shared USM, because the host may read it next. Exporting a
/// `usm_array` waits. To read a result before the section ends, call `wait`.
///
/// A plain view knows no queue: its work must have finished, as it has for a parameter of a
/// Python function.
///
/// `kernel_source::launch` takes a section in place of a queue, for several kernels.
///
/// In a Python extension the waits release the GIL.
class ordered_section {
 public:
  /// @param arguments views, `owned_view`s, `any_view`s or `usm_array`s: all that the work
  /// uses
  /// @throws conversion_error as `check_queue`; sycl::exception of work that failed
  template <class... Arguments>
  [[nodiscard]] explicit ordered_section(const sycl::queue& queue,
                                         const Arguments&... arguments)
      : ordered_section(true, queue, arguments...) {}

  /// Makes a section that never waits within one context, for callers who order their own work
  /// by the queue. An out-of-order queue gets barriers at the start and at the end. They do
  /// not hold back everything (DPC++ 2026.2): `queue::memcpy` on an out-of-order queue
  /// overtakes a barrier that is behind a pending host task, so submit copies by a handler. A
  /// barrier may also miss a host task that already runs, and dpnp ignores the order of queues
  /// in many operations.
  template <class... Arguments>
  [[nodiscard]] static ordered_section unwaited(const sycl::queue& queue,
                                                const Arguments&... arguments) {
    return ordered_section(false, queue, arguments...);
  }

  /// Waits for the work so far, for example before the host reads a result of it.
  /// @throws sycl::exception of work that failed
  void wait() const { wait_for(queue_); }

  ordered_section(const ordered_section&) = delete;
  ordered_section& operator=(const ordered_section&) = delete;
  /// @throws sycl::exception of work that failed, unless another exception ends the section
  ~ordered_section() noexcept(false) {
    try {
      end();
    } catch (...) {
      if (std::uncaught_exceptions() == exceptions_before_) {
        throw;
      }
    }
  }

 private:
  template <class... Arguments>
  ordered_section(bool waits, const sycl::queue& queue, const Arguments&... arguments)
      : queue_(queue),
        waits_(waits),
        is_in_order_(queue.is_in_order()),
        waits_at_end_(waits && !is_in_order_) {
    add(arguments...);
    begin_launch();
  }

  friend class kernel_source;

  /// Orders further arguments likewise, before work on them is submitted.
  template <class... Arguments>
  void add(const Arguments&... arguments) {
    usm_dlpack::check_queue(queue_, detail::memory_of_argument(arguments)...);
    waits_at_end_ = waits_at_end_ || (waits_ && (detail::is_for_others(arguments) || ...));
    (begin_behind(arguments), ...);
  }

  /// Puts what is submitted next behind the present work of the queue. The host waits on an
  /// out-of-order queue, because a barrier can miss a host task.
  void begin_launch() {
    if (!is_in_order_ && waits_) {
      wait_for(queue_);
    } else if (!is_in_order_) {
      queue_.ext_oneapi_submit_barrier();
    }
  }

  static void wait_for(const sycl::queue& queue) {
    detail::wait_for_work.load(std::memory_order_acquire)(queue);
  }

  template <class Argument>
  void begin_behind(const Argument& argument) {
    if constexpr (detail::knows_queue<Argument>) {
      const sycl::queue& known = argument.queue();
      if (known == queue_ ||
          std::find(others_.begin(), others_.end(), known) != others_.end()) {
        return;
      }
      others_.push_back(known);
      if (known.get_context() == queue_.get_context() &&
          (!waits_ || (known.is_in_order() && is_in_order_))) {
        detail::order_by_event(known, queue_);
      } else {
        wait_for(known);
        waits_at_end_ = true;
      }
    }
  }

  void end() {
    if (waits_at_end_) {
      wait_for(queue_);
      return;
    }
    if (!waits_ && !is_in_order_) {
      queue_.ext_oneapi_submit_barrier();
    }
    for (const sycl::queue& other : others_) {
      detail::order_by_event(queue_, other);
    }
  }

  sycl::queue queue_;
  bool waits_;
  bool is_in_order_;
  bool waits_at_end_;
  std::vector<sycl::queue> others_;  ///< that arguments know
  int exceptions_before_ = std::uncaught_exceptions();
};

}  // namespace usm_dlpack
