// SPDX-License-Identifier: Apache-2.0
//
// An array that Python passes as an argument: compared with the type of a view, proved and
// kept alive; and a view with an owner as a result.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/managed.hpp>
#include <usm_dlpack/core/structure.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>
#include <usm_dlpack/core/view.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/python/signature.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/queues.hpp>
#include <usm_dlpack/sycl/to_mdspan.hpp>
#include <usm_dlpack/sycl/usm_array.hpp>
#include <usm_dlpack/sycl/validate.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace usm_dlpack::detail {

/// What a view's type requires of a tensor.
template <class View>
requirements requirements_of() {
  requirements wanted = require_kind<View>({});
  wanted.dtype = data_type_v<typename View::element_type>;
  wanted.ndim = static_cast<std::int32_t>(View::rank());
  return wanted;
}

/// An array as an argument for a view.
class array_offer {
 public:
  /// @throws python_exception for an error that is no refusal of this package
  array_offer(PyObject* array, const requirements& wanted)
      : answer_(package_interface::get().ask(array, wanted, tensor_)) {
    if (answer_ == offer::failed) {
      throw python_exception();
    }
    if (answer_ == offer::refused) {
      refusal_.emplace();
    }
  }

  bool is_array() const noexcept { return answer_ != offer::no_array; }
  /// Whether the dtype or the rank is not the view's.
  bool is_of_other_type() const noexcept { return answer_ == offer::other_type; }
  /// The Python error if the package refuses the array.
  const std::optional<python_exception>& refusal() const noexcept { return refusal_; }
  bool is_on_host() const noexcept { return tensor_.is_on_host(); }
  DLDataType dtype() const noexcept { return tensor_.described.dtype; }
  PyObject* owner() const noexcept { return std::get<python_object>(tensor_.owner).get(); }

  /// @throws conversion_error if the tensor's type, extents or layout are not the view's, or
  ///         its elements overlap and the view's are mutable
  template <class View>
  View view() const {
    const subbyte storage = tensor_.storage();
    if (is_of_other_type()) {
      detail::check_element_type<View>(tensor_.described, storage);
      detail::check_rank<View>(tensor_.described);
    }
    return detail::make_view_of_array<View>(tensor_.described, tensor_.structure(), storage);
  }

  /// Waits for all work on the array, so that its values are finished.
  void wait() const { wait(true); }
  /// A view of the array that keeps it alive. Waits for all work but that of its own queue.
  template <class View>
  owned_view<View> own(const View& view) const {
    wait(false);
    return {view, keeper(), queue()};
  }
  /// The array, whatever its type, that keeps it alive. Waits likewise.
  any_view own() const {
    wait(false);
    return {tensor_.proof, queue(), keeper()};
  }

 private:
  void wait(bool own) const {
    package_interface::rethrow(package_interface::get().wait_for_array(tensor_, own));
  }
  /// The array's queue; the package's if it has none, because then its work has finished.
  const sycl::queue& queue() const {
    if (tensor_.queue) {
      return *tensor_.queue;
    }
    const sycl::queue* found = package_interface::get().queue_on(tensor_.proof.device_id());
    if (found == nullptr) {
      throw python_exception();
    }
    return *found;
  }
  managed_tensor keeper() const {
    return usm_dlpack::to_managed_tensor(tensor_.described, python_owner(owner()),
                                         tensor_.flags & ~flag::is_copied);
  }

  proved_tensor tensor_;
  offer answer_;
  std::optional<python_exception> refusal_;
};

/// How much of a view's type fits an array. If all does, the array is taken, or refused for a
/// reason that has nothing to do with the type.
enum class fit { nothing, dtype, dtype_and_rank, type };

/// Whether a rule is of the rest of a view's type, after dtype and rank.
constexpr bool is_of_type(errc rule) noexcept {
  return rule == errc::extent_mismatch || rule == errc::index_type_too_small ||
         rule == errc::layout_mismatch || rule == errc::overlapping;
}

/// The Python exception of a refusal.
inline python_exception exception_of(const conversion_error& refused) {
  set_error(refused);
  return python_exception();
}

/// The name of a variable of the calling Python code that holds an object; null for none.
/// Names that begin with `_` do not count: an interactive shell has such ones for results.
/// Before Python 3.13, a function that goes on after this keeps its variables until it
/// returns.
inline python_object name_in_caller(PyObject* object) {
  auto* const frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  for (const char* const scope : {"f_locals", "f_globals"}) {
    const python_object variables(frame == nullptr ? nullptr
                                                   : PyObject_GetAttrString(frame, scope));
    const python_object items(variables ? PyMapping_Items(variables.get()) : nullptr);
    const Py_ssize_t count = items ? PyList_Size(items.get()) : 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const item = PyList_GetItem(items.get(), i);
      PyObject* const name = PyTuple_GetItem(item, 0);
      if (PyTuple_GetItem(item, 1) == object && PyUnicode_Check(name) != 0 &&
          PyUnicode_GetLength(name) > 0 && PyUnicode_ReadChar(name, 0) != '_') {
        return borrow(name);
      }
    }
  }
  PyErr_Clear();
  return nullptr;
}

/// The Python exception of a refused argument. Its text begins with the caller's name of the
/// array, because neither nanobind nor pybind11 tells the names of the function and the
/// argument, and with what the function takes.
inline python_exception refusal_of_parameter(python_exception refused, PyObject* object,
                                             const char* wanted, const char* end) {
  const python_object name = name_in_caller(object);
  const python_object text = checked(
      name ? PyUnicode_FromFormat("%U (%s): %S%s", name.get(), wanted, refused.value(), end)
           : PyUnicode_FromFormat("%s: %S%s", wanted, refused.value(), end));
  const python_object arguments = checked(PyTuple_Pack(1, text.get()));
  if (PyObject_SetAttrString(refused.value(), "args", arguments.get()) != 0) {
    throw python_exception();
  }
  return refused;
}

