// SPDX-License-Identifier: Apache-2.0
//
// Root devices and their ids, for Python.
#pragma once

#include "guarded.hpp"

namespace usm_dlpack::python {

void register_devices(guarded_module& module);

}  // namespace usm_dlpack::python
