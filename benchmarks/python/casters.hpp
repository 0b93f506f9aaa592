// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark of the casters adds to its extension.
#pragma once

#include <nanobind/nanobind.h>

void register_casters(nanobind::module_& module);
