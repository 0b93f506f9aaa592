// SPDX-License-Identifier: Apache-2.0
//
// Readers of Python arguments. A value of another kind is refused in a sentence that shows it.
#pragma once

#include "errors.hpp"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace usm_dlpack::python {

/// An attribute of a module, found once and kept for the life of the process. No lock: an
/// import lets other threads run, which would wait for it with the GIL held.
class imported {
 public:
  constexpr imported(const char* module, const char* name) noexcept
      : module_(module), name_(name) {}
  /// @throws nb::python_error if there is none
  nb::handle get() const;

 private:
  const char* module_;
  const char* name_;
  mutable std::atomic<PyObject*> found_{nullptr};
};

/// Whether an object's real type is a class or derives from it; `__class__` can lie.
bool is_instance(nb::handle object, nb::handle type) noexcept;
bool is_instance(nb::handle object, const imported& type);

/// Reads an integer, also of an Enum, which device types are in the array API. One beyond
/// int64_t becomes the nearest int64_t.
/// @param ignored the errors of `__index__` that are not raised
/// @return nothing if it is no integer
std::optional<std::int64_t> find_integer(nb::handle value,
                                         PyObject* ignored = PyExc_TypeError);
/// Reads a tuple of two integers; false for anything else, also if `__index__` raises an
/// error.
bool read_pair(nb::handle object, std::int64_t (&pair)[2]);

/// Reads an integer as `find_integer`. @throws nb::type_error for anything else
std::int64_t read_integer(const char* field, nb::handle value);
/// @throws nb::value_error also for an integer beyond int32_t
std::int32_t read_int32(const char* field, nb::handle value);

/// Reads a sequence of integers, at least `lowest` each; one integer is a sequence of one, as
/// for NumPy. @throws nb::value_error for a value beyond the range
/// @return nothing for anything else
std::optional<std::vector<std::int64_t>> find_integers(const char* field, nb::handle values,
                                                       std::int64_t lowest);
/// The same. @throws nb::type_error for anything else
std::vector<std::int64_t> read_integers(const char* field, nb::handle values,
                                        std::int64_t lowest);

/// Reads a str or a sequence of str. @throws nb::type_error for anything else
std::vector<nb::object> read_names(const char* field, nb::handle values);

/// Reads None or one of the known names, of which it returns the index.
/// @throws nb::type_error for what is no name, nb::value_error for another name
std::optional<std::size_t> read_choice(const char* field, nb::handle value,
                                       std::initializer_list<const char*> known);

/// Reads a bool of Python or NumPy, or 0 or 1; nothing for anything else.
std::optional<bool> find_truth(nb::handle value);
/// Reads None or what `find_truth` reads. @throws nb::type_error for anything else
std::optional<bool> read_flag(const char* field, nb::handle value);

}  // namespace usm_dlpack::python
