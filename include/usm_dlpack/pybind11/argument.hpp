// SPDX-License-Identifier: Apache-2.0
//
// The base of pybind11's casters: stores the value of an argument. What both bindings need is
// in python/argument.hpp.
#pragma once

#include <usm_dlpack/pybind11/load.hpp>

#include <pybind11/pybind11.h>

#include <optional>
#include <utility>

namespace usm_dlpack::detail {

/// The value of an argument; none for None.
template <class Value>
class argument_value {
 public:
  template <class T>
  using cast_op_type = pybind11::detail::movable_cast_op_type<T>;

  operator Value*() { return value ? &*value : nullptr; }
  operator Value&() {
    if (!value) {
      throw pybind11::reference_cast_error();
    }
    return *value;
  }
  operator Value&&() && { return std::move(static_cast<Value&>(*this)); }

 protected:
  /// Does what `load` of a caster must do.
  /// @param assign sets `value`, or returns false for an object of another type
  template <class Assign>
  bool load_by(pybind11::handle object, bool convert, const Assign& assign) {
    value.reset();  // a container loads all elements with one caster
    if (object.is_none()) {
      return convert;  // as pybind11: in the first round another overload may accept None
    }
    return with_pybind11_errors(assign);
  }

  std::optional<Value> value;
};

}  // namespace usm_dlpack::detail
