// SPDX-License-Identifier: Apache-2.0
//
// What the SYCL runtime says of a pointer, a context and a device. Nothing is decided here.
#pragma once

#include <nanobind/nanobind.h>
#include <sycl/sycl.hpp>

#include <cstdint>

namespace usm_dlpack::python {

/// The devices of a context, and what SYCL says of a pointer in it.
nanobind::dict pointer_answer(std::uintptr_t address, const sycl::context& context);

/// Adds the queries that Python's `explain` and `devices` use.
void register_diagnosis(nanobind::module_& module);

}  // namespace usm_dlpack::python
