// SPDX-License-Identifier: Apache-2.0
//
// The base of nanobind's casters: stores the value of an argument, or an error that is raised
// when the function is called with it. Casters must not throw, and nanobind may still choose
// another overload.
#pragma once

#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/package.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace usm_dlpack::detail {

namespace nb = nanobind;

/// Whether an object is converted by `nb::cast`, and not as an argument.
inline bool is_cast(std::uint32_t flags) noexcept {
  return (flags & static_cast<std::uint32_t>(nb::detail::cast_flags::manual)) != 0;
}

/// The value of an argument, nothing for None, or an error.
template <class Value>
class deferred_argument {
 public:
  template <class T>
  using Cast = nb::detail::movable_cast_t<T>;

  /// Whether the value can be read without throwing. Casters of containers query this first.
  template <class>
  bool can_cast() const noexcept {
    return value.has_value();
  }

  explicit operator Value&() { return get(); }
  explicit operator Value&&() { return std::move(get()); }
  /// Null for None, which a parameter accepts with `"x"_a.none()`.
  explicit operator Value*() {
    check();
    return value ? &*value : nullptr;
  }

 protected:
  deferred_argument() = default;
  deferred_argument(const deferred_argument&) = delete;
  deferred_argument& operator=(const deferred_argument&) = delete;
  ~deferred_argument() {
    if (sets_error_) {  // nb::cast has raised it, and nb::try_cast ignores it
      PyErr_Clear();
    }
  }

  /// Does what `from_python` of a caster must do.
  /// @param call null for `nb::isinstance`
  /// @param assign sets `value`, or returns false for an object of another type
  template <class Assign>
  bool load_by(nb::handle object, std::uint32_t flags, const nb::detail::cleanup_list* call,
               Assign&& assign) noexcept {
    const bool is_argument = call != nullptr && !is_cast(flags);
    value.reset();  // a container loads all elements with one caster
    error_.reset();
    if (is_argument && object.is_none()) {
      return true;
    }
    try {
      return assign();
    } catch (...) {
      object_or_null([]() -> python_object { throw; });
    }
    value.reset();
    sets_error_ = is_cast(flags);
    if (!sets_error_) {
      error_.emplace();
    }
    return is_argument;
  }

  std::optional<Value> value;

 private:
  void check() const {
    if (error_) {
      throw nb::python_error(*error_);
    }
  }
  Value& get() {
    check();
    if (!value) {  // None
      throw nb::next_overload();
    }
    return *value;
  }

  std::optional<nb::python_error> error_;
  bool sets_error_ = false;
};

}  // namespace usm_dlpack::detail
