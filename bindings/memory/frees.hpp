// SPDX-License-Identifier: Apache-2.0
//
// Frees memory after the work of queues. All USM of this package and of extensions is freed
// here. `free_finished` runs in every import and allocation, so it must not wait for work.
#pragma once

#include <usm_dlpack/sycl/config.hpp>

#include <functional>
#include <vector>

namespace usm_dlpack::python {

/// Something to free once queues have done their present work.
struct pending_free {
  std::vector<sycl::queue> queues;
  std::function<void()> free;  ///< called without the GIL; throws nothing
};

/// Waits for the queues without the GIL, and frees.
///
/// A thread that runs no Python code may be a host task that drops an object. A wait there
/// would wait for itself, so the free is left to `free_finished`.
///
/// Nothing is freed in a child of fork(), where memory and work belong to the parent; nor when
/// the interpreter is ending, because the work may wait for Python code that does not run any
/// more; nor if waiting fails, or a queue records a graph, because a kernel may still use the
/// memory. Then the queues leak as well, because destroying one may wait.
void free_after_work(pending_free pending) noexcept;

/// The same for USM.
void free_usm_after_work(std::vector<sycl::queue> queues, void* address,
                         const sycl::context& context) noexcept;

/// Frees what such threads left, if its work has ended, without the GIL. Never waits for that.
/// Called by allocations, imports and exports in USM.
void free_finished() noexcept;

}  // namespace usm_dlpack::python
