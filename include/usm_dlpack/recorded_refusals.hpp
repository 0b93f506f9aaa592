// SPDX-License-Identifier: Apache-2.0
//
// Why the overloads of a function did not take an argument, and that one took it after that:
// recorded as long as the call lasts, for its last overload.
#pragma once

#include <usm_dlpack/package_interface.hpp>

#include <nanobind/nanobind.h>

#include <algorithm>
#include <exception>
#include <vector>

namespace usm_dlpack::detail {

/// One reason: the call that it is of, an argument, and what an overload said of it: a
/// `conversion_error`, or what the array raised. Null where an overload took the argument.
struct recorded_refusal {
  const void* call;
  nb::object argument;
  std::exception_ptr reason;

  /// Throws the reason, if there is one.
  void raise_again() const {
    if (reason != nullptr) {
      std::rethrow_exception(reason);
    }
  }
};

inline std::vector<recorded_refusal*>& recorded_refusals() {
  thread_local std::vector<recorded_refusal*> records;
  return records;
}

inline void forget_refusal(PyObject* capsule) noexcept {
  const nb::error_scope keep;  // the call may be about to raise
  auto* record = static_cast<recorded_refusal*>(PyCapsule_GetPointer(capsule, nullptr));
  auto& records = recorded_refusals();
  records.erase(std::remove(records.begin(), records.end(), record), records.end());
  delete record;
}

/// Records what was said of an argument until the call ends.
/// @param cleanup of the call; null records nothing
inline void record_refusal(nb::handle argument, nb::detail::cleanup_list* cleanup,
                           const std::exception_ptr& reason) {
  if (cleanup == nullptr) {
    return;
  }
  auto* record = new recorded_refusal{cleanup, nb::borrow(argument), reason};
  PyObject* capsule = PyCapsule_New(record, nullptr, &forget_refusal);
  if (capsule == nullptr) {
    delete record;
    throw nb::python_error();
  }
  cleanup->append(capsule);  // owns the record from here on, whatever push_back throws
  recorded_refusals().push_back(record);
}

/// What was recorded of a call: copies, because what is done with them runs Python code (the
/// garbage collector does too), which may come here again.
inline std::vector<recorded_refusal> refusals_of(const void* call) {
  std::vector<recorded_refusal> found;
  for (const recorded_refusal* record : recorded_refusals()) {
    if (record->call == call) {
      found.push_back(*record);
    }
  }
  return found;
}

/// Whether an overload took an argument.
inline bool was_taken(const std::vector<recorded_refusal>& records, PyObject* argument) {
  return std::any_of(records.begin(), records.end(), [&](const recorded_refusal& record) {
    return record.reason == nullptr && record.argument.ptr() == argument;
  });
}

/// Records that an overload took an argument. Only one that another refused before: nanobind
/// tries all of them twice, so each is asked after that, and a call that all goes well with
/// pays nothing.
inline void record_taken(nb::handle argument, nb::detail::cleanup_list* cleanup) {
  if (recorded_refusals().empty()) {
    return;
  }
  const std::vector<recorded_refusal> records = refusals_of(cleanup);
  const bool was_refused = std::any_of(
      records.begin(), records.end(),
      [&](const recorded_refusal& record) { return record.argument.ptr() == argument.ptr(); });
  if (was_refused && !was_taken(records, argument.ptr())) {
    record_refusal(argument, cleanup, nullptr);
  }
}

}  // namespace usm_dlpack::detail
