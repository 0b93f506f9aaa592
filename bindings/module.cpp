// SPDX-License-Identifier: Apache-2.0
//
// The module usm_dlpack._core, used by the Python package.
#include "module.hpp"
#include "exchange/to_dlpack_tensor.hpp"
#include "order/process.hpp"
#include "tensor/library_views.hpp"
#include "tensor/tensor.hpp"

#include <usm_dlpack/core/config.hpp>

#include <nanobind/stl/string.h>

#include <cstdlib>
#include <exception>
#include <string>

using namespace usm_dlpack::python;

namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const usm_dlpack::conversion_error&) {
    set_python_error();
  }
}

}  // namespace

NB_MODULE(_core, core) {
  static PyObject* first = nullptr;  // kept for the life of the process
  if (first != nullptr) {            // imported again after `del sys.modules[...]`
    core.attr("__dict__").attr("update")(nb::handle(first).attr("__dict__"));
    return;
  }
  first = core.inc_ref().ptr();
  guarded_module module(core);
  register_process();
  // A daemon thread, or a cycle through a capsule, may hold a tensor until the process ends.
  // This is not the user's fault, so nanobind's warnings are off. The tests turn them on.
  nb::set_leak_warnings(std::getenv("USM_DLPACK_REPORT_LEAKS") != nullptr);
  module.attr("version") = std::to_string(USM_DLPACK_VERSION_MAJOR) + "." +
                           std::to_string(USM_DLPACK_VERSION_MINOR) + "." +
                           std::to_string(USM_DLPACK_VERSION_PATCH);
  module.attr("dlpack_version") =
      std::to_string(DLPACK_MAJOR_VERSION) + "." + std::to_string(DLPACK_MINOR_VERSION);
  nb::register_exception_translator(&translate);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&interpreter_gate::close));
  register_errors(module);
  register_library_views(module);
  register_tensor(module);
  register_exchange_api();
  register_validate(module);
  register_to_dlpack_tensor(module);
  register_from_dlpack(module);
  register_empty(module);
  register_devices(module);
  register_package_interface(module);
}
