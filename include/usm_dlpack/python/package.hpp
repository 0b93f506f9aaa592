// SPDX-License-Identifier: Apache-2.0
//
// The interface of the installed Python package for extensions: it reads the arrays of other
// libraries, makes DLPackTensors, and raises the package's errors. An extension loads the
// table on first use, so it needs the package at run time, but does not link to it.
//
// The two are built separately, so only C types cross: pointers, integers and strings. Raise
// `interface_version` whenever a function, a field or the name of a code of `errc` changes.
#pragma once

#include <usm_dlpack/core/config.hpp>
#include <usm_dlpack/core/error.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/python/error.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/queues.hpp>
#include <usm_dlpack/sycl/runtime_defects.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace usm_dlpack::detail {

/// The result of an import of an object as an array. For `failed`, the Python error is set.
enum class import_status : std::int32_t { in_usm, on_host, no_array, failed };

/// A proved array in USM. All pointers but `owner` are borrowed from it.
struct imported_array {
  PyObject* owner;             ///< a new reference; keeps the memory alive
  const DLTensor* tensor;      ///< with strides, and `byte_offset` 0
  const sycl::queue* queue;    ///< may still work on the memory
  const sycl::device* device;  ///< the true one: a root device or a sub-device
  std::uint64_t flags;         ///< bits of `flag`
  std::uint64_t base;          ///< of the range that `bounds_proof` names
  std::uint64_t size;          ///< in bytes
  std::int32_t device_id;      ///< of the root device
  std::int32_t kind;           ///< a `sycl::usm::alloc`
  std::int32_t device_proof;   ///< a `device_proof`
  std::int32_t bounds_proof;   ///< a `bounds_proof`
};

/// A wait that failed.
struct failed_wait {
  std::int32_t code;  ///< a `sycl::errc`
  char text[1020];    ///< ends with a null; cut if it is longer
};

/// Functions of usm_dlpack._core. They throw nothing. Those that set the Python error if they
/// fail need the GIL.
struct package_interface {
  static constexpr std::uint32_t interface_version = 14;
  static constexpr const char* capsule_name = "usm_dlpack.package_interface";

  std::uint32_t version;
  std::uint32_t array_size;  ///< of `imported_array`, in bytes
  /// Imports an object as an array, and proves it. Waits for nothing. `out` is written only
  /// for `in_usm`.
  import_status (*import_array)(PyObject* object, imported_array* out) noexcept;
  /// Waits for the work on an array: of its own queue only if `own` is not 0, of the other
  /// queues that use its memory, and of dpctl's. Returns 0, or -1 with the Python error set.
  std::int32_t (*wait_for_array)(PyObject* owner, std::int32_t own) noexcept;
  /// Makes a proved DLPackTensor with a queue. Consumes the managed tensor even if it fails;
  /// then returns null with the Python error set.
  /// @param owner the Python object that owns the memory, or null. If it is a DLPackTensor,
  ///        the new one shares its list of queues.
  /// @param kind the `sycl::usm::alloc` that the memory must be of; unknown for any
  PyObject* (*make_tensor)(DLManagedTensorVersioned* managed, PyObject* owner,
                           const sycl::queue* queue, std::int32_t kind) noexcept;
  /// Drops a reference, from any thread, with the GIL or without; does nothing once the
  /// interpreter is finishing.
  void (*drop)(PyObject* object) noexcept;
  /// Frees USM after the work of its queue, for which it waits without the GIL. A thread that
  /// runs no Python code may be a host task, so it leaves the free to `free_finished`.
  void (*free_after_work)(const sycl::queue* queue, void* address) noexcept;
  /// Frees what such threads left, if its work has ended, without the GIL.
  void (*free_finished)() noexcept;
  /// Waits for the present work of a queue, without the GIL. Returns 0, or -1 with `failed`
  /// written.
  std::int32_t (*wait_for_queue)(const sycl::queue* queue, failed_wait* failed) noexcept;
  /// Waits for dpctl's queue on the queue's device, likewise.
  std::int32_t (*wait_for_default_queue)(const sycl::queue* queue,
                                         failed_wait* failed) noexcept;
  /// Returns 0, or -1 with the Python error set in a child of fork(), where the SYCL runtime
  /// would wait forever.
  std::int32_t (*check_process)() noexcept;
  /// Sets the Python error of a refusal, by the name of its code. If making the error raises
  /// (an interrupt, for example), sets that instead.
  void (*set_error)(const char* code, const char* field, const char* expected,
                    const char* found, const char* remedy) noexcept;

  /// The table of the installed package, which the first call imports. From then on, waits in
  /// this module's arrays release the GIL.
  [[gnu::visibility("hidden")]] static const package_interface& get() {
    // No lock: an import lets other threads run, which would wait for it with the GIL held.
    static std::atomic<const package_interface*> cache{nullptr};
    const package_interface* table = cache.load(std::memory_order_acquire);
    if (table == nullptr) {
      table = load();
      cache.store(table, std::memory_order_release);
      static constexpr queue_functions of_package{
          [](const sycl::queue& queue) {
            check_executing(queue);
            call_wait(get().wait_for_queue, queue);
          },
          [](const sycl::queue& queue) { call_wait(get().wait_for_default_queue, queue); },
          [](const sycl::queue& queue, void* address) noexcept {
            get().free_after_work(&queue, address);
          },
          []() noexcept { get().free_finished(); }};
      current_queue_functions.store(&of_package, std::memory_order_release);
    }
    return *table;
  }

 private:
  /// @throws sycl::exception of a wait that failed
  static void call_wait(decltype(package_interface::wait_for_queue) wait,
                        const sycl::queue& queue) {
    failed_wait failed;
    if (wait(&queue, &failed) != 0) {
      throw sycl::exception(std::error_code(failed.code, sycl::sycl_category()), failed.text);
    }
  }

  static const package_interface* load() {
    const python_object module = checked(PyImport_ImportModule("usm_dlpack._core"));
    const python_object capsule(PyObject_GetAttrString(module.get(), "_package_interface"));
    PyErr_Clear();  // an older package has none
    const auto* table = PyCapsule_IsValid(capsule.get(), capsule_name) != 0
                            ? static_cast<const package_interface*>(
                                  PyCapsule_GetPointer(capsule.get(), capsule_name))
                            : nullptr;
    if (table == nullptr) {
      refuse_package(digits(interface_version), "none");
    } else if (table->version != interface_version) {
      refuse_package(digits(interface_version), digits(table->version));
    } else if (table->array_size != sizeof(imported_array)) {
      const std::string arrays = " and arrays of ";
      refuse_package(
          digits(interface_version) + arrays + digits(sizeof(imported_array)) + " bytes",
          digits(table->version) + arrays + digits(table->array_size));
    }
    return table;
  }

  [[noreturn]] static void refuse_package(const std::string& expected,
                                          const std::string& found) {
    PyErr_SetString(
        PyExc_ImportError,
        ("usm_dlpack: expected a package with the interface " + expected + ", found " + found +
         "; build the extension again, with the installed package")
            .c_str());
    throw python_exception();
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

/// The result of a function, a new reference; null with the Python error set if it throws.
template <class Make>
PyObject* object_or_null(Make&& make) noexcept {
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
