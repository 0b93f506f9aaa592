// SPDX-License-Identifier: Apache-2.0
//
// Reads the arguments of Python's `to_dlpack_tensor`, which describe a view of memory, and the
// SYCL array interface of the object. Nothing is proved here: to_dlpack_tensor.cpp does that.
// A new argument is read in `read_array_view`, a new field in `read_fields`.
#pragma once

#include "arguments/dtypes.hpp"
#include "tensor/tensor.hpp"

namespace usm_dlpack::python {

/// A range of addresses. The end is the last address plus 1.
struct byte_range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// A view of an object's memory. Nothing about it is proved.
struct array_view {
  std::uintptr_t data = 0;   ///< the address in the object's interface
  byte_range bytes;          ///< of the object
  std::uintptr_t first = 0;  ///< the address of the first element
  std::vector<std::int64_t> shape;
  std::optional<std::vector<std::int64_t>> strides;  ///< none: compact, in C order
  element_type element;
  bool readonly = false;
  nb::object syclobj;  ///< the queue or context; invalid for a DLPackTensor
};

/// The view as a tensor without a device, which borrows its shape and strides.
DLTensor describe(const array_view& view);

/// Reads an object, and the arguments that choose another view of its memory.
/// @throws nb::type_error or nb::value_error for an argument that has the wrong type or
///         contradicts another, and for an interface that is not as dpctl documents it;
///         conversion_error as `check_structure` for the object's own array
array_view read_array_view(nb::handle obj, nb::handle shape, nb::handle dtype,
                           nb::handle strides, nb::handle byte_offset);

}  // namespace usm_dlpack::python
