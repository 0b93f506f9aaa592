// SPDX-License-Identifier: Apache-2.0
//
// What pybind11's casters have in common: the value of an argument, and whether another
// overload took the same array.
#pragma once

#include <usm_dlpack/pybind11/load.hpp>
#include <usm_dlpack/python/error.hpp>

#include <pybind11/pybind11.h>

#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace usm_dlpack::detail {

/// Notes of the arrays that overloads took in pybind11's first round, in which nothing is
/// converted. In the second round an overload of another type then leaves the array to them.
/// pybind11 does not tell a caster which call it is in, so a note has the place in the Python
/// code that calls. The objects are compared, never used.
class taken_arrays {
 public:
  static void add(pybind11::handle array) {
    notes()[next()++ % count] = {place_of_call(), array.ptr()};
  }
  static bool has(pybind11::handle array) {
    const place here = place_of_call();
    for (const note& known : notes()) {
      if (known.array == array.ptr() && known.where == here) {
        return true;
      }
    }
    return false;
  }
  /// A function or a container takes the array: mostly the call's end.
  static void use(pybind11::handle array) noexcept {
    for (note& known : notes()) {
      known.used = known.used || known.array == array.ptr();
    }
  }
  /// An overload sees an object in a first round. If a note of it was used, the call is a new
  /// one, perhaps for another array at the same address.
  static void forget_used(pybind11::handle array) noexcept {
    for (note& known : notes()) {
      if (known.used && known.array == array.ptr()) {
        known = {};
      }
    }
  }

 private:
  using place = std::pair<PyFrameObject*, long>;
  struct note {
    place where;
    PyObject* array = nullptr;
    bool used = false;
  };
  static constexpr std::size_t count = 8;

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
    if (!convert) {
      taken_arrays::forget_used(object);
    }
    if (object.is_none()) {
      return convert;  // as pybind11: in the first round another overload may take None
    }
    return thrown_by_pybind11(take);
  }

  std::optional<Value> value;

 private:
  Value& get() {
    if (!value) {
      throw pybind11::reference_cast_error();
    }
    taken_arrays::use(object_);
    return *value;
  }

  pybind11::handle object_;
};

}  // namespace usm_dlpack::detail
