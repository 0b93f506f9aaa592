// SPDX-License-Identifier: Apache-2.0
//
// Queries of the SYCL runtime for `explain` and `devices`.
#pragma once

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>

#include <cstdint>

namespace usm_dlpack::python {

/// Describes a context and its devices, and a pointer in it.
nanobind::dict pointer_answer(std::uintptr_t address, const sycl::context& context);

void register_diagnosis(nanobind::module_& module);

}  // namespace usm_dlpack::python
