// SPDX-License-Identifier: Apache-2.0
//
// Why the overloads of a function did not take an argument, and that one took it after that:
// recorded as long as the call lasts, for its last overload.
#pragma once

#include <usm_dlpack/package_interface.hpp>

#include <nanobind/nanobind.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

namespace usm_dlpack::detail {

/// What an overload said of an argument: a `conversion_error`, or what the array raised.
struct recorded_refusal {
  nb::object argument;
  std::exception_ptr reason;

  [[noreturn]] void raise_again() const { std::rethrow_exception(reason); }
};

/// What the overloads of one call said of its arguments, in their order. An argument is found
/// by its address, in a time that does not grow with their number.
class call_refusals {
 public:
  explicit call_refusals(const void* call) noexcept : call_(call) {}

  const void* call() const noexcept { return call_; }
  const std::vector<recorded_refusal>& all() const noexcept { return all_; }
  /// Whether an overload refused an argument.
  bool was_refused(PyObject* argument) const { return is_taken_.count(argument) != 0; }
  /// Whether one took it after that.
  bool was_taken(PyObject* argument) const {
    const auto found = is_taken_.find(argument);
    return found != is_taken_.end() && found->second;
  }

  void add(nb::handle argument, const std::exception_ptr& reason) {
    all_.push_back({nb::borrow(argument), reason});  // its reference keeps the address
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

/// The calls of this thread, each within the one before, that have refused an argument.
inline std::vector<call_refusals*>& calls_with_refusals() {
  thread_local std::vector<call_refusals*> calls;
  return calls;
}

/// What was recorded of a call, or null. It lives as long as the call, whatever Python code
/// (the garbage collector runs some, too) calls meanwhile.
inline call_refusals* refusals_of(const void* call) {
  const auto& calls = calls_with_refusals();
  const auto found = std::find_if(calls.rbegin(), calls.rend(), [&](const call_refusals* one) {
    return one->call() == call;
  });
  return found == calls.rend() ? nullptr : *found;
}

inline void forget_call(PyObject* capsule) noexcept {
  const nb::error_scope keep;  // the call may be about to raise
  auto* ended = static_cast<call_refusals*>(PyCapsule_GetPointer(capsule, nullptr));
  auto& calls = calls_with_refusals();
  calls.erase(std::remove(calls.begin(), calls.end(), ended), calls.end());
  delete ended;
}

/// Begins the record of a call, which ends with it.
inline call_refusals& record_call(nb::detail::cleanup_list& cleanup) {
  auto made = std::make_unique<call_refusals>(&cleanup);
  nb::object capsule = nb::steal(PyCapsule_New(made.get(), nullptr, &forget_call));
  if (!capsule.is_valid()) {
    throw nb::python_error();
  }
  call_refusals& begun = *made.release();  // the capsule's
  calls_with_refusals().push_back(&begun);
  cleanup.append(capsule.release().ptr());
  return begun;
}

/// Records what was said of an argument until the call ends.
/// @param cleanup of the call; null records nothing
inline void record_refusal(nb::handle argument, nb::detail::cleanup_list* cleanup,
                           const std::exception_ptr& reason) {
  if (cleanup != nullptr) {
    call_refusals* known = refusals_of(cleanup);
    (known != nullptr ? *known : record_call(*cleanup)).add(argument, reason);
  }
}

/// Records that an overload took an argument. Only one that another refused before: nanobind
/// tries all of them twice, so each is asked after that, and a call that all goes well with
/// pays nothing.
inline void record_taken(nb::handle argument, nb::detail::cleanup_list* cleanup) {
  if (call_refusals* known = refusals_of(cleanup)) {
    known->take(argument);
  }
}

}  // namespace usm_dlpack::detail
