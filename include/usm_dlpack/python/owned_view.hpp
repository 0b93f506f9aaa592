// SPDX-License-Identifier: Apache-2.0
//
// Views with an owner, and the owner that is a Python object. The casters that make them are
// in nanobind/ and pybind11/.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace usm_dlpack {

/// Keeps a Python object alive that owns memory, such as `python_owner(self)`. Unlike a handle
/// of nanobind, it may be destroyed by any thread, with the GIL or without, because it
/// acquires the GIL. When the interpreter finishes, the object is not released. Movable, not
/// copyable.
class python_owner {
 public:
  /// Adds a reference. @pre the GIL is held
  /// @throws conversion_error `request_unsupported` for null
  explicit python_owner(PyObject* object) {
    static_cast<void>(detail::package_interface::get());  // the destructor must not import
    if (object == nullptr) {
      detail::refuse(errc::request_unsupported, "owner", "a Python object", "none",
                     "pass the object that has the memory");
    }
    object_.reset(detail::borrow(object).release());
  }
  /// Adds a reference to an object of nanobind or pybind11. `nb::find` returns null for a C++
  /// object that Python does not know.
  template <class Object, std::enable_if_t<detail::is_python_object<Object>, int> = 0>
  explicit python_owner(const Object& object) : python_owner(object.ptr()) {}

  /// The object, borrowed.
  PyObject* get() const noexcept { return object_.get(); }

 private:
  struct drop {
    void operator()(PyObject* object) const noexcept {
      detail::package_interface::get().drop(object);
    }
  };
  std::unique_ptr<PyObject, drop> object_;
};

namespace detail {

/// An owner that any thread may destroy: a `python_owner` of a Python object, or else the
/// owner.
template <class Owner>
decltype(auto) any_thread_owner(Owner&& owner) {
  if constexpr (is_python_object<std::decay_t<Owner>>) {
    return python_owner(owner);
  } else {
    return std::forward<Owner>(owner);
  }
}

}  // namespace detail

/// A view with an owner. Returned from a function, it becomes a `usm_dlpack.DLPackTensor` that
/// shares the memory. As a parameter, or cast of a Python object, it keeps the array's memory
/// alive for as long as it lives, on any thread. Movable, not copyable.
///
/// Nothing here waits: order your work behind `queue()`, as `ordered_section` does, or wait.
template <class View>
class owned_view {
 public:
  using view_type = View;

  /// Makes a result. Python proves it: `validate` refuses memory that is not USM of the
  /// queue's root device.
  /// @param queue works on the memory; the DLPackTensor's `sycl_queue`
  /// @param owner anything movable that keeps the memory alive: for example a Python object,
  ///        which is dropped with the GIL. Any other owner's destructor runs on any thread,
  ///        with the GIL or without; it must not throw, and not need the GIL. Its members are
  ///        not checked: use a `python_owner` in it, not an `nb::object` or `py::object`
  /// @throws conversion_error `context_not_default`, `device_without_id`, and as
  ///         `to_managed_tensor(view, device, owner)`; `owner` is then unchanged
  template <class Owner>
  owned_view(const View& view, const sycl::queue& queue, Owner&& owner)
      : view_(view),
        queue_(queue),
        managed_(usm_dlpack::to_managed_tensor(
            view, DLDevice{kDLOneAPI, detail::export_id(queue)},
            detail::any_thread_owner(std::forward<Owner>(owner)))) {}

  /// Makes a result of an array that owns its memory, and whose view converts to this type.
  /// The array's destructor waits, without the GIL.
  template <class Other,
            std::enable_if_t<std::is_constructible_v<View, const Other&>, int> = 0>
  owned_view(usm_array<Other>&& array)
      : view_(array.view()), queue_(array.queue()), managed_(own(std::move(array))) {}

  /// Holds a proved import. Const elements make the tensor read-only for later consumers.
  /// @pre `view` was made of `managed`
  owned_view(const View& view, managed_tensor managed, const sycl::queue& queue)
      : view_(view), queue_(queue), managed_(std::move(managed)) {
    if (managed_ != nullptr) {
      managed_.get()->flags |= detail::flags_of<View>();
    }
  }

  owned_view(owned_view&&) = default;
  owned_view& operator=(owned_view&&) = default;
  owned_view(const owned_view&) = delete;  // std::move it, or share it by a std::shared_ptr
  owned_view& operator=(const owned_view&) = delete;

  const View& view() const noexcept { return view_; }
  /// The queue that may still work on the memory. If a parameter's array has none, its work
  /// has finished, and this is the package's in-order queue of the array's root device, one
  /// for all such arrays.
  const sycl::queue& queue() const noexcept { return queue_; }
  /// The managed tensor that keeps the memory alive, borrowed; null after `release`.
  const DLManagedTensorVersioned* managed() const noexcept { return managed_.get(); }
  /// Moves the managed tensor out; `managed` is null afterwards.
  managed_tensor release() && noexcept { return std::move(managed_); }

 private:
  template <class Other>
  static managed_tensor own(usm_array<Other>&& array) {
    const View view(array.view());
    const DLDevice device{kDLOneAPI, array.device_id()};
    return usm_dlpack::to_managed_tensor(view, device, std::move(array));
  }

  View view_;
  sycl::queue queue_;
  managed_tensor managed_;
};

}  // namespace usm_dlpack
