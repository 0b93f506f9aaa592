// SPDX-License-Identifier: Apache-2.0
//
// Lets Python's `explain` watch the import and the export protocol as they run.
#pragma once

namespace usm_dlpack::detail {

/// Receives the name of each step of a protocol when the step begins. After a refusal, the
/// last name is that of the step that refused.
struct observer {
  void (*begin)(observer& self, const char* step);
};

/// @param watching null if nobody watches
inline void begin_step(observer* watching, const char* step) {
  if (watching != nullptr) {
    watching->begin(*watching, step);
  }
}

}  // namespace usm_dlpack::detail
