// SPDX-License-Identifier: Apache-2.0
//
// `load_package`, which an extension calls first, and pybind11's exceptions for the errors of
// usm_dlpack/python/. A new error of usm_dlpack/python/ is translated here.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/package.hpp>

#include <pybind11/pybind11.h>

#include <exception>
#include <utility>

namespace usm_dlpack {
namespace detail {

/// Throws the current Python error, as pybind11's exception, if an object is null.
inline pybind11::handle not_null(PyObject* object) {
  if (object == nullptr) {
    throw pybind11::error_already_set();
  }
  return object;
}

/// Runs a function of usm_dlpack/python/, and throws its errors as pybind11's exceptions.
template <class Function>
auto with_pybind11_errors(const Function& function) {
  try {
    return function();
  } catch (const python_exception& error) {
    error.restore();
    throw pybind11::error_already_set();
  }
}

}  // namespace detail

// Inline, so that an extension may include nanobind.hpp too, and say which it means.
inline namespace for_pybind11 {

/// Imports the Python package usm_dlpack, which registers the CPU driver of a wheel before the
/// first device query, and translates a `conversion_error` that this module throws to
/// `usm_dlpack.ConversionError`. Call it once, at the beginning of `PYBIND11_MODULE`.
/// @throws py::error_already_set ImportError for no package, or another interface version
inline void load_package() {
  detail::with_pybind11_errors([] { detail::package_interface::get(); });
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const conversion_error& error) {
      detail::set_error(error);
    }
  });
}

}  // namespace for_pybind11
}  // namespace usm_dlpack
