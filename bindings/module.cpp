// SPDX-License-Identifier: Apache-2.0
//
// The module usm_dlpack._core, used by the Python package.
#include "module.hpp"

using namespace usm_dlpack::python;

namespace {

int (*execute_in_main)(PyObject* module) = nullptr;

int execute(PyObject* module) { return check_interpreter() ? execute_in_main(module) : -1; }

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const usm_dlpack::conversion_error&) {
    set_python_error();
  }
}

}  // namespace

// Python calls PyInit__core below.
NB_MODULE(_core_of_main, made) {
  guarded_module module(made);
  register_process();
  // A daemon thread or a cycle through a capsule may hold a tensor to the end, which is no
  // defect of the user's. The tests enable the warnings.
  nb::set_leak_warnings(std::getenv("USM_DLPACK_REPORT_LEAKS") != nullptr);
  module.attr("version") = std::to_string(USM_DLPACK_VERSION_MAJOR) + "." +
                           std::to_string(USM_DLPACK_VERSION_MINOR) + "." +
                           std::to_string(USM_DLPACK_VERSION_PATCH);
  nb::register_exception_translator(&translate);
  const nb::object at_exit = nb::module_::import_("atexit").attr("register");
  at_exit(nb::cpp_function(&interpreter_gate::close));
  at_exit(nb::cpp_function(&wait_for_out_of_order_work));  // runs before
  module.def("check_process", &check_process);
  register_errors(module);
  register_host_view(module);
  register_tensor(module);
  register_exchange_api();
  register_validate(module);
  register_to_dlpack_tensor(module);
  register_from_dlpack(module);
  register_devices(module);
  register_package_interface(module);
}

// Runs before nanobind executes the module, which would forget the main interpreter's types.
// The check is not in this function, because Python 3.13 calls it in the main interpreter.
extern "C" NB_EXPORT PyObject* PyInit__core(void) {
  PyObject* made = PyInit__core_of_main();
  if (made == nullptr) {
    return nullptr;
  }
  for (auto* slot = reinterpret_cast<PyModuleDef*>(made)->m_slots; slot->slot != 0; ++slot) {
    if (slot->slot == Py_mod_exec && execute_in_main == nullptr) {
      execute_in_main = reinterpret_cast<int (*)(PyObject*)>(slot->value);
      slot->value = reinterpret_cast<void*>(&execute);
    }
  }
  return made;
}
