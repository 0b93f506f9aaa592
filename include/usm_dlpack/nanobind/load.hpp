// SPDX-License-Identifier: Apache-2.0
//
// What an extension calls first.
#pragma once

#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/nanobind/package.hpp>

#include <nanobind/nanobind.h>

#include <exception>

namespace usm_dlpack {

/// Imports the Python package usm_dlpack, which registers the CPU driver of a wheel before the
/// first device query, and translates a thrown `conversion_error` to
/// `usm_dlpack.ConversionError`. Call it once, at the beginning of `NB_MODULE`.
/// @throws nb::python_error ImportError for no package, or another interface version
inline void load_package() {
  detail::package_interface::get();
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const conversion_error& error) {
      detail::set_error(error);
    }
  });
}

}  // namespace usm_dlpack
