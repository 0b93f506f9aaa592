// SPDX-License-Identifier: Apache-2.0
//
// The last overload of a function: it says why the others did not take an argument, instead of
// nanobind's "incompatible function arguments".
#pragma once

#include <usm_dlpack/package_interface.hpp>
#include <usm_dlpack/recorded_refusals.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// Looks for an object in lists, tuples and values of dictionaries, in each other. Runs no
/// Python code, and ends also where they hold themselves.
class object_search {
 public:
  explicit object_search(PyObject* wanted) noexcept : wanted_(wanted) {}

  /// Whether an argument is the object, or holds it.
  bool finds_in(PyObject* here, int depth = 0) {
    if (here == wanted_) {
      return true;
    }
    if (depth == deepest || ++looks_ > most_looks) {
      return false;
    }
    const nb::ft_object_guard alone{nb::handle(here)};
    if (PyList_Check(here) != 0) {
      for (Py_ssize_t i = 0; i < PyList_Size(here); ++i) {
        if (finds_in(PyList_GetItem(here, i), depth + 1)) {
          return true;
        }
      }
    } else if (PyTuple_Check(here) != 0) {
      for (Py_ssize_t i = 0; i < PyTuple_Size(here); ++i) {
        if (finds_in(PyTuple_GetItem(here, i), depth + 1)) {
          return true;
        }
      }
    } else if (PyDict_Check(here) != 0) {
      Py_ssize_t position = 0;
      for (PyObject* value = nullptr; PyDict_Next(here, &position, nullptr, &value) != 0;) {
        if (finds_in(value, depth + 1)) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  static constexpr int deepest = 8, most_looks = 1000000;
  PyObject* wanted_;
  int looks_ = 0;
};

/// The type of a parameter that takes nothing before the second round of a call, in which
/// nanobind lets arguments be converted implicitly: so the other overloads come first.
struct second_round {
  const void* call = nullptr;  ///< which call it is, for its refusals
};

/// Whether a rule is one of the view's type, for which another overload may have another view.
constexpr bool is_of_type(errc rule) noexcept {
  return rule == errc::dtype_mismatch || rule == errc::rank_mismatch ||
         rule == errc::extent_mismatch || rule == errc::index_type_too_small ||
         rule == errc::layout_mismatch;
}

/// Whether an object is one argument of a call, and stands nowhere else in it.
inline bool is_one_argument(PyObject* object, const nb::args& args, const nb::kwargs& kwargs) {
  int places = 0;
  bool is_argument = false;
  const auto look = [&](nb::handle argument) {
    places += object_search(object).finds_in(argument.ptr()) ? 1 : 0;
    is_argument = is_argument || argument.ptr() == object;
  };
  for (const nb::handle argument : args) {
    look(argument);
  }
  for (const auto [name, argument] : kwargs) {
    look(argument);
  }
  return is_argument && places == 1;
}

/// Raises again what no other overload could have mended: what an array raised by itself (an
/// interrupt is not an argument's fault), and a refusal that is not of the view's type.
/// @param is_at_fault whether an argument is, as far as is known
template <class Predicate>
void raise_what_is_not_of_type(const std::vector<recorded_refusal>& records,
                               const Predicate& is_at_fault) {
  for (const recorded_refusal& record : records) {
    try {
      record.raise_again();
    } catch (const conversion_error& reason) {
      if (!is_of_type(reason.code()) && is_at_fault(record)) {
        set_error(reason);
        throw nb::python_error();
      }
    }
  }
}

/// Raises what the overloads of a function said of its arguments.
[[noreturn]] inline void raise_refusals(const std::string& function, const nb::args& args,
                                        second_round round, const nb::kwargs& kwargs) {
  const std::vector<recorded_refusal> records = refusals_of(round.call);
  // Where an overload took an argument, another one was the fault. Which of several places it
  // was taken in, nobody said.
  const auto is_at_fault = [&](const recorded_refusal& record) {
    return !was_taken(records, record.argument.ptr()) ||
           !is_one_argument(record.argument.ptr(), args, kwargs);
  };
  raise_what_is_not_of_type(records, is_at_fault);
  nb::list reasons;
  for (const recorded_refusal& record : records) {
    if (record.reason == nullptr || !is_at_fault(record)) {
      continue;
    }
    // An object that stands in several places was refused in one of them; which, nobody said.
    // One that a container made for the call stands in none, and has its reason all the same.
    nb::object place;
    const auto add = [&](nb::handle here, nb::handle argument) {
      if (object_search(record.argument.ptr()).finds_in(argument.ptr())) {
        place = place.is_valid() ? nb::object(nb::str("{} or {}").format(place, here))
                                 : nb::borrow(here);
      }
    };
    std::size_t position = 0;
    for (const nb::handle argument : args) {
      add(nb::int_(++position), argument);
    }
    for (const auto [name, argument] : kwargs) {
      add(name, argument);
    }
    if (!place.is_valid()) {
      place = nb::none();
    }
    try {
      record.raise_again();
    } catch (const conversion_error& reason) {
      reasons.append(nb::make_tuple(place, to_string(reason.code()), reason.field().c_str(),
                                    reason.expected().c_str(), reason.found().c_str(),
                                    reason.remedy().c_str()));
    }
  }
  const nb::object made = nb::module_::import_("usm_dlpack._errors")
                              .attr("from_arguments")(function.c_str(), args, kwargs, reasons);
  PyErr_SetObject(made.type().ptr(), made.ptr());
  throw nb::python_error();
}

/// Whether a class has a static method of a name, whose last overload must be one too.
inline bool is_static_method(nb::handle scope, const char* name) {
  const nb::object found = nb::getattr(scope, name, nb::none());
  const nb::str type(found.type().attr("__name__"));
  return std::strcmp(type.c_str(), "nb_func") == 0;  // that of a method is nb_method
}

}  // namespace detail

/// Adds the last overload of a function, which takes what no other overload took and raises
/// `usm_dlpack.ArgumentError` (a TypeError): it says of each argument which rule the views of
/// the other overloads refused it by, unless one of them took it. What is wrong with an array
/// whatever the view's type is (device, context, USM kind, bounds, read-only), is raised as
/// itself, a `usm_dlpack.ConversionError`. To be called after the last `def` of that name.
/// @param scope a `nanobind::module_` or `nanobind::class_`
/// @param name of a function, a method or a static method
template <class Scope>
void explain_refusals(Scope& scope, const char* name) {
  namespace nb = nanobind;
  constexpr bool is_module = std::is_base_of_v<nb::module_, Scope>;
  const bool is_bound = !is_module && !detail::is_static_method(scope, name);
  const std::string function = name;
  // For type checkers: takes nothing.
  const std::string signature = "def " + function + "(" + (is_bound ? "self, " : "") +
                                "*, _: typing.NoReturn) -> typing.NoReturn";
  const auto last = nb::arg("_").none() = nb::none();
  const auto refuse = [function](const nb::args& args, detail::second_round round,
                                 const nb::kwargs& kwargs) {
    detail::raise_refusals(function, args, round, kwargs);
  };
  const auto add = [&](auto&& define, const auto& body) {
    define(name, body, nb::arg("args"), last, nb::arg("kwargs"), nb::sig(signature.c_str()));
  };
  if constexpr (is_module) {
    add([&](const auto&... parts) { scope.def(parts...); }, refuse);
  } else if (is_bound) {
    add([&](const auto&... parts) { scope.def(parts...); },
        [refuse](nb::handle, const nb::args& args, detail::second_round round,
                 const nb::kwargs& kwargs) { refuse(args, round, kwargs); });
  } else {
    add([&](const auto&... parts) { scope.def_static(parts...); }, refuse);
  }
}

}  // namespace usm_dlpack

namespace nanobind::detail {

template <>
struct type_caster<usm_dlpack::detail::second_round> {
  NB_TYPE_CASTER(usm_dlpack::detail::second_round, const_name("None"))
  bool from_python(handle, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    value.call = cleanup;
    return (flags & static_cast<std::uint32_t>(cast_flags::convert)) != 0;
  }
};

}  // namespace nanobind::detail
