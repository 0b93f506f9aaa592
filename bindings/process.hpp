// SPDX-License-Identifier: Apache-2.0
//
// The process and the interpreter that the module was loaded into, and what is left of them:
// the SYCL runtime does not survive fork(), and its objects belong to one interpreter.
#pragma once

namespace usm_dlpack::python {

/// Whether this is a child of the process that used the SYCL runtime, made by fork(): the
/// runtime's threads and locks stayed behind.
bool process_is_forked() noexcept;

/// @throws conversion_error `process_forked` in such a child
void check_process();

/// Watches for fork().
void register_process();

/// Sets the Python error ImportError in another interpreter than the main one.
/// @return whether this is the main one
bool check_interpreter() noexcept;

}  // namespace usm_dlpack::python
