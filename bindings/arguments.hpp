// SPDX-License-Identifier: Apache-2.0
//
// Arguments of Python functions and fields of Python objects, read strictly: what is not of
// its kind is refused in a sentence that shows it.
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

/// An object of another library that is looked up once and kept for the life of the process.
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

/// What a function returns, or nothing if it raises one of some errors.
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

/// A new reference, or the error that is set. @throws nb::python_error
nb::object checked(PyObject* made);

/// `isinstance(value, types)`.
bool is_instance(nb::handle value, nb::handle types);

/// A Python int of any size, or that of a member of an enumeration. The array API names device
/// types by members, which need not be integers themselves.
/// @throws nb::python_error TypeError for anything else
nb::object to_index(nb::handle value);

/// The value of a Python int; beyond int64_t and uint64_t a larger or smaller one.
wide_int to_wide(nb::handle number) noexcept;
/// A Python int.
nb::object from_wide(wide_int value);

/// Both objects of a pair. @throws nb::python_error TypeError or ValueError if it is none
std::pair<nb::object, nb::object> to_pair(nb::handle pair);

/// A sequence of integers. Those beyond int64_t stand as its nearest value, and the first of
/// them is kept for the sentence.
struct integers {
  std::vector<std::int64_t> values;
  nb::object too_large;
  std::size_t too_large_at = 0;

  void append(nb::handle number);
  /// @throws nb::python_error ValueError for a value below `lowest` or beyond int64_t
  void check(const char* field, std::int64_t lowest) const;
};

/// A sequence of integers, or one integer as a sequence of one, as NumPy takes it.
/// @throws nb::python_error TypeError
integers read_integers(const char* field, nb::handle values);

/// An integer. @throws nb::python_error TypeError
nb::object read_integer(const char* field, nb::handle value);
/// @throws nb::python_error TypeError, or ValueError for one that is no int32_t
std::int32_t read_int32(const char* field, nb::handle value);
/// None or a bool. @throws nb::python_error TypeError
std::optional<bool> read_flag(const char* field, nb::handle value);
/// Names in ASCII, or one of them. @throws nb::python_error TypeError or ValueError
std::vector<std::string> read_names(const char* field, nb::handle values);

/// What a bool, NumPy's bool, 0 or 1 says; nothing for anything else.
std::optional<bool> find_truth(nb::handle value);

/// A new `dpctl.SyclDevice` of a filter string, or an invalid object if no device is meant.
/// @pre `text` is a str
nb::object find_filtered(nb::handle text);

/// Whether an object is a tuple of two whose first names a device type.
bool names_device_type(nb::handle device, DLDeviceType type);

/// The DLPack id that a device, its filter string or `(14, device_id)` stands for.
/// @throws nb::python_error TypeError or ValueError; conversion_error as `device_id`
std::int32_t read_device_id(nb::handle device);

}  // namespace usm_dlpack::python
