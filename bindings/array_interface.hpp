// SPDX-License-Identifier: Apache-2.0
//
// How Python objects offer memory: dpctl's `__sycl_usm_array_interface__`, or our own tensor.
#pragma once

#include "arguments.hpp"
#include "dtypes.hpp"
#include "tensor.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace usm_dlpack::python {

/// What an object says of its memory, each field checked by itself.
struct array_interface {
  std::uintptr_t data = 0;
  bool readonly = false;
  integers shape;
  std::optional<integers> strides;  ///< in elements
  element_type element;
  std::int64_t bits = 0;      ///< of an element in memory
  std::int64_t itemsize = 0;  ///< the bytes that an element touches
  wide_int offset = 0;        ///< elements from `data` to the first element
  nb::object syclobj;         ///< as the object names it; invalid for a DLPackTensor
  const tensor* own = nullptr;
  wide_int begin = 0, end = 0;  ///< of the bytes from the lowest to the highest element

  wide_int first() const noexcept { return data + offset * itemsize; }
  /// Whether the elements stand in C order without gaps.
  bool is_compact() const noexcept;
};

/// Reads the interface of an object, or a DLPackTensor of any dtype. Valid as long as the
/// object.
/// @throws nb::python_error TypeError for an object without interface, ValueError for fields
///         that are not as dpctl documents them, and what the object itself raises
array_interface read_array_interface(nb::handle object);

/// Where the bytes of a Python object begin and end.
using byte_range = std::pair<std::uintptr_t, std::uintptr_t>;

/// The bytes behind an object: its own, or those of the memory that it says it is a part of.
byte_range bytes_behind(nb::handle object, const array_interface& base);

/// What a context is taken from: a capsule of an object that gives one, the default context of
/// a device that a filter string means, or `syclobj` itself.
/// @throws nb::python_error ValueError for a string that means no device
nb::object resolve_syclobj(nb::handle syclobj);

/// Adds what Python code asks of interfaces to the module.
void register_array_interface(nb::module_& module);

}  // namespace usm_dlpack::python
