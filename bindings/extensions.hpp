// SPDX-License-Identifier: Apache-2.0
//
// The functions for extensions that include <usm_dlpack/nanobind.hpp> or pybind11.hpp.
#pragma once

#include "guarded.hpp"

namespace usm_dlpack::python {

/// Adds the table of these functions, which python/package.hpp describes.
void register_package_interface(guarded_module& module);

}  // namespace usm_dlpack::python
