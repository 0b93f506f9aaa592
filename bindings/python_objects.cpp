// SPDX-License-Identifier: Apache-2.0
#include "python_objects.hpp"

#include "process.hpp"

#include <dlfcn.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <tuple>
#include <vector>

namespace usm_dlpack::python {
namespace {

[[noreturn]] void refuse_type(const char* field, const char* expected, nb::handle found) {
  const std::string sentence = std::string(field) + ": expected " + expected +
                               ", found an object of type " + name_of_type(found) +
                               "; pass one of dpctl's objects";
  throw nb::type_error(sentence.c_str());
}

template <class Object>
nb::object make_checked(const Object& object) {
  check_process();  // dpctl queries the runtime
  return detail::make_dpctl(object);
}

[[noreturn]] void wait_for_the_end_of_the_process() noexcept {
  while (true) {
    pause();
  }
}

/// Stops the unwinding of a thread: the destructor does not return then.
struct stop_of_unwinding {
  bool returned = false;
  ~stop_of_unwinding() {
    if (!returned) {
      wait_for_the_end_of_the_process();
    }
  }
};

/// Takes the GIL. Once the interpreter finishes, Python before 3.14 ends the thread here by
/// unwinding it, through functions that cannot be unwound. Not inlined, because in a noexcept
/// function the compiler may leave out the stop.
[[gnu::noinline]] void take_gil(PyThreadState* state) {
  stop_of_unwinding stop;
  PyEval_RestoreThread(state);
  stop.returned = true;
}

/// Indices of the functions of usm_dlpack._errors.
enum class error_function { from_parts, from_arguments };

/// The tuple of these functions; null before usm_dlpack._errors is imported, and after the
/// module is cleared. Owned by the module's attribute `_errors`, because a static owner would
/// outlive the interpreter.
std::atomic<PyObject*> error_functions{nullptr};

void forget_error_functions(PyObject*) noexcept { error_functions = nullptr; }

void set_error_functions(nb::handle module, nb::handle from_parts, nb::handle from_arguments) {
  // A capsule must point to something.
  const nb::object end =
      nb::steal(PyCapsule_New(&error_functions, nullptr, &forget_error_functions));
  const nb::tuple functions = nb::make_tuple(from_parts, from_arguments, end);
  module.attr("_errors") = functions;  // drops the tuple of an earlier import, if any
  error_functions = functions.ptr();
}

/// @throws nb::python_error ImportError if usm_dlpack._errors is not imported
template <class... Arguments>
nb::object call(error_function which, Arguments... arguments) {
  PyObject* functions = error_functions;
  if (functions == nullptr) {
    PyErr_SetString(PyExc_ImportError,
                    "usm_dlpack._core: expected the functions of usm_dlpack._errors, found "
                    "none; import usm_dlpack first");
    throw nb::python_error();
  }
  const auto function = nb::borrow(PyTuple_GetItem(functions, static_cast<int>(which)));
  return function(arguments...);
}

/// Sets the exception that a function of usm_dlpack._errors makes; if it raises, sets that.
template <class... Arguments>
void set_made_by(error_function which, Arguments... arguments) noexcept {
  try {
    const nb::object made = call(which, arguments...);
    PyErr_SetObject(made.type().ptr(), made.ptr());
  } catch (nb::python_error& raised) {
    raised.restore();
  } catch (...) {
    PyErr_NoMemory();
  }
}

using state_query = PyThreadState* (*)();

/// Finds a query of the current thread state, which the stable ABI lacks, or null.
state_query find_state_query() noexcept {
  for (const char* name : {"PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"}) {
    if (void* found = dlsym(RTLD_DEFAULT, name)) {
      return reinterpret_cast<state_query>(found);
    }
  }
  return nullptr;
}

/// Whether this thread has the GIL. Waits for it only if there is no such query.
bool has_gil() noexcept {
  const interpreter_gate gate;
  if (!gate.open()) {
    return false;
  }
  static const state_query current = find_state_query();
  if (current != nullptr) {
    // Before Python 3.12 this is the state of the thread that has the GIL.
    PyThreadState* state = current();
    return state != nullptr && state == PyGILState_GetThisThreadState();
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  PyGILState_Release(state);
  return state == PyGILState_LOCKED;
}

}  // namespace

void interpreter_gate::close() {
  closer_ = std::this_thread::get_id();
  closed_ = true;
  const nb::gil_scoped_release unlocked;
  for (int tries = 0; inside_ != 0 && tries < 10000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

without_gil::~without_gil() {
  if (!nb::is_alive()) {
    wait_for_the_end_of_the_process();
  }
  take_gil(state_);
}

void run_unlocked(void (*function)(void*), void* argument) noexcept {
  if (has_gil()) {
    const without_gil unlocked;
    function(argument);
  } else {
    function(argument);
  }
}

void register_errors(nb::module_& module) {
  module.def("error_table", [] {
    std::vector<std::tuple<const char*, const char*, bool>> rows;
    for (const detail::error_row& row : detail::error_table) {
      rows.emplace_back(row.name, row.meaning,
                        row.raised == detail::python_class::binding_error);
    }
    return rows;
  });
  const nb::handle owner = module;
  module.def("_set_errors", [owner](nb::handle from_parts, nb::handle from_arguments) {
    set_error_functions(owner, from_parts, from_arguments);
  });
}

void set_error(const char* code, const char* field, const char* expected, const char* found,
               const char* remedy) noexcept {
  set_made_by(error_function::from_parts, code, field, expected, found, remedy);
}

void set_argument_error(const char* function, PyObject* args, PyObject* kwargs,
                        PyObject* reasons) noexcept {
  set_made_by(error_function::from_arguments, function, nb::handle(args), nb::handle(kwargs),
              nb::handle(reasons));
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const conversion_error& error) {
    set_error(to_string(error.code()), error.field().c_str(), error.expected().c_str(),
              error.found().c_str(), error.remedy().c_str());
  } catch (const nb::builtin_exception& error) {
    const bool is_type = error.type() == nb::exception_type::type_error;
    PyErr_SetString(is_type ? PyExc_TypeError : PyExc_ValueError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "usm_dlpack: unknown C++ exception");
  }
}

std::string name_of_type(nb::handle object) {
  // By the descriptor of `type`, to ignore the metaclass.
  static PyObject* const getter =
      nb::getattr(
          nb::handle(reinterpret_cast<PyObject*>(&PyType_Type)).attr("__dict__")["__name__"],
          "__get__")
          .release()
          .ptr();
  const nb::object name = nb::handle(getter)(object.type());
  const std::string quoted = nb::steal<nb::str>(PyObject_ASCII(name.ptr())).c_str();
  return quoted.substr(1, quoted.size() - 2);
}

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_ASCII(object.ptr()));
  if (text.is_valid()) {
    const std::string shown = nb::borrow<nb::str>(text).c_str();
    return shown.find("0x") == std::string::npos ? shown
                                                 : "an object of type " + name_of_type(object);
  }
  const nb::python_error raised;
  if (!raised.matches(PyExc_Exception)) {
    throw raised;
  }
  // Python refuses to print an int of too many digits.
  return PyLong_CheckExact(object.ptr()) != 0
             ? "an int of " + std::string(nb::str(object.attr("bit_length")()).c_str()) +
                   " bits"
             : "an object of type " + name_of_type(object);
}

const sycl::queue* find_queue(nb::handle object) {
  const auto* queue = detail::in_capsule<sycl::queue>(object);
  return queue != nullptr ? queue : detail::in_dpctl<sycl::queue>(object);
}

sycl::queue to_queue(nb::handle object) {
  const sycl::queue* queue = find_queue(object);
  if (queue == nullptr) {
    refuse_type("queue", "a dpctl.SyclQueue or a capsule \"SyclQueueRef\"", object);
  }
  return *queue;
}

sycl::context to_context(nb::handle object) {
  if (const sycl::queue* queue = find_queue(object)) {
    return queue->get_context();
  }
  const auto* context = detail::in_capsule<sycl::context>(object);
  if (context == nullptr) {
    context = detail::in_dpctl<sycl::context>(object);
  }
  if (context == nullptr) {
    refuse_type("syclobj", "a dpctl.SyclContext, a dpctl.SyclQueue or a capsule of either",
                object);
  }
  return *context;
}

sycl::device to_device(nb::handle object) {
  const auto* device = detail::in_dpctl<sycl::device>(object);
  if (device == nullptr) {
    refuse_type("device", "a dpctl.SyclDevice", object);
  }
  return *device;
}

nb::object to_dpctl(const sycl::device& device) { return make_checked(device); }
nb::object to_dpctl(const sycl::context& context) { return make_checked(context); }
nb::object to_dpctl(const sycl::queue& queue) { return make_checked(queue); }

}  // namespace usm_dlpack::python
