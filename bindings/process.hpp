// SPDX-License-Identifier: Apache-2.0
//
// Checks of the process and the interpreter: the SYCL runtime does not survive fork(), and its
// objects belong to one interpreter.
#pragma once

namespace usm_dlpack::python {

/// Whether this is a fork()ed child of a process that used the SYCL runtime, whose threads and
/// locks exist only in the parent.
bool process_is_forked() noexcept;

/// @throws conversion_error `process_forked` in such a child
void check_process();

/// Registers the handlers of fork().
void register_process();

/// Whether this is the main interpreter; sets the Python error ImportError if not.
bool check_interpreter() noexcept;

}  // namespace usm_dlpack::python
