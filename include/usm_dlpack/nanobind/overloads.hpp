// SPDX-License-Identifier: Apache-2.0
//
// The error of a call that no overload takes: refusals of arguments are recorded while the
// call lasts, and the last overload raises them.
#pragma once

#include <usm_dlpack/nanobind/package.hpp>

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace usm_dlpack {
namespace detail {

/// Why an overload refused an argument: a `conversion_error`, or what the array raised.
struct recorded_refusal {
  nb::object argument;
  std::exception_ptr reason;
};

/// What overloads said of one call's arguments, in their order.
struct call_record {
  std::vector<recorded_refusal> refusals;
  std::unordered_set<PyObject*> taken;  ///< arguments that an overload took
};

/// The calls of this thread that have refused an argument, by their cleanup list: Python code
/// (for example the garbage collector's) makes other calls meanwhile.
inline std::unordered_map<const void*, call_record>& recorded_calls() {
  thread_local std::unordered_map<const void*, call_record> calls;
  return calls;
}

/// Records a refusal until the call's cleanup list ends.
/// @param call null records nothing
inline void record_refusal(nb::handle argument, nb::detail::cleanup_list* call,
                           const std::exception_ptr& reason) {
  if (call == nullptr) {
    return;
  }
  if (recorded_calls().count(call) == 0) {
    nb::object ends = nb::steal(PyCapsule_New(call, nullptr, [](PyObject* capsule) noexcept {
      const nb::error_scope keep;  // the call may be raising
      recorded_calls().extract(PyCapsule_GetPointer(capsule, nullptr));
    }));
    if (!ends.is_valid()) {
      throw nb::python_error();
    }
    call->append(ends.release().ptr());
  }
  recorded_calls()[call].refusals.push_back({nb::borrow(argument), reason});
}

/// Records that an overload took an argument. nanobind tries all overloads twice, so each one
/// runs again after the first refusal; without refusals nothing is stored.
inline void record_taken(nb::handle argument, nb::detail::cleanup_list* call) {
  const auto found = recorded_calls().find(call);
  if (found != recorded_calls().end()) {
    found->second.taken.insert(argument.ptr());
  }
}

/// The position or name of the argument that is or holds each object: in lists, tuples and
/// values of dictionaries, nested. Runs no Python code.
class argument_places {
 public:
  argument_places(const nb::args& args, const nb::kwargs& kwargs) {
    std::size_t position = 0;
    for (const nb::handle argument : args) {
      add(argument, nb::int_(++position));
    }
    for (const auto [name, argument] : kwargs) {
      add(argument, nb::borrow(name));
    }
  }

  /// None if a container made the object for the call.
  nb::object of(PyObject* object) const {
    const auto found = places_.find(object);
    return found == places_.end() ? nb::none() : found->second;
  }

 private:
  void add(nb::handle argument, const nb::object& place) {
    std::vector<nb::object> left{nb::borrow(argument)};
    while (!left.empty()) {
      const nb::object here = std::move(left.back());
      left.pop_back();
      if (!places_.emplace(here.ptr(), place).second) {
        continue;  // seen before: a container may hold itself
      }
      const nb::ft_object_guard alone(here);
      if (PyList_Check(here.ptr()) != 0) {
        for (Py_ssize_t i = 0; i < PyList_Size(here.ptr()); ++i) {
          left.push_back(nb::borrow(PyList_GetItem(here.ptr(), i)));
        }
      } else if (PyTuple_Check(here.ptr()) != 0) {
        for (Py_ssize_t i = 0; i < PyTuple_Size(here.ptr()); ++i) {
          left.push_back(nb::borrow(PyTuple_GetItem(here.ptr(), i)));
        }
      } else if (PyDict_Check(here.ptr()) != 0) {
        Py_ssize_t position = 0;
        for (PyObject* value = nullptr;
             PyDict_Next(here.ptr(), &position, nullptr, &value) != 0;) {
          left.push_back(nb::borrow(value));
        }
      }
    }
  }

  std::unordered_map<PyObject*, nb::object> places_;
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

/// Raises why no overload took a call's arguments: an error of an array itself (an interrupt,
/// for example), else a refusal that all overloads share, else an ArgumentError. An argument
/// that some overload took is not at fault.
[[noreturn]] inline void raise_refusals(const std::string& function, const nb::args& args,
                                        second_round round, const nb::kwargs& kwargs) {
  const auto found = recorded_calls().find(round.call);
  const call_record call = found == recorded_calls().end() ? call_record{} : found->second;
  const argument_places places(args, kwargs);
  nb::list reasons;
  for (const recorded_refusal& record : call.refusals) {
    try {
      std::rethrow_exception(record.reason);
    } catch (const conversion_error& reason) {
      if (call.taken.count(record.argument.ptr()) != 0) {
        continue;
      }
      if (!is_of_type(reason.code())) {
        set_error(reason);
        throw nb::python_error();
      }
      reasons.append(nb::make_tuple(places.of(record.argument.ptr()), to_string(reason.code()),
                                    reason.field().c_str(), reason.expected().c_str(),
                                    reason.found().c_str(), reason.remedy().c_str()));
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
