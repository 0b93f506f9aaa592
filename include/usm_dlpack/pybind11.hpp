// SPDX-License-Identifier: Apache-2.0
//
// For authors of pybind11 extensions: functions take and return views of USM and SYCL objects,
// and Python calls them with any library's arrays and dpctl's objects.
//
// Parameters: any mdspan type of USM, with a kind or without; `owned_view` where the memory is
// needed after the call; `any_view` for any dtype and rank; `sycl::queue`, `sycl::context`,
// `sycl::device`, `sycl::event`. Results: `usm_array`, `owned_view`, `any_view`, and the SYCL
// objects. At run time the extension needs dpctl and the Python package usm_dlpack, whose
// DLPackTensor the results are.
//
// Every array is proved by the import protocol before the function runs, and lives as long as
// the call. The view's type chooses the overload; if none accepts the array, pybind11 raises
// its TypeError with the signatures. A proof that fails, for example of the device or the
// bounds, is raised at once as `usm_dlpack.ConversionError`. Nothing is converted or copied. A
// plain view waits for the array's queue (docs/how-to/pybind11.md). pybind11 2.12 or newer.
#pragma once

// clang-format off: the order says which header may include which
#include <usm_dlpack/usm_dlpack.hpp>
#include <usm_dlpack/python/package.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/pybind11/load.hpp>
#include <usm_dlpack/pybind11/argument.hpp>
#include <usm_dlpack/pybind11/dpctl.hpp>
#include <usm_dlpack/pybind11/views.hpp>
// clang-format on
