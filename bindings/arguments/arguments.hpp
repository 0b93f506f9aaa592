// SPDX-License-Identifier: Apache-2.0
//
// Readers of Python arguments. They refuse a wrong value with a sentence that shows it. A
// reader that several functions use belongs here; one of SYCL objects in places.hpp.
#pragma once

#include "arguments/errors.hpp"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace usm_dlpack::python {

/// An attribute of a module, found once and kept for the life of the process. There is no
/// lock, because an import lets other threads run, and they would wait for the lock while they
/// hold the GIL.
class imported {
 public:
  constexpr imported(const char* module, const char* name) noexcept
      : module_(module), name_(name) {}
  /// @throws nb::python_error if there is none
  nb::handle get() const;

 private:
  const char* module_;
  const char* name_;
  mutable std::atomic<PyObject*> attribute_{nullptr};
};

/// Whether an object's type is a class or derives from it. Does not look at `__class__`, which
/// may be wrong.
bool is_instance(nb::handle object, nb::handle type) noexcept;
bool is_instance(nb::handle object, const imported& type);

/// Reads an object as a Python int, by `__index__`; an invalid object for a bool, or if
/// `__index__` raises `ignored`.
nb::object find_index(nb::handle value, PyObject* ignored = PyExc_TypeError);

/// Reads an integer, also of an Enum, which device types are in the array API. One beyond
/// int64_t becomes the nearest int64_t.
/// @param ignored the errors of `__index__` that are not raised
/// @return nothing if it is no integer
std::optional<std::int64_t> find_integer(nb::handle value,
                                         PyObject* ignored = PyExc_TypeError);
/// Reads a tuple of two integers; false for anything else, also if `__index__` raises an
/// error.
bool read_pair(nb::handle object, std::int64_t (&pair)[2]);

/// Reads an integer as `find_integer` does. @throws nb::type_error for anything else
std::int64_t read_integer(const char* field, nb::handle value);
/// The same. @throws nb::value_error also for an integer that int32_t does not hold
std::int32_t read_int32(const char* field, nb::handle value);

/// Reads a sequence of integers from `lowest` on. One integer counts as a sequence of length
/// 1, as in NumPy; a str, bytes and an iterator are none. @throws nb::value_error for an
/// integer below `lowest` or above int64_t
/// @return nothing for anything else
std::optional<std::vector<std::int64_t>> find_integers(const char* field, nb::handle values,
                                                       std::int64_t lowest);
/// The same. @throws nb::type_error for anything else
std::vector<std::int64_t> read_integers(const char* field, nb::handle values,
                                        std::int64_t lowest);

/// Reads a str or a collection of str. @throws nb::type_error for anything else
std::vector<nb::object> read_names(const char* field, nb::handle values);

/// Reads one of some names. @return its index; nothing for None
/// @throws nb::type_error for an object that is no str, nb::value_error for another name
std::optional<std::size_t> read_choice(const char* field, nb::handle value,
                                       std::initializer_list<const char*> names);

/// Reads a bool of Python or NumPy. @return nothing for anything else
std::optional<bool> find_truth(nb::handle value);
/// Reads None or what `find_truth` reads. @throws nb::type_error for anything else
std::optional<bool> read_flag(const char* field, nb::handle value);

/// Whether NumPy makes an array of numbers of an object: a sequence, a number, or what has a
/// buffer or converts itself. Not of an int, which may be meant as an address.
bool numpy_converts(nb::handle x);

}  // namespace usm_dlpack::python
