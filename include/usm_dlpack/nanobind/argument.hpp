// SPDX-License-Identifier: Apache-2.0
//
// What a caster keeps of an argument: the value, or an error that is raised when the function
// takes it. Casters must not throw, and nanobind may still choose another overload.
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

/// What a caster keeps of an argument until the function takes it: a value, nothing for None,
/// or an error.
template <class Value>
class kept_argument {
 public:
  template <class T>
  using Cast = nb::detail::movable_cast_t<T>;

  /// Whether the value can be taken without throwing. Casters of containers ask this first.
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
  kept_argument() = default;
  kept_argument(const kept_argument&) = delete;
  kept_argument& operator=(const kept_argument&) = delete;
  ~kept_argument() {
    if (leaves_error_) {  // nb::cast has raised it, and nb::try_cast ignores it
      PyErr_Clear();
    }
  }

  /// Does what `from_python` of a caster must do.
  /// @param call null for `nb::isinstance`
  /// @param take sets `value`, and returns whether it took the object
  template <class Take>
  bool keep(nb::handle object, std::uint32_t flags, const nb::detail::cleanup_list* call,
            Take&& take) noexcept {
    const bool is_argument = call != nullptr && !is_cast(flags);
    value.reset();  // a container takes all elements with one caster
    error_.reset();
    if (is_argument && object.is_none()) {
      return true;
    }
    try {
      return take();
    } catch (...) {
      made_or_error([]() -> python_object { throw; });
    }
    value.reset();
    leaves_error_ = is_cast(flags);
    if (!leaves_error_) {
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
  bool leaves_error_ = false;
};

}  // namespace usm_dlpack::detail
