// SPDX-License-Identifier: Apache-2.0
//
// The module usm_dlpack._core: registers, decides nothing. Users see it through the package's
// Python face.
#include "exchange.hpp"
#include "python_objects.hpp"
#include "tensor.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <usm_dlpack/error.hpp>

#include <cstdlib>
#include <exception>
#include <string>

namespace nb = nanobind;

namespace {

// The exception types are Python's own (usm_dlpack._errors): two bases, and attributes.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const usm_dlpack::conversion_error& error) {
    const nb::object made =
        nb::module_::import_("usm_dlpack._errors")
            .attr("from_parts")(usm_dlpack::to_string(error.code()), error.field(),
                                error.expected(), error.found(), error.remedy());
    PyErr_SetObject(made.type().ptr(), made.ptr());
  }
}

}  // namespace

NB_MODULE(_core, module) {
  // A daemon thread or a cycle through a capsule may hold a tensor to the end: no defect of
  // the user's that needs a text. The tests ask for it.
  nb::set_leak_warnings(std::getenv("USM_DLPACK_REPORT_LEAKS") != nullptr);
  module.attr("version") = std::to_string(USM_DLPACK_VERSION_MAJOR) + "." +
                           std::to_string(USM_DLPACK_VERSION_MINOR) + "." +
                           std::to_string(USM_DLPACK_VERSION_PATCH);
  nb::register_exception_translator(&translate);
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&usm_dlpack::python::interpreter_gate::close));
  usm_dlpack::python::register_tensor(module);
  usm_dlpack::python::register_exchange(module);
}
