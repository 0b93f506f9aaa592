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
#include <tuple>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Notes of how much of each view fitted an array in pybind11's first round over the
/// overloads, in which nothing is converted: in the second round the array is left to the view
/// that fits best. pybind11 does not tell a caster which call it is in, so a note has the
/// place in the Python code that calls. A first round after a second round is mostly a new
/// call; in doubt an overload leaves the array. The objects are compared, never used.
class array_notes {
 public:
  /// Frame, code (another frame may be at the same address later), and instruction.
  using place = std::tuple<const void*, const void*, long>;

  /// Whether an overload leaves an array to another one.
  /// @param view tells the views apart
  /// @param here is set to the place of the call if there are notes of the array
  static bool leaves(pybind11::handle array, bool convert, const void* view, fit reached,
                     std::optional<place>& here) {
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
    if (convert && (own == nullptr || own->loads == 0 || own->reached != reached)) {
      // Not seen in the first round: there was none, or it ended at an argument before this.
      return is_behind_none() && reached != fit::type;
    }
    if (own == nullptr || (!convert && own->is_old)) {
      own = own == nullptr ? &notes()[next()++ % count] : own;
      *own = {here ? *here : here.emplace(place_of_call()), array.ptr(), view, reached};
    }
    own->loads += convert ? -1 : 1;
    const bool was_old = std::exchange(own->is_old, false);  // seen again: it is of this call
    return reached != fit::type && (!convert || was_old || reached < most);
  }
  /// None was refused in the first round, and is an argument of this overload, which may
  /// refuse it again: arrays behind it are left to others.
  static void leave_behind_none() {
    is_behind_none() = true;
    pybind11::detail::loader_life_support::add_patient(pybind11::capsule(
        &is_behind_none(), [](void* is_behind) { *static_cast<bool*>(is_behind) = false; }));
  }
  /// A function or a container takes an array by value: mostly the call's end.
  static void settle(const place& call) noexcept {
    for (note& known : notes()) {
      known.is_settled = known.is_settled || known.where == call;
    }
  }
  /// A function takes an array: the call's end, unless another argument is None.
  static void forget_without_none(const place& call) noexcept {
    if (!is_behind_none()) {
      forget(call);
    }
  }
  /// An overload raises an error: the call's end.
  static void forget_call() { forget(place_of_call()); }

 private:
  struct note {
    place where;
    PyObject* array = nullptr;
    const void* view = nullptr;
    fit reached = fit::nothing;
    int loads = 0;            // in the first round, less those in the second
    bool is_settled = false;  // the second round has begun, or the array was taken by value
    bool is_old = false;
  };
  static constexpr std::size_t count = 64;

  static void forget(const place& call) noexcept {
    for (note& known : notes()) {
      if (known.where == call) {
        known = {};
      }
    }
  }
  static std::array<note, count>& notes() noexcept {
    static thread_local std::array<note, count> kept{};
    return kept;
  }
  static bool& is_behind_none() noexcept {
    static thread_local bool kept = false;
    return kept;
  }
  static std::size_t& next() noexcept {
    static thread_local std::size_t kept = 0;
    return kept;
  }
  static place place_of_call() {
    PyFrameObject* const frame = PyEval_GetFrame();
    if (frame == nullptr) {
      return {nullptr, nullptr, 0};
    }
    const pybind11::handle here(reinterpret_cast<PyObject*>(frame));
    const pybind11::object code = here.attr("f_code");
    const pybind11::object last = here.attr("f_lasti");
    return {frame, code.ptr(), PyLong_AsLong(last.ptr())};
  }
};

/// The value of an argument; none for None.
template <class Value>
class argument_value {
 public:
  template <class T>
  using cast_op_type = pybind11::detail::movable_cast_op_type<T>;

  operator Value*() { return value ? &static_cast<Value&>(*this) : nullptr; }
  operator Value&() {
    if (noted_) {
      array_notes::forget_without_none(*noted_);
    }
    return get();
  }
  operator Value&&() && {
    if (noted_) {
      array_notes::settle(*noted_);
    }
    return std::move(get());
  }

 protected:
  /// Does what `load` of a caster must do.
  /// @param take sets `value`, and returns whether it took the object
  template <class Take>
  bool load_by(pybind11::handle object, bool convert, const Take& take) {
    value.reset();
    if (object.is_none()) {
      leaves(object, convert, nullptr, fit::nothing);
      if (convert && noted_) {
        array_notes::leave_behind_none();
      }
      return convert;  // as pybind11: in the first round another overload may take None
    }
    try {
      return thrown_by_pybind11(take);
    } catch (...) {
      array_notes::forget_call();
      throw;
    }
  }
  /// Whether the overload leaves an array to another one.
  bool leaves(pybind11::handle array, bool convert, const void* view, fit reached) {
    noted_.reset();
    return array_notes::leaves(array, convert, view, reached, noted_);
  }

  std::optional<Value> value;

 private:
  Value& get() {
    if (!value) {
      throw pybind11::reference_cast_error();
    }
    return *value;
  }

  std::optional<array_notes::place> noted_;
};

}  // namespace usm_dlpack::detail