/// The same for a view. If it is mutable, the text warns of what a remedy that copies would
/// lose.
template <class View>
python_exception refusal_of_parameter(python_exception refused, PyObject* object) {
  return refusal_of_parameter(std::move(refused), object, view_text<View>.characters,
                              has_const_elements<View> ? "" : if_copied);
}

/// The refusal of another dtype, if the caller needs more than a conversion: an object without
/// a dtype, like `dpctl.memory`, counts as bytes, and an array in host memory needs a copy.
template <class View>
conversion_error refusal_of_dtype(const conversion_error& refused, bool is_on_host) {
  const std::string name = detail::name_of(data_type_v<typename View::element_type>);
  const char* const shape = View::rank() == 1 ? ")" : ", shape=s), where s is its shape";
  return {refused.code(),
          {refused.field(), refused.expected(),
           refused.found() + (is_on_host ? " in host memory" : ", bytes without a dtype"),
           is_on_host ? "pass usm_dlpack.from_dlpack(numpy.asarray(x, \"" + name +
                            "\"), device=(14, 0)), a copy"
                      : "pass usm_dlpack.to_dlpack_tensor(x, dtype=\"" + name + "\"" + shape}};
}

/// Ends the process with a sentence where a cast would crash without one.
inline void require_gil() noexcept {
  if (PyGILState_Check() == 0) {
    Py_FatalError(
        "usm_dlpack: GIL: expected that a cast to or from Python holds it, found it released; "
        "cast before gil_scoped_release, or under gil_scoped_acquire, also in a thread of "
        "your own");
  }
}

/// Imports an argument for a view: compares it with the view's type, and proves it.
/// @param leaves is told what fits, and returns whether the array is left to another overload
/// @param use takes the view and the offer
/// @return whether the array was taken
/// @throws python_exception, conversion_error
template <class View, class Leaves, class Use>
bool take_array(PyObject* object, const Leaves& leaves, const Use& use) {
  require_gil();
  const python_object alive = borrow(object);  // __dlpack__ may remove it from its list
  const array_offer array(object, requirements_of<View>());
  const bool has_dtype =
      same_data_type(array.dtype(), data_type_v<typename View::element_type>);
  if (!array.is_array() ||
      (array.is_of_other_type() && leaves(has_dtype ? fit::dtype : fit::nothing))) {
    return false;
  }
  if (array.refusal()) {
    leaves(fit::type);
    throw refusal_of_parameter<View>(*array.refusal(), object);
  }
  try {
    use(array.template view<View>(), array);
  } catch (const conversion_error& refused) {
    if (!array.is_of_other_type() &&
        leaves(is_of_type(refused.code()) ? fit::dtype_and_rank : fit::type)) {
      return false;
    }
    const bool is_bytes = array.is_of_other_type() &&
                          same_data_type(array.dtype(), data_type_v<std::uint8_t>) &&
                          PyObject_HasAttrString(object, "__dlpack__") == 0;
    const bool is_host_dtype = refused.code() == errc::dtype_mismatch && array.is_on_host() &&
                               is_of_numpy(data_type_v<typename View::element_type>);
    throw refusal_of_parameter<View>(
        exception_of(is_bytes || is_host_dtype
                         ? detail::refusal_of_dtype<View>(refused, is_host_dtype)
                         : refused),
        object);
  }
  leaves(fit::type);
  return true;
}

/// Imports an argument for an `any_view`, likewise. @param note is called for every array
template <class Note, class Use>
bool take_any(PyObject* object, const Note& note, const Use& use) {
  require_gil();
  const python_object alive = borrow(object);
  const array_offer array(object, {});
  if (!array.is_array()) {
    return false;
  }
  note();
  if (array.refusal()) {
    throw refusal_of_parameter(*array.refusal(), object, "array of any type", if_copied);
  }
  use(array);
  return true;
}

/// The Python object that owns the memory of a managed tensor of this module, borrowed; null
/// for another owner.
inline PyObject* python_owner_of(const DLManagedTensorVersioned& managed) noexcept {
  using block = managed_block<DLManagedTensorVersioned, python_owner>;
  return managed.deleter == &block::destroy
             ? static_cast<const block*>(managed.manager_ctx)->owner.get()
             : nullptr;
}

/// Makes a proved DLPackTensor.
/// @param wanted the USM kinds that the result's type may have
template <class Owned>
python_object make_tensor(Owned result, const requirements& wanted) {
  require_gil();
  if (result.managed() == nullptr) {
    refuse(errc::request_unsupported, "return", "a view with an owner",
           "one that was moved from or released", "return it before that");
  }
  const sycl::queue& queue = result.queue();
  PyObject* const owner = python_owner_of(*result.managed());
  return checked(package_interface::get().make_tensor(std::move(result).release().release(),
                                                      owner, queue, wanted));
}

// The results of functions: null with the Python error set if they are refused.
template <class View>
PyObject* to_python(owned_view<View>&& result) noexcept {
  return made_or_error([&] { return make_tensor(std::move(result), require_kind<View>({})); });
}
template <class View>
PyObject* to_python(usm_array<View>&& result) noexcept {
  return made_or_error([&] {
    return make_tensor(owned_view<View>(std::move(result)), require_kind<View>({}));
  });
}
inline PyObject* to_python(any_view&& result) noexcept {
  return made_or_error([&] { return make_tensor(std::move(result), {}); });
}

}  // namespace usm_dlpack::detail
