// SPDX-License-Identifier: Apache-2.0
//
// The error of a call that no overload takes: refusals of arguments are recorded while the
// call lasts, and the last overload raises them.
#pragma once

#include <usm_dlpack/nanobind/package.hpp>

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace usm_dlpack::detail {

/// Why an overload refused an argument: a `conversion_error`, or what the array raised.
struct recorded_refusal {
  nb::object argument;
  std::exception_ptr reason;

  [[noreturn]] void raise_again() const { std::rethrow_exception(reason); }
};

/// The refusals of one call's arguments, in the order of the overloads. Arguments are looked
/// up by address in constant time.
class call_refusals {
 public:
  explicit call_refusals(const void* call) noexcept : call_(call) {}

  const void* call() const noexcept { return call_; }
  const std::vector<recorded_refusal>& all() const noexcept { return all_; }
  bool was_refused(PyObject* argument) const { return is_taken_.count(argument) != 0; }
  /// Whether an overload took the argument after another refused it.
  bool was_taken(PyObject* argument) const {
    const auto found = is_taken_.find(argument);
    return found != is_taken_.end() && found->second;
  }

  void add(nb::handle argument, const std::exception_ptr& reason) {
    all_.push_back({nb::borrow(argument), reason});  // the reference keeps the address valid
    is_taken_.emplace(argument.ptr(), false);
  }
  void take(nb::handle argument) {
    const auto found = is_taken_.find(argument.ptr());
    if (found != is_taken_.end()) {
      found->second = true;
    }
  }

 private:
  const void* call_;
  std::vector<recorded_refusal> all_;
  std::unordered_map<PyObject*, bool> is_taken_;
};

/// The calls of this thread that have refused an argument, outermost first.
inline std::vector<call_refusals*>& calls_with_refusals() {
  thread_local std::vector<call_refusals*> calls;
  return calls;
}

/// The record of a call, or null. It lives as long as the call, even if Python code (for
/// example the garbage collector's) makes other calls meanwhile.
inline call_refusals* refusals_of(const void* call) {
  const auto& calls = calls_with_refusals();
  const auto found = std::find_if(calls.rbegin(), calls.rend(), [&](const call_refusals* one) {
    return one->call() == call;
  });
  return found == calls.rend() ? nullptr : *found;
}

inline void forget_call(PyObject* capsule) noexcept {
  const nb::error_scope keep;  // the call may be raising
  auto* ended = static_cast<call_refusals*>(PyCapsule_GetPointer(capsule, nullptr));
  auto& calls = calls_with_refusals();
  calls.erase(std::remove(calls.begin(), calls.end(), ended), calls.end());
  delete ended;
}

/// Begins the record of a call; the call's cleanup list ends it.
inline call_refusals& record_call(nb::detail::cleanup_list& cleanup) {
  auto made = std::make_unique<call_refusals>(&cleanup);
  nb::object capsule = nb::steal(PyCapsule_New(made.get(), nullptr, &forget_call));
  if (!capsule.is_valid()) {
    throw nb::python_error();
  }
  call_refusals& begun = *made.release();  // owned by the capsule
  calls_with_refusals().push_back(&begun);
  cleanup.append(capsule.release().ptr());
  return begun;
}

/// Records a refusal until the call ends.
/// @param cleanup of the call; null records nothing
inline void record_refusal(nb::handle argument, nb::detail::cleanup_list* cleanup,
                           const std::exception_ptr& reason) {
  if (cleanup != nullptr) {
    call_refusals* known = refusals_of(cleanup);
    (known != nullptr ? *known : record_call(*cleanup)).add(argument, reason);
  }
}

/// Records that an overload took an argument that another refused before. nanobind tries all
/// overloads twice, so each one runs again after the refusal; without refusals nothing is
/// stored.
inline void record_taken(nb::handle argument, nb::detail::cleanup_list* cleanup) {
  if (call_refusals* known = refusals_of(cleanup)) {
    known->take(argument);
  }
}

}  // namespace usm_dlpack::detail

namespace usm_dlpack {
namespace detail {

/// The places of a call's refused arguments: arguments themselves, or elements of lists,
/// tuples and values of dictionaries, nested. Searches without running Python code, in one
/// pass, which also ends for containers that hold themselves.
class argument_places {
 public:
  argument_places(const call_refusals& call, const nb::args& args, const nb::kwargs& kwargs)
      : call_(call) {
    for (const nb::handle argument : args) {
      names_.push_back(nb::int_(names_.size() + 1));
      look_at(argument);
    }
    for (const auto [name, argument] : kwargs) {
      names_.push_back(nb::borrow(name));
      look_at(argument);
    }
  }

  /// Whether an object has several places. All elements of a list or dictionary count as one
  /// place, because one parameter takes them.
  bool are_many(PyObject* object) const {
    const auto found = standing_.find(object);
    return found != standing_.end() && found->second.places > 1;
  }

  /// The position or name of the argument that is or holds an object ("1 or 2" for two); None
  /// if a container made the object for the call.
  nb::object name_of(PyObject* object) const {
    const auto found = standing_.find(object);
    if (found == standing_.end()) {
      return nb::none();
    }
    nb::object text;
    for (const std::size_t argument : found->second.arguments) {
      text = text.is_valid() ? nb::object(nb::str("{} or {}").format(text, names_[argument]))
                             : names_[argument];
    }
    return text;
  }

