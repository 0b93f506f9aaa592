// SPDX-License-Identifier: Apache-2.0
//
// An array that Python passes as an argument, and a view with an owner as a result: what the
// casters of both bindings share. Which objects are arrays is in
// bindings/exchange/extensions.cpp.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/sycl/backends/backend.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/devices.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <cstdint>
#include <utility>

namespace usm_dlpack::detail {

/// Ends the process with a sentence if the GIL is not held: the cast would crash.
inline void require_gil() noexcept {
  if (PyGILState_Check() == 0) {
    Py_FatalError(
        "usm_dlpack: GIL: expected a cast with the GIL held, found it released; "
        "cast before gil_scoped_release, or under gil_scoped_acquire, also in a thread of "
        "your own");
  }
}

/// An argument that was imported as an array, if it is one.
class imported_argument {
 public:
  /// @throws python_exception for an array that is refused for every type of view, and what
  ///         the array's own code raises
  explicit imported_argument(PyObject* object) {
    require_gil();
    const python_object alive = borrow(object);  // `__dlpack__` may drop the last reference
    status_ = package_interface::get().import_array(object, &array_);
    if (status_ == import_status::failed) {
      throw python_exception();
    }
    owner_.reset(array_.owner);
  }

  bool is_array() const noexcept { return status_ != import_status::no_array; }
  /// Whether the array may be of the type of a view, or an `any_view`. Much quicker than a
  /// refusal.
  template <class View>
  bool may_be() const noexcept {
    if constexpr (is_view<View>) {
      return is_in_usm() && array_.tensor->ndim == View::rank() &&
             same_data_type(array_.tensor->dtype, data_type_v<typename View::element_type>);
    } else {
      return is_in_usm();
    }
  }
  /// Makes a view, or refuses an array that is not of its type. @pre `is_array()`
  /// @throws conversion_error `device_type_unsupported` for host memory, and as
  ///         `any_view::as`
  template <class View>
  View view() const {
    check_memory();
    return detail::view_of_array<View>(*array_.tensor, array_.flags, proof());
  }

  /// The Python object that keeps the memory alive. @pre the array is in USM
  PyObject* owner() const noexcept { return owner_.get(); }
  /// Waits for all work on the array.
  void wait() const { wait_for_array(true); }
  /// Makes a view that keeps the array alive. Waits for all work but that of its own queue.
  /// @throws conversion_error as `view`
  template <class View>
  owned_view<View> own() const {
    const auto view = this->view<View>();
    wait_for_array(false);
    return {view, keeper(), *array_.queue};
  }
  /// The same for an array of any dtype and rank.
  any_view own_any() const {
    check_memory();
    wait_for_array(false);
    return {proof(), *array_.queue, keeper()};
  }

 private:
  bool is_in_usm() const noexcept { return status_ == import_status::in_usm; }
  void check_memory() const {
    if (!is_in_usm()) {
      static_cast<void>(detail::id_named_by({kDLCPU, 0}));  // refuses it
    }
  }
  usm_allocation proof() const {
    const auto structure =
        usm_dlpack::check_structure(*array_.tensor, storage_of(array_.flags));
    allocation memory;
    memory.kind = static_cast<sycl::usm::alloc>(array_.kind);
    memory.device = static_cast<device_proof>(array_.device_proof);
    memory.device_id = array_.device_id;
    if (*array_.device != root_device(array_.device_id)) {
      memory.part = *array_.device;
    }
    const allocation_range range{static_cast<std::uintptr_t>(array_.base),
                                 static_cast<std::size_t>(array_.size),
                                 static_cast<bounds_proof>(array_.bounds_proof)};
    return import_protocol::from_parts(structure, memory, range, array_.device_id);
  }
  void wait_for_array(bool own_queue) const {
    if (package_interface::get().wait_for_array(owner(), own_queue ? 1 : 0) != 0) {
      throw python_exception();
    }
  }
  managed_tensor keeper() const {
    return usm_dlpack::to_managed_tensor(*array_.tensor, python_owner(owner()),
                                         array_.flags & ~flag::is_copied);
  }

  imported_array array_{};
  python_object owner_;
  import_status status_ = import_status::no_array;
};

/// The Python object that owns the memory of a managed tensor of this module, borrowed; null
/// for another owner.
inline PyObject* python_owner_of(const DLManagedTensorVersioned& managed) noexcept {
  using block = managed_block<DLManagedTensorVersioned, python_owner>;
  return managed.deleter == &block::destroy
             ? static_cast<const block*>(managed.manager_ctx)->owner.get()
             : nullptr;
}

/// Makes a proved DLPackTensor.
/// @param kind the USM kind of the result's type
template <class Owned>
python_object make_tensor(Owned result, sycl::usm::alloc kind) {
  require_gil();
  if (result.managed() == nullptr) {
    refuse(errc::request_unsupported, "return", "a view with an owner",
           "one that was moved from or released", "return it before that");
  }
  const sycl::queue& queue = result.queue();
  PyObject* const owner = python_owner_of(*result.managed());
  return checked(package_interface::get().make_tensor(
      std::move(result).release().release(), owner, &queue, static_cast<std::int32_t>(kind)));
}

// The results of functions: null with the Python error set if they are refused.
template <class View>
PyObject* to_python(owned_view<View>&& result) noexcept {
  return object_or_null([&] { return make_tensor(std::move(result), usm_kind_v<View>); });
}
template <class View>
PyObject* to_python(usm_array<View>&& result) noexcept {
  return object_or_null(
      [&] { return make_tensor(owned_view<View>(std::move(result)), usm_kind_v<View>); });
}
inline PyObject* to_python(any_view&& result) noexcept {
  return object_or_null(
      [&] { return make_tensor(std::move(result), sycl::usm::alloc::unknown); });
}

}  // namespace usm_dlpack::detail
