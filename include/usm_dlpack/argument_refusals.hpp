// SPDX-License-Identifier: Apache-2.0
//
// Why a function's overloads did not take an argument: recorded as long as the call lasts, for
// the last overload, which says it instead of nanobind's "incompatible function arguments".
#pragma once

#include <usm_dlpack/package_interface.hpp>

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// One reason: an argument, which the call keeps alive, and what an overload said of it.
struct recorded_refusal {
  PyObject* argument;
  conversion_error reason;
};

inline std::vector<recorded_refusal*>& recorded_refusals() {
  thread_local std::vector<recorded_refusal*> records;
  return records;
}

inline void forget_refusal(PyObject* capsule) noexcept {
  auto* record = static_cast<recorded_refusal*>(PyCapsule_GetPointer(capsule, nullptr));
  auto& records = recorded_refusals();
  records.erase(std::remove(records.begin(), records.end(), record), records.end());
  delete record;
}

/// Records a reason until the call ends. @param cleanup of the call; null records nothing
inline void record_refusal(nb::handle argument, const conversion_error& reason,
                           nb::detail::cleanup_list* cleanup) {
  if (cleanup == nullptr) {
    return;
  }
  auto* record = new recorded_refusal{argument.ptr(), reason};
  PyObject* capsule = PyCapsule_New(record, nullptr, &forget_refusal);
  if (capsule == nullptr) {
    delete record;
    throw nb::python_error();
  }
  recorded_refusals().push_back(record);
  cleanup->append(capsule);
}

/// Whether an argument is an object, or a list or tuple that holds it.
inline bool is_or_holds(nb::handle argument, PyObject* object) {
  if (argument.ptr() == object) {
    return true;
  }
  if (PyList_Check(argument.ptr()) == 0 && PyTuple_Check(argument.ptr()) == 0) {
    return false;
  }
  for (const nb::handle element : nb::borrow<nb::sequence>(argument)) {
    if (element.ptr() == object) {
      return true;
    }
  }
  return false;
}

/// The type of a parameter that takes nothing before the second round of a call, in which
/// nanobind lets arguments be converted implicitly: so the other overloads come first.
struct second_round {};

/// Raises what the overloads of a function said of its arguments.
[[noreturn]] inline void raise_refusals(const std::string& function, const nb::args& args,
                                        const nb::kwargs& kwargs) {
  nb::list reasons;
  const auto add = [&](nb::handle place, nb::handle argument) {
    for (const recorded_refusal* record : recorded_refusals()) {
      if (is_or_holds(argument, record->argument)) {
        const conversion_error& reason = record->reason;
        reasons.append(nb::make_tuple(place, to_string(reason.code()), reason.field().c_str(),
                                      reason.expected().c_str(), reason.found().c_str(),
                                      reason.remedy().c_str()));
      }
    }
  };
  std::size_t position = 0;
  for (const nb::handle argument : args) {
    add(nb::int_(++position), argument);
  }
  for (const auto [name, argument] : kwargs) {
    add(name, argument);
  }
  const nb::object made = nb::module_::import_("usm_dlpack._errors")
                              .attr("from_arguments")(function.c_str(), args, kwargs, reasons);
  PyErr_SetObject(made.type().ptr(), made.ptr());
  throw nb::python_error();
}

}  // namespace detail

/// Adds the last overload of a function, which takes what no other overload took and raises
/// `usm_dlpack.ArgumentError` (a TypeError): it says of each argument which rule the views of
/// the other overloads refused it by. To be called after the last `def` of that name.
/// @param scope a `nanobind::module_` or `nanobind::class_`
template <class Scope>
void explain_refusals(Scope& scope, const char* name) {
  namespace nb = nanobind;
  const std::string function = name;
  // For type checkers: takes nothing.
  const std::string signature = "def " + function + "(" +
                                (std::is_base_of_v<nb::module_, Scope> ? "" : "self, ") +
                                "*, _: typing.NoReturn) -> typing.NoReturn";
  const auto last = nb::arg("_").none() = nb::none();
  if constexpr (std::is_base_of_v<nb::module_, Scope>) {
    scope.def(
        name,
        [function](const nb::args& args, detail::second_round, const nb::kwargs& kwargs) {
          detail::raise_refusals(function, args, kwargs);
        },
        nb::arg("args"), last, nb::arg("kwargs"), nb::sig(signature.c_str()));
  } else {
    scope.def(
        name,
        [function](nb::handle, const nb::args& args, detail::second_round,
                   const nb::kwargs& kwargs) {
          detail::raise_refusals(function, args, kwargs);
        },
        nb::arg("args"), last, nb::arg("kwargs"), nb::sig(signature.c_str()));
  }
}

}  // namespace usm_dlpack

namespace nanobind::detail {

template <>
struct type_caster<usm_dlpack::detail::second_round> {
  NB_TYPE_CASTER(usm_dlpack::detail::second_round, const_name("None"))
  bool from_python(handle, std::uint32_t flags, cleanup_list*) noexcept {
    return (flags & static_cast<std::uint32_t>(cast_flags::convert)) != 0;
  }
};

}  // namespace nanobind::detail
