// SPDX-License-Identifier: Apache-2.0
//
// A Python array on its way to a view: asked for its tensor, compared with the view's type,
// proved, and kept alive.
#pragma once

#include <usm_dlpack/argument_refusals.hpp>
#include <usm_dlpack/package_interface.hpp>
#include <usm_dlpack/recorded_refusals.hpp>
#include <usm_dlpack/usm_mdspan.hpp>

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace usm_dlpack::detail {

/// What an array offers, and the reference that keeps it.
class array_offer {
 public:
  /// @throws nb::python_error what the array raises
  explicit array_offer(nb::handle array) : array_(array.ptr()) {
    const offer answer = package_interface::get().ask(array.ptr(), offered_);
    if (answer == offer::failed) {
      throw nb::python_error();
    }
    is_array_ = answer == offer::made;
  }
  array_offer(const array_offer&) = delete;
  array_offer& operator=(const array_offer&) = delete;
  ~array_offer() { Py_XDECREF(offered_.owner); }

  bool is_array() const noexcept { return is_array_; }
  const DLTensor& tensor() const noexcept { return offered_.tensor; }
  std::uint64_t flags() const noexcept { return offered_.flags; }
  const std::optional<sycl::queue>& queue() const noexcept { return offered_.queue; }
  /// Gives the reference away.
  PyObject* release() noexcept { return std::exchange(offered_.owner, nullptr); }

  /// An array without elements has no memory that could be of another kind.
  /// @throws conversion_error `usm_type_not_accepted` if the memory, proved before, is not of
  ///         the kind that the view's type names
  template <class View>
  void check_kind() const {
    const DLTensor& proved = offered_.tensor;
    if (std::count(proved.shape, proved.shape + proved.ndim, 0) == 0) {
      check_usm_type(offered_.proved_kind, require_kind<View>({}));
    }
  }

  /// The view, once the memory is proved to be what its type says; nothing is proved twice.
  /// @throws conversion_error as `validate`, `check_context`, then `to_mdspan`;
  ///         nb::python_error what the array raises when its queue is asked for
  template <class View>
  View prove() const {
    const requirements wanted = require_kind<View>({});
    const subbyte storage = storage_of(offered_.flags);
    if (wanted.writable) {
      check_writable<View>(offered_.flags);
    }
    if (offered_.proved_kind != sycl::usm::alloc::unknown) {
      check_kind<View>();
      return detail::convert<View>(offered_.tensor, storage);
    }
    const usm_allocation proved = detail::import_tensor(offered_.tensor, wanted, storage);
    check_producer(proved);
    return detail::make_view<View>(offered_.tensor, proved.structure(), storage);
  }

 private:
  // OpenCL's CPU driver tells contexts apart by itself.
  void check_producer(const usm_allocation& proved) const {
    const sycl::device& root = proved.root_device();
    if (root.get_backend() == sycl::backend::opencl && root.is_cpu()) {
      return;
    }
    std::optional<sycl::queue> queue = offered_.queue;
    if (!queue && package_interface::get().find_queue(array_, queue) == offer::failed) {
      throw nb::python_error();
    }
    if (queue) {
      check_context(proved, *queue);
    }
  }

  PyObject* array_;
  offered_tensor offered_;
  bool is_array_ = false;
};

/// What a view's type says of an array before anything is proved of its memory: for the next
/// overload to try.
template <class View>
void check_type(const array_offer& array) {
  detail::check_element_type<View>(array.tensor(), storage_of(array.flags()));
  detail::check_rank<View>(array.tensor());
}

/// The view of an array, proved.
/// @throws conversion_error of the first broken rule: dtype and rank, as `validate`, then as
///         `to_mdspan`
template <class View>
View view_of(const array_offer& array) {
  check_type<View>(array);
  return array.template prove<View>();
}

/// What stands between a Python object and a parameter that is a view. Wrong types, dtypes,
/// ranks, extents and layouts are for the next overload; everything else that is wrong is
/// raised, once all parameters of this one have taken their arguments.
template <class View>
class view_import {
 public:
  /// @param keep takes the view and the offer, when both are good
  /// @return whether this is the parameter for that object
  template <class Keep>
  bool take(nb::handle object, nb::detail::cleanup_list* cleanup, Keep&& keep) noexcept {
    const nb::object alive = nb::borrow(object);  // its __dlpack__ may empty the list it is in
    try {
      return try_to_take(object, cleanup, keep);
    } catch (nb::python_error&) {
      refused_ = std::current_exception();
      try {
        record_refusal(object, cleanup, refused_);
      } catch (...) {
        refused_ = std::current_exception();
      }
      return true;
    } catch (...) {
      refused_ = std::current_exception();
      return true;
    }
  }

  /// Whether `check` throws nothing. A container asks before it takes an element's view, which
  /// must not throw there.
  bool is_good() const noexcept { return refused_ == nullptr; }

  /// @throws nb::python_error what was wrong, if anything
  void check() const {
    if (refused_ != nullptr) {
      try {
        std::rethrow_exception(refused_);
      } catch (const conversion_error& error) {
        set_error(error);
      }
      throw nb::python_error();
    }
  }

 private:
  template <class Keep>
  static bool try_to_take(nb::handle object, nb::detail::cleanup_list* cleanup, Keep& keep) {
    array_offer array(object);
    if (!array.is_array()) {
      return false;
    }
    try {
      keep(view_of<View>(array), array);
      record_taken(object, cleanup);
      return true;
    } catch (const conversion_error& error) {
      record_refusal(object, cleanup, std::current_exception());
      if (!is_of_type(error.code())) {
        throw;
      }
      return false;
    }
  }

  std::exception_ptr refused_;
};

}  // namespace usm_dlpack::detail
