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
    const note wanted{place_of_call(), array.ptr()};
    for (const note& known : notes()) {
      if (known == wanted) {
        return true;
      }
    }
    return false;
  }

 private:
  using place = std::pair<PyFrameObject*, long>;
  using note = std::pair<place, PyObject*>;
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

  operator Value*() { return value ? &*value : nullptr; }
  operator Value&() { return get(); }
  operator Value&&() && { return std::move(get()); }

 protected:
  /// Does what `load` of a caster must do.
  /// @param take sets `value`, and returns whether it took the object
  template <class Take>
  bool load_by(pybind11::handle object, bool convert, const Take& take) {
    value.reset();
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
    return *value;
  }
};

}  // namespace usm_dlpack::detail
