// SPDX-License-Identifier: Apache-2.0
//
// What casters keep of an argument, and the error of a call that no overload takes: refusals
// are recorded while the call lasts, and the last overload raises them.
#pragma once

#include <usm_dlpack/nanobind/package.hpp>

#include <cstring>
#include <functional>
#include <unordered_map>

namespace usm_dlpack {
namespace detail {

/// Whether a rule depends on the view's type, so that another overload may accept the array.
constexpr bool is_of_type(errc rule) noexcept {
  return rule == errc::dtype_mismatch || rule == errc::rank_mismatch ||
         rule == errc::extent_mismatch || rule == errc::index_type_too_small ||
         rule == errc::layout_mismatch;
}

/// An argument that an overload refused.
struct refused_argument {
  nb::object argument;
  std::function<void()> raise;  ///< throws why, if it is an array

  /// The argument, and of an array the exception, or `is_of_type` and the parts of the error.
  nb::tuple parts() const {
    try {
      raise();
    } catch (const conversion_error& refused) {
      return nb::make_tuple(argument, is_of_type(refused.code()), to_string(refused.code()),
                            refused.field().c_str(), refused.expected().c_str(),
                            refused.found().c_str(), refused.remedy().c_str());
    } catch (const nb::python_error& raised) {
      return nb::make_tuple(argument, raised.value());
    }
    return nb::make_tuple(argument);
  }
};

/// What overloads said of one call's arguments, in their order.
struct call_record {
  std::vector<refused_argument> refusals;
  nb::list taken;             ///< arguments that an overload took
  std::exception_ptr raised;  ///< the first error of an array itself, an interrupt for example
  bool is_explained = false;  ///< whether the last overload, which raises, was seen
  bool ended = false;         ///< whether an overload refused for all
};

/// The calls of this thread that have refused an argument, by their cleanup list: Python code
/// (for example the garbage collector's) makes other calls meanwhile.
inline std::unordered_map<const void*, call_record>& recorded_calls() {
  thread_local std::unordered_map<const void*, call_record> calls;
  return calls;
}

/// The record of a call, kept until its cleanup list ends.
inline call_record& record_of(nb::detail::cleanup_list* call) {
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
  return recorded_calls()[call];
}

/// Records a refusal.
/// @param call null records nothing
/// @param raise throws why an array was refused; it runs only if no overload takes the call
inline void record_refusal(
    nb::handle argument, nb::detail::cleanup_list* call, std::function<void()> raise = [] {}) {
  if (call != nullptr) {
    record_of(call).refusals.push_back({nb::borrow(argument), std::move(raise)});
  }
}

/// Records that an overload took an argument. nanobind tries all overloads twice, so each one
/// runs again after the first refusal; without refusals nothing is stored.
inline void record_taken(nb::handle argument, nb::detail::cleanup_list* call) {
  const auto found = recorded_calls().find(call);
  if (found != recorded_calls().end()) {
    found->second.taken.append(argument);
  }
}

/// Whether nanobind is in the first of two rounds, which has no implicit conversions.
inline bool is_first_round(std::uint32_t flags) noexcept {
  return (flags & static_cast<std::uint32_t>(nb::detail::cast_flags::convert)) == 0;
}

/// Whether an object is converted by `nb::cast`, and not as an argument.
inline bool is_cast(std::uint32_t flags) noexcept {
  return (flags & static_cast<std::uint32_t>(nb::detail::cast_flags::manual)) != 0;
}

/// Whether the last overload of a call is to raise a refusal for all overloads, and not the
/// overload that refuses. In the first round it is unknown whether there is one: without it,
/// the second round comes to the refusal again.
inline bool last_overload_raises(std::uint32_t flags, const void* call) noexcept {
  const auto found = recorded_calls().find(call);
  return found != recorded_calls().end() &&
         (is_first_round(flags) || found->second.is_explained);
}

/// Whether an overload has refused an argument for all.
inline bool search_ended(std::uint32_t flags, const void* call) noexcept {
  return last_overload_raises(flags, call) && recorded_calls()[call].ended;
}

/// What a caster keeps of an argument until the function takes it: a value, nothing for None,
/// or an error.
template <class Value>
class kept_argument {
 public:
  template <class T>
  using Cast = nb::detail::movable_cast_t<T>;

  /// Containers query this: whether the conversion throws nothing.
  template <class>
  bool can_cast() const noexcept {
    return error == nullptr && value.has_value();
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
    if (leaves_error) {  // nb::try_cast ignores it
      PyErr_Clear();
    }
  }

