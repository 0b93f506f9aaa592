// SPDX-License-Identifier: Apache-2.0
//
// What pybind11's casters have in common: the value of an argument, and which overload an
// array fits best.
#pragma once

#include <usm_dlpack/pybind11/load.hpp>
#include <usm_dlpack/python/argument.hpp>
#include <usm_dlpack/python/error.hpp>

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Notes of how much of each view fitted an array in pybind11's first round over the
/// overloads, in which nothing is converted: in the second round the array is left to the view
/// that fits best. pybind11 does not tell a caster which call it is in, so a note has the
/// place in the Python code that calls. A first round after a second round or a use is mostly
/// a new call; in doubt an overload leaves the array. The objects are compared, never used.
class array_notes {
 public:
  /// Whether an overload leaves an array to another one.
  /// @param view tells the views apart
  static bool leaves(pybind11::handle array, bool convert, const void* view, fit reached) {
    std::optional<place> here;
    note* own = nullptr;
    fit most = fit::nothing;
    for (note& known : notes()) {
      if (known.array != array.ptr() ||
          known.where != (here ? *here : here.emplace(place_of_call()))) {
        continue;
      }
      known.is_old = known.is_old || (!convert && known.is_settled);
      known.is_settled = convert;
      most = known.is_old ? most : std::max(most, known.reached);
      own = known.view == view ? &known : own;
    }
    if (convert && (own == nullptr || own->loads == 0)) {
      return false;  // not seen in the first round
    }
    if (own == nullptr || (!convert && own->is_old)) {
      own = own == nullptr ? &notes()[next()++ % count] : own;
      *own = {here ? *here : place_of_call(), array.ptr(), view, reached};
    }
    own->loads += convert ? -1 : 1;
    return reached != fit::type && (!convert || own->is_old || reached < most);
  }
  /// A function or a container takes the array: mostly the call's end.
  static void use(pybind11::handle array) noexcept {
    for (note& known : notes()) {
      known.is_settled = known.is_settled || known.array == array.ptr();
    }
  }
  /// An overload raises an error: the call's end.
  static void forget_call() {
    const place here = place_of_call();
    for (note& known : notes()) {
      if (known.where == here) {
        known = {};
      }
    }
  }

 private:
  using place = std::pair<PyFrameObject*, long>;
  struct note {
    place where;
    PyObject* array = nullptr;
    const void* view = nullptr;
    fit reached = fit::nothing;
    int loads = 0;            // in the first round, less those in the second
    bool is_settled = false;  // the second round has begun, or the array was used
    bool is_old = false;
  };
  static constexpr std::size_t count = 64;

  static std::array<note, count>& notes() noexcept {
    static thread_local std::array<note, count> kept{};
    return kept;
  }
  static std::size_t& next() noexcept {
    static thread_local std::size_t kept = 0;
    return kept;
  }
  static place place_of_call() {
    PyFrameObject* const frame = PyEval_GetFrame();
    if (frame == nullptr) {
      return {nullptr, 0};
    }
    const pybind11::object code =
        pybind11::handle(reinterpret_cast<PyObject*>(frame)).attr("f_lasti");
    return {frame, PyLong_AsLong(code.ptr())};
  }
};

/// The value of an argument; none for None.
template <class Value>
class argument_value {
 public:
  template <class T>
  using cast_op_type = pybind11::detail::movable_cast_op_type<T>;

  operator Value*() { return value ? &get() : nullptr; }
  operator Value&() { return get(); }
  operator Value&&() && { return std::move(get()); }

 protected:
  /// Does what `load` of a caster must do.
  /// @param take sets `value`, and returns whether it took the object
  template <class Take>
  bool load_by(pybind11::handle object, bool convert, const Take& take) {
    value.reset();
    object_ = object;
    if (object.is_none()) {
      return convert;  // as pybind11: in the first round another overload may take None
    }
    try {
      return thrown_by_pybind11(take);
    } catch (...) {
      array_notes::forget_call();
      throw;
    }
  }

  std::optional<Value> value;

 private:
  Value& get() {
    if (!value) {
      throw pybind11::reference_cast_error();
    }
    array_notes::use(object_);
    return *value;
  }

  pybind11::handle object_;
};

}  // namespace usm_dlpack::detail
