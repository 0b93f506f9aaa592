// SPDX-License-Identifier: Apache-2.0
//
// `load_package`, which an extension calls first. Whatever else an extension must do first
// belongs in that function.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/package.hpp>

#include <nanobind/nanobind.h>

#include <exception>

namespace usm_dlpack {
// Inline, so that an extension may include pybind11.hpp too, and say which it means.
inline namespace for_nanobind {

/// Imports the Python package usm_dlpack, which registers the CPU driver of a wheel before the
/// first device query, and translates a thrown `conversion_error` to
/// `usm_dlpack.ConversionError`. Call it once, at the beginning of `NB_MODULE`.
/// @throws nb::python_error ImportError for no package, or another interface version
inline void load_package() {
  try {
    detail::package_interface::get();
  } catch (const detail::python_exception& error) {
    error.restore();
    throw nanobind::python_error();
  }
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const conversion_error& error) {
      detail::set_error(error);
    }
  });
}

}  // namespace for_nanobind
}  // namespace usm_dlpack
