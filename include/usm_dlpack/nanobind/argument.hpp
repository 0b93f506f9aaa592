// SPDX-License-Identifier: Apache-2.0
//
// What a caster keeps of an argument: the value, or an error that is raised when the function
// would take it. Casters must not throw, and nanobind may still choose another overload.
#pragma once

#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/package.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace usm_dlpack::detail {

namespace nb = nanobind;

/// Whether nanobind is in the first of its two rounds over the overloads, or was told
/// `"x"_a.noconvert()`. A function without overloads has only the second round.
inline bool is_first_round(std::uint32_t flags) noexcept {
  return (flags & static_cast<std::uint32_t>(nb::detail::cast_flags::convert)) == 0;
}

/// Whether an object is converted by `nb::cast`, and not as an argument.
inline bool is_cast(std::uint32_t flags) noexcept {
  return (flags & static_cast<std::uint32_t>(nb::detail::cast_flags::manual)) != 0;
}

/// Raises an interrupt that nobody raised, as soon as this thread runs Python code again.
/// @pre the GIL is held
inline void raise_interrupt(const nb::python_error& dropped) noexcept {
  if (!dropped.matches(PyExc_Exception)) {
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), dropped.type().ptr());
  }
}

/// The error of the first argument that has one, which is raised: a function may take its last
/// argument first.
struct kept_error {
  const nb::detail::cleanup_list* call = nullptr;  ///< tells calls apart
  std::optional<nb::python_error>* error = nullptr;
};
inline kept_error& first_error() noexcept {
  thread_local kept_error first;
  return first;
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
    if (leaves_error_ && PyErr_Occurred() != nullptr) {  // nb::try_cast ignores it
      error_.emplace();
    }
    if (error_) {
      raise_interrupt(*error_);
    }
    if (first_error().error == &error_) {
      first_error() = {};
    }
  }

  /// Does what `from_python` of a caster must do.
  /// @param call null for `nb::isinstance`, which is told false where `nb::cast` would throw
  /// @param take sets `value`, and returns whether it took the object; if not, for `nb::cast`,
  ///        with a TypeError set
  template <class Take>
  bool keep(nb::handle object, std::uint32_t flags, const nb::detail::cleanup_list* call,
            Take&& take) noexcept {
    const bool is_argument = call != nullptr && !is_cast(flags);
    value.reset();
    if (is_argument && object.is_none()) {
      return true;
    }
    try {
      if (take()) {
        return true;
      }
      if (!is_cast(flags)) {
        return false;
      }
      leaves_error_ = true;
    } catch (...) {
      made_or_error([]() -> python_object { throw; });
      leaves_error_ = is_cast(flags);
      if (!leaves_error_) {
        error_.emplace();
        call_ = call;
        if (kept_error& first = first_error(); first.error == nullptr || first.call != call) {
          first = {call, &error_};
        }
      }
    }
    return is_argument;
  }

  std::optional<Value> value;  // reset first: a container takes all elements with one caster

 private:
  void check() {
    if (error_) {
      const kept_error& first = first_error();
      auto& raised = first.call == call_ && *first.error ? *first.error : error_;
      throw nb::python_error(*std::exchange(raised, std::nullopt));
    }
  }
  Value& get() {
    check();
    if (!value) {  // None
      throw nb::next_overload();
    }
    return *value;
  }

  bool leaves_error_ = false;
  std::optional<nb::python_error> error_;
  const nb::detail::cleanup_list* call_ = nullptr;
};

}  // namespace usm_dlpack::detail
