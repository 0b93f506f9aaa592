// SPDX-License-Identifier: Apache-2.0
//
// Strict readers of Python arguments and fields: a value of another kind is refused in a
// sentence that shows it.
#pragma once

#include "python_objects.hpp"

#include <nanobind/nanobind.h>
#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace usm_dlpack::python {

/// Wide enough for sums and products of addresses, offsets and sizes.
using wide_int = detail::int128;

/// Another library's object, looked up once and kept for the life of the process.
class kept_object {
 public:
  template <class Find>
  nb::handle get(Find&& find) {
    // No lock: an import lets other threads run, which would wait for it with the GIL held.
    PyObject* known = kept_.load(std::memory_order_acquire);
    if (known == nullptr) {
      known = nb::object(find()).release().ptr();
      kept_.store(known, std::memory_order_release);
    }
    return known;
  }

 private:
  std::atomic<PyObject*> kept_{nullptr};
};

/// Raises `<field>: expected <expected>, found <found>; <remedy>`.
/// @param type PyExc_TypeError or PyExc_ValueError
[[noreturn]] void refuse_argument(PyObject* type, const std::string& field,
                                  const std::string& expected, const std::string& found,
                                  const std::string& remedy);

/// Calls a function; returns its result, or nothing if it raises one of the errors.
template <class Function>
auto attempt(std::initializer_list<PyObject*> errors, Function&& function)
    -> std::optional<decltype(function())> {
  try {
    return function();
  } catch (const nb::python_error& raised) {
    if (std::none_of(errors.begin(), errors.end(),
                     [&](PyObject* error) { return raised.matches(error); })) {
      throw;
    }
    return std::nullopt;
  }
}

/// An attribute, or an invalid object if it raises `ignored`.
/// @throws nb::python_error any other error
nb::object find_attribute(nb::handle object, const char* name,
                          PyObject* ignored = PyExc_AttributeError);

/// Takes a new reference. @throws nb::python_error the error that is set, for null
nb::object checked(PyObject* made);

bool is_instance(nb::handle value, nb::handle types);

/// Reads a Python int of any size, or the value of an enumeration's member: array API
/// libraries pass device types as members, which need not be integers themselves.
/// @throws nb::python_error TypeError for anything else
nb::object to_index(nb::handle value);

/// The value of a Python int; beyond int64_t and uint64_t, some larger or smaller value.
wide_int to_wide(nb::handle number) noexcept;
nb::object from_wide(wide_int value);

/// Reads a pair. @throws nb::python_error TypeError or ValueError for anything else
std::pair<nb::object, nb::object> to_pair(nb::handle pair);

/// A sequence of integers. Values beyond int64_t are clamped, and the first such value is kept
/// for the error sentence.
struct integers {
  std::vector<std::int64_t> values;
  nb::object too_large;
  std::size_t too_large_at = 0;

  void append(nb::handle number);
  /// @throws nb::python_error ValueError for a value below `lowest` or beyond int64_t
  void check(const char* field, std::int64_t lowest) const;
};

/// Reads a sequence of integers, or one integer as a sequence of one, like NumPy.
/// @throws nb::python_error TypeError
integers read_integers(const char* field, nb::handle values);

/// @throws nb::python_error TypeError
nb::object read_integer(const char* field, nb::handle value);
/// @throws nb::python_error TypeError, or ValueError beyond int32_t
std::int32_t read_int32(const char* field, nb::handle value);
/// Reads None or a bool. @throws nb::python_error TypeError
std::optional<bool> read_flag(const char* field, nb::handle value);
/// Reads one or several ASCII names. @throws nb::python_error TypeError or ValueError
std::vector<std::string> read_names(const char* field, nb::handle values);

/// Reads a bool, NumPy's bool, 0 or 1; returns nothing for anything else.
std::optional<bool> find_truth(nb::handle value);

/// Makes a `dpctl.SyclDevice` of a filter string; an invalid object if it selects no device.
/// @pre `text` is a str
nb::object find_filtered(nb::handle text);

/// Whether an object is a tuple of two whose first element equals a device type.
bool names_device_type(nb::handle device, DLDeviceType type);

/// The DLPack id of a device, of its filter string, or of `(14, device_id)`.
/// @throws nb::python_error TypeError or ValueError; conversion_error as `device_id`
std::int32_t read_device_id(nb::handle device);

}  // namespace usm_dlpack::python
