// SPDX-License-Identifier: Apache-2.0
//
// A view and whatever keeps its memory alive: what a function of an extension returns, and
// what it takes where the memory is needed after the call.
#pragma once

#include <usm_dlpack/managed.hpp>
#include <usm_dlpack/package_interface.hpp>
#include <usm_dlpack/usm_array.hpp>
#include <usm_dlpack/usm_export.hpp>

#include <sycl/sycl.hpp>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace usm_dlpack {

/// A view with an owner. As a return value it becomes a `usm_dlpack.DLPackTensor`, which
/// shares the memory; as a parameter it keeps the array, or what the array handed out, for as
/// long as it lives, on whatever thread it goes. Moved, never copied.
///
/// Nothing here waits: whoever uses the memory after work on it waits, or orders his own
/// behind it.
template <class View>
class owned_view {
 public:
  using view_type = View;

  /// A result. Python gets it proved: `validate` refuses there what is not USM of the queue's
  /// root device.
  /// @param queue works on the memory: it is what the tensor in Python knows as `sycl_queue`
  /// @param owner anything movable that keeps the memory alive; its destructor must not throw,
  ///        and runs on any thread, with the GIL or without
  /// @throws conversion_error `context_not_default`, `device_without_id`, and as
  ///         `to_managed_tensor(view, device, owner)`; `owner` is then untouched
  template <class Owner>
  owned_view(const View& view, const sycl::queue& queue, Owner&& owner)
      : view_(view),
        queue_(queue),
        managed_(usm_dlpack::to_managed_tensor(
            view, DLDevice{kDLOneAPI, detail::export_id(queue)}, std::forward<Owner>(owner))) {
  }

  /// A result of an array that owns its memory, of the same type of view or one that this
  /// type can be made of. The array waits when it goes, without the GIL.
  /// @param kept what the work on the array's queue reads, other views with owners for
  ///        example: it goes after the array, hence when that work is done
  template <class Made, class... Kept,
            std::enable_if_t<std::is_constructible_v<View, const Made&>, int> = 0>
  owned_view(usm_array<Made>&& array, Kept&&... kept)
      : view_(array.view()),
        queue_(array.queue()),
        managed_(own(std::move(array), std::forward<Kept>(kept)...)) {}

  /// An import, proved. Const elements make the tensor read-only from here on: who gets it
  /// next may write no more than the view. @pre `view` was made of `managed`
  owned_view(const View& view, std::optional<sycl::queue> queue, managed_tensor managed)
      : view_(view), queue_(std::move(queue)), managed_(std::move(managed)) {
    if (managed_ != nullptr) {
      managed_.get()->flags |= detail::flags_of<View>();
    }
  }

  const View& view() const noexcept { return view_; }
  /// The queue that may still work on the memory, as far as the array says it.
  const std::optional<sycl::queue>& queue() const noexcept { return queue_; }
  /// What keeps the memory alive, to be looked at; null once it was released.
  const DLManagedTensorVersioned* managed() const noexcept { return managed_.get(); }
  /// The same, given away; null once it was released.
  managed_tensor release() && noexcept { return std::move(managed_); }

 private:
  // The array is destroyed first: it waits.
  template <class Made, class... Kept>
  struct array_and_kept {
    std::tuple<Kept...> kept;
    usm_array<Made> array;
  };

  template <class Made, class... Kept>
  static managed_tensor own(usm_array<Made>&& array, Kept&&... kept) {
    const View view(array.view());
    const DLDevice device{kDLOneAPI, array.device_id()};
    return usm_dlpack::to_managed_tensor(view, device,
                                         array_and_kept<Made, std::decay_t<Kept>...>{
                                             {std::forward<Kept>(kept)...}, std::move(array)});
  }

  View view_;
  std::optional<sycl::queue> queue_;
  managed_tensor managed_;
};

}  // namespace usm_dlpack
