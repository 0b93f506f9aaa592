// SPDX-License-Identifier: Apache-2.0
//
// The table of functions for extensions that are built with <usm_dlpack/nanobind/views.hpp>.
#pragma once

#include <nanobind/nanobind.h>

namespace usm_dlpack::python {

void register_package_interface(nanobind::module_& module);

}  // namespace usm_dlpack::python