  /// Runs `take` for `nb::cast`, which raises the Python error that this leaves.
  template <class Take>
  bool take_or_leave_error(Take&& take) noexcept {
    const nb::object taken = nb::steal(made_or_error([&] {
      take();
      return nb::none();
    }));
    leaves_error = !taken.is_valid();
    return !leaves_error;
  }

  bool leaves_error = false;
  std::optional<Value> value;  // reset first: a container takes all elements with one caster
  std::exception_ptr error;
  const void* ends_search = nullptr;  ///< the call in which no other overload is to be tried

 private:
  void check() const {
    if (ends_search != nullptr) {
      call_record& call = recorded_calls()[ends_search];
      call.ended = true;
      // In the first round a later overload may have taken the argument: that is no excuse.
      call.taken = nb::list();
      throw nb::next_overload();
    }
    if (error != nullptr) {
      std::rethrow_exception(error);
    }
  }
  Value& get() {
    check();
    if (!value) {  // None
      throw nb::next_overload();
    }
    return *value;
  }
};

/// A parameter type that is accepted only when the search has ended, or in nanobind's second
/// round, in which arguments may be converted implicitly: so the other overloads come first.
struct end_of_search {
  const void* call = nullptr;  ///< identifies the call
};

/// Raises why no overload took a call's arguments: an error of an array itself, else a refusal
/// that all overloads share, else an ArgumentError of the arguments that no overload took.
/// @param signatures of the overloads, as nanobind prints them
[[noreturn]] inline void raise_refusals(const std::string& function, nb::handle signatures,
                                        const nb::args& args, end_of_search end,
                                        const nb::kwargs& kwargs) {
  const auto found = recorded_calls().find(end.call);
  const call_record call = found == recorded_calls().end() ? call_record{} : found->second;
  if (call.raised != nullptr) {
    std::rethrow_exception(call.raised);
  }
  nb::list refusals;
  for (const refused_argument& refused : call.refusals) {
    refusals.append(refused.parts());
  }
  package_interface::get().set_argument_error(function.c_str(), signatures.ptr(), args.ptr(),
                                              kwargs.ptr(), refusals.ptr(), call.taken.ptr());
  throw nb::python_error();
}

/// Whether a function takes views or SYCL objects, and has no last overload yet.
inline bool is_to_explain(nb::handle function) {
  std::string signatures;
  for (const nb::handle overload : nb::getattr(function, "__nb_signature__", nb::tuple())) {
    signatures += nb::str(overload[0]).c_str();
  }
  const auto have = [&](const char* text) { return signatures.find(text) != signatures.npos; };
  return (have("usm_dlpack.UsmArray") || have("dpctl.Sycl")) && !have("_: typing.NoReturn");
}

/// Whether a name is a special one of Python, and not that of a constructor, call or index.
inline bool is_operator(std::string_view name) {
  return name.substr(0, 2) == "__" && name != "__init__" && name != "__new__" &&
         name != "__call__" && name != "__getitem__" && name != "__setitem__";
}

/// Whether a function is the `__init__` beside an `nb::new_`, which does nothing.
inline bool is_unused_init(nb::handle scope, const nb::str& name) {
  return nb::str("__init__").equal(name) &&
         nb::hasattr(scope.attr("__new__"), "__nb_signature__");
}

}  // namespace detail

/// Adds the last overload of a function, which accepts any arguments and raises
/// `usm_dlpack.ArgumentError` (a TypeError): for each argument that no overload took, it names
/// the rule by which each refused it. Errors for every view type (device, context, USM
/// kind, bounds, read-only) are raised as `usm_dlpack.ConversionError`; no other overload
/// takes a view or SYCL object of that call. Call it after the last `def` of that name.
/// @param scope a module or class
/// @param name of a function, a method or a static method
inline void explain_refusals(nanobind::handle scope, const char* name) {
  namespace nb = nanobind;
  // A bound method is an nb_method. The last overload of a static method must be static, too.
  const nb::str type(scope.attr(name).type().attr("__name__"));
  const bool is_bound = std::strcmp(type.c_str(), "nb_func") != 0;
  const bool is_class = PyType_Check(scope.ptr()) != 0;
  const bool is_init = std::strcmp(name, "__init__") == 0;
  std::string function = is_class ? nb::str(scope.attr("__qualname__")).c_str() : name;
  if (is_class && !is_init && std::strcmp(name, "__new__") != 0) {
    function += std::string(".") + name;
  }
  // The signature for type checkers, which accepts nothing.
  const std::string signature = "def " + std::string(name) + "(" + (is_bound ? "self, " : "") +
                                "*, _: typing.NoReturn) -> typing.NoReturn";
  nb::list signatures;
  for (const nb::handle overload : scope.attr(name).attr("__nb_signature__")) {
    signatures.append(overload[0]);
  }
  const auto refuse = [function, signatures](const nb::args& args, detail::end_of_search end,
                                             const nb::kwargs& kwargs) {
    detail::raise_refusals(function, signatures, args, end, kwargs);
  };
  const auto add = [&](const auto& body, const auto&... is_method) {
    nb::cpp_function_def(
        body, nb::scope(scope), nb::name(name), is_method..., nb::arg("args"),
        nb::arg("_").none() = nb::none(), nb::arg("kwargs"), nb::sig(signature.c_str()),
        "Raise ArgumentError, which says what each overload refuses, for other arguments.");
  };
  if (is_bound) {
    const auto refuse_method = [=](nb::handle self, const nb::args& args,
                                   detail::end_of_search end, const nb::kwargs& kwargs) {
      if (PyObject_TypeCheck(self.ptr(), reinterpret_cast<PyTypeObject*>(scope.ptr())) == 0) {
        throw nb::type_error((function + ": self: expected an object of the class, found " +
                              "another; call the method of such an object")
                                 .c_str());
      }
      if (!is_init && !nb::inst_ready(self)) {
        throw nb::type_error((function + ": self: expected an initialised object, found one " +
                              "without content; call super().__init__() in its __init__")
                                 .c_str());
      }
      refuse(args, end, kwargs);
    };
    add(refuse_method, nb::is_method());
  } else {
    add(refuse);
  }
}

namespace detail {

/// Calls `visit(scope, name, member, is_own)` for the members of a module or class, its
/// submodules and its own classes. `is_own`: it was defined there, and under that name.
template <class Visit>
void for_each_member(nb::handle scope, const Visit& visit) {
  const bool is_class = PyType_Check(scope.ptr()) != 0;
  const nb::object module = scope.attr(is_class ? "__module__" : "__name__");
  nb::dict members;
  members.update(scope.attr("__dict__"));
  for (const auto [name, member] : members) {
    const nb::object path =
        is_class ? scope.attr("__qualname__") + nb::str(".") + name : nb::borrow(name);
    const bool is_submodule = PyModule_Check(member.ptr()) &&
                              member.attr("__name__").equal(module + nb::str(".") + name);
    const bool is_own = nb::getattr(member, "__module__", nb::none()).equal(module) &&
                        nb::getattr(member, "__qualname__", nb::none()).equal(path);
    if (is_submodule || (is_own && nb::type_check(member))) {
      for_each_member(member, visit);
    } else {
      visit(scope, nb::borrow<nb::str>(name), member, is_own);
    }
  }
}

}  // namespace detail

/// Adds the last overload to each function of a module, its submodules and classes, that takes
/// views or SYCL objects. Call it once, at the end of `NB_MODULE`. Operators get none: Python
/// then tries that of the other operand. Setters of `def_prop_rw` get none either; a property
/// that is made of two methods calls the explained ones.
/// @param scope a module or class
inline void explain_refusals(nanobind::handle scope) {
  namespace nb = nanobind;
  nb::list before;  // kept: nanobind empties each function that gets an overload
  std::unordered_map<PyObject*, nb::object> renewed;
  detail::for_each_member(
      scope, [&](nb::handle owner, const nb::str& name, nb::handle member, bool is_own) {
        if (is_own && detail::is_to_explain(member) && !detail::is_operator(name.c_str()) &&
            !detail::is_unused_init(owner, name)) {
          before.append(member);
          explain_refusals(owner, name.c_str());
          renewed[member.ptr()] = owner.attr(name);
        }
      });
  // Other names and properties of these functions.
  const auto latest = [&](nb::handle function) {
    const auto found = renewed.find(function.ptr());
    return found == renewed.end() ? nb::borrow(function) : found->second;
  };
  detail::for_each_member(
      scope, [&](nb::handle owner, const nb::str& name, nb::handle member, bool) {
        nb::object now = latest(member);
        if (Py_TYPE(member.ptr()) == &PyProperty_Type) {
          now = member.type()(latest(member.attr("fget")), latest(member.attr("fset")),
                              latest(member.attr("fdel")), member.attr("__doc__"));
        }
        if (!now.is(member)) {
          nb::setattr(owner, name, now);
        }
      });
}

}  // namespace usm_dlpack

namespace nanobind::detail {

template <>
struct type_caster<usm_dlpack::detail::end_of_search> {
  NB_TYPE_CASTER(usm_dlpack::detail::end_of_search, const_name("None"))
  bool from_python(handle, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    value.call = cleanup;
    using namespace usm_dlpack::detail;
    if (last_overload_raises(flags, cleanup)) {
      recorded_calls()[cleanup].is_explained = true;
    }
    return !is_first_round(flags) || search_ended(flags, cleanup);
  }
};

}  // namespace nanobind::detail