 private:
  struct standing {
    std::vector<std::size_t> arguments;
    const PyObject* holder = nullptr;  ///< the list or dictionary it was last found in
    int places = 0;
  };

  static constexpr int deepest = 8, most_looks = 1000000;

  void look_at(nb::handle argument) {
    looks_ = 0;
    walk(argument.ptr(), nullptr, 0);
  }

  void note(PyObject* object, const PyObject* holder) {
    standing& found = standing_[object];
    const std::size_t argument = names_.size() - 1;
    const bool is_new = found.arguments.empty() || found.arguments.back() != argument;
    if (is_new) {
      found.arguments.push_back(argument);
    }
    found.places += is_new || holder == nullptr || holder != found.holder ? 1 : 0;
    found.holder = holder;
  }

  void walk(PyObject* here, const PyObject* holder, int depth) {
    if (call_.was_refused(here)) {
      note(here, holder);
    } else if (depth < deepest && ++looks_ <= most_looks) {
      const nb::ft_object_guard alone{nb::handle(here)};
      if (PyList_Check(here) != 0) {
        for (Py_ssize_t i = 0; i < PyList_Size(here); ++i) {
          walk(PyList_GetItem(here, i), here, depth + 1);
        }
      } else if (PyTuple_Check(here) != 0) {
        for (Py_ssize_t i = 0; i < PyTuple_Size(here); ++i) {
          walk(PyTuple_GetItem(here, i), nullptr, depth + 1);
        }
      } else if (PyDict_Check(here) != 0) {
        Py_ssize_t position = 0;
        for (PyObject* value = nullptr; PyDict_Next(here, &position, nullptr, &value) != 0;) {
          walk(value, here, depth + 1);
        }
      }
    }
  }

  const call_refusals& call_;
  std::vector<nb::object> names_;
  std::unordered_map<const PyObject*, standing> standing_;
  int looks_ = 0;
};

/// A parameter type that is accepted only in nanobind's second round, in which arguments may
/// be converted implicitly: so the other overloads come first.
struct second_round {
  const void* call = nullptr;  ///< identifies the call
};

/// Whether a rule depends on the view's type, so that another overload may accept the array.
constexpr bool is_of_type(errc rule) noexcept {
  return rule == errc::dtype_mismatch || rule == errc::rank_mismatch ||
         rule == errc::extent_mismatch || rule == errc::index_type_too_small ||
         rule == errc::layout_mismatch;
}

/// Raises again what no other overload could accept: an error of the array itself (an
/// interrupt, for example), or a refusal that does not depend on the view's type.
/// @param is_at_fault whether a record's argument is still refused
template <class Predicate>
void raise_what_is_not_of_type(const call_refusals& call, const Predicate& is_at_fault) {
  for (const recorded_refusal& record : call.all()) {
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

/// Raises the refusals of a function's arguments.
[[noreturn]] inline void raise_refusals(const std::string& function, const nb::args& args,
                                        second_round round, const nb::kwargs& kwargs) {
  const call_refusals none(nullptr);
  const call_refusals* known = refusals_of(round.call);
  const call_refusals& call = known != nullptr ? *known : none;
  const argument_places places(call, args, kwargs);
  // An argument that some overload took is not at fault. With several places it is unknown
  // which of them was taken.
  const auto is_at_fault = [&](const recorded_refusal& record) {
    PyObject* argument = record.argument.ptr();
    return !call.was_taken(argument) || places.are_many(argument);
  };
  raise_what_is_not_of_type(call, is_at_fault);
  nb::list reasons;
  for (const recorded_refusal& record : call.all()) {
    if (!is_at_fault(record)) {
      continue;
    }
    const nb::object place = places.name_of(record.argument.ptr());
    try {
      record.raise_again();
    } catch (const conversion_error& reason) {
      reasons.append(nb::make_tuple(place, to_string(reason.code()), reason.field().c_str(),
                                    reason.expected().c_str(), reason.found().c_str(),
                                    reason.remedy().c_str()));
    }
  }
  package_interface::get().set_argument_error(function.c_str(), args.ptr(), kwargs.ptr(),
                                              reasons.ptr());
  throw nb::python_error();
}

/// Whether a name is a static method of a class: its last overload must be static, too.
inline bool is_static_method(nb::handle scope, const char* name) {
  const nb::object found = nb::getattr(scope, name, nb::none());
  const nb::str type(found.type().attr("__name__"));
  return std::strcmp(type.c_str(), "nb_func") == 0;  // a bound method is an nb_method
}

}  // namespace detail

/// Adds the last overload of a function, which accepts any arguments and raises
/// `usm_dlpack.ArgumentError` (a TypeError): for each argument that no overload took, it names
/// the rule by which each refused it. Errors for every view type (device, context, USM
/// kind, bounds, read-only) are raised as `usm_dlpack.ConversionError`. Call it after the last
/// `def` of that name.
/// @param scope a `nanobind::module_` or `nanobind::class_`
/// @param name of a function, a method or a static method
template <class Scope>
void explain_refusals(Scope& scope, const char* name) {
  namespace nb = nanobind;
  constexpr bool is_module = std::is_base_of_v<nb::module_, Scope>;
  const bool is_bound = !is_module && !detail::is_static_method(scope, name);
  const std::string function = name;
  // The signature for type checkers, which accepts nothing.
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
