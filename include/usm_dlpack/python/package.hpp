// SPDX-License-Identifier: Apache-2.0
//
// The interface of the installed Python package for extensions: it reads the arrays of other
// libraries, makes DLPackTensors, and raises the package's errors. An extension looks the
// table up on first use, so it needs the package at run time, but does not link to it.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/python/proved_tensor.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/queues.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace usm_dlpack::detail {

/// What became of an array. For `refused`, a rule of this package, and for `failed`, anything
/// else, the Python error is set.
enum class offer { made, other_type, no_array, refused, failed };

/// Functions of usm_dlpack._core. They need the GIL unless stated otherwise, and throw
/// nothing: on failure they set the Python error.
struct package_interface {
  static constexpr std::uint32_t known_version = 11;
  static constexpr const char* capsule_name = "usm_dlpack.package_interface";

  std::uint32_t version;
  /// Gets the tensor of an array, proved, and a Python object as its owner. Waits for nothing.
  /// Accepts objects that have only the SYCL array interface, and objects that have
  /// either by themselves and not by their type.
  /// @param wanted its dtype and `ndim`, if it has them, are compared first: a tensor of
  /// others
  ///        is `other_type`, of which only `described`, `flags` and `owner` are set
  offer (*ask)(PyObject* array, const requirements& wanted, proved_tensor& out) noexcept;
  /// Waits for the work on an array that `ask` gave: of its own queue only if `own`, of the
  /// other queues that use its memory, and of dpctl's. Returns what the runtime threw, or
  /// null.
  std::exception_ptr (*wait_for_array)(const proved_tensor& array, bool own) noexcept;
  /// The package's in-order queue on a root device, the default one of arrays; kept for the
  /// life of the process. Null if it fails.
  const sycl::queue* (*queue_on)(std::int32_t device_id) noexcept;
  /// Makes a proved DLPackTensor with a queue. Takes the managed tensor also if it fails.
  /// @param owner the Python object that owns the memory, or null. If it is a DLPackTensor,
  ///        the new one shares its list of queues.
  PyObject* (*make_tensor)(DLManagedTensorVersioned* managed, PyObject* owner,
                           const sycl::queue& queue, const requirements& wanted) noexcept;
  /// Drops a reference, from any thread, with the GIL or without; does nothing once the
  /// interpreter is finishing.
  void (*drop)(PyObject* object) noexcept;
  /// Frees USM after the work of its queue, without the GIL. A host task may call it with the
  /// GIL.
  void (*free_after_work)(const sycl::queue& queue, void* address) noexcept;
  /// Waits for the present work of a queue, without the GIL. Returns what the runtime threw,
  /// or null.
  std::exception_ptr (*wait)(const sycl::queue& queue) noexcept;
  /// Waits for dpctl's queue on the queue's device, likewise.
  std::exception_ptr (*wait_for_default)(const sycl::queue& queue) noexcept;
  /// Returns 0, or -1 with the Python error set in a child of fork(), where the SYCL runtime
  /// would wait forever.
  int (*check_process)() noexcept;
  /// Sets the Python error of a refusal, by the name of its code. If making the error raises
  /// (an interrupt, for example), sets that instead.
  void (*set_error)(const char* code, const char* field, const char* expected,
                    const char* found, const char* remedy) noexcept;

  /// The table of the installed package, which the first call imports. From then on, waits in
  /// this module's arrays release the GIL.
  static const package_interface& get() {
    // No lock: an import lets other threads run, which would wait for it with the GIL held.
    static std::atomic<const package_interface*> kept{nullptr};
    const package_interface* table = kept.load(std::memory_order_acquire);
    if (table == nullptr) {
      table = find();
      kept.store(table, std::memory_order_release);
      static constexpr queue_functions of_package{
          [](const sycl::queue& queue) { rethrow(get().wait(queue)); },
          [](const sycl::queue& queue) { rethrow(get().wait_for_default(queue)); },
          [](const sycl::queue& queue, void* address) noexcept {
            get().free_after_work(queue, address);
          }};
      current_queue_functions.store(&of_package, std::memory_order_release);
    }
    return *table;
  }

  static void rethrow(const std::exception_ptr& thrown) {
    if (thrown != nullptr) {
      std::rethrow_exception(thrown);
    }
  }

 private:
  static const package_interface* find() {
    const python_object module = checked(PyImport_ImportModule("usm_dlpack._core"));
    const python_object capsule(PyObject_GetAttrString(module.get(), "_package_interface"));
    PyErr_Clear();  // an older package has none
    const auto* table = PyCapsule_IsValid(capsule.get(), capsule_name) != 0
                            ? static_cast<const package_interface*>(
                                  PyCapsule_GetPointer(capsule.get(), capsule_name))
                            : nullptr;
    if (table == nullptr || table->version != known_version) {
      const std::string found =
          table == nullptr ? std::string("none") : digits(table->version);
      PyErr_SetString(
          PyExc_ImportError,
          ("usm_dlpack: expected a package with the interface " + digits(known_version) +
           ", found " + found + "; build the extension again, with the installed package")
              .c_str());
      throw python_exception();
    }
    return table;
  }
};

/// Sets the Python error of a refusal.
/// @pre the GIL is held
inline void set_error(const conversion_error& error) noexcept {
  try {
    package_interface::get().set_error(to_string(error.code()), error.field().c_str(),
                                       error.expected().c_str(), error.found().c_str(),
                                       error.remedy().c_str());
  } catch (const python_exception& raised) {
    raised.restore();
  } catch (...) {
    PyErr_NoMemory();
  }
}

/// The object that a function makes, a new reference; null with the Python error set if it
/// throws.
template <class Make>
PyObject* made_or_error(Make&& make) noexcept {
  try {
    return make().release();
  } catch (const python_exception& error) {
    error.restore();
  } catch (const conversion_error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace usm_dlpack::detail
