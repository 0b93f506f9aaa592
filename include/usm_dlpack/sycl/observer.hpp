// SPDX-License-Identifier: Apache-2.0
//
// Lets Python's `explain` observe the import and export protocols.
#pragma once

namespace usm_dlpack::detail {

/// Receives the name of each protocol step as it begins, the refusing one included.
struct step_observer {
  void (*begin)(step_observer& self, const char* step);
};

/// @param observer may be null
inline void begin_step(step_observer* observer, const char* step) {
  if (observer != nullptr) {
    observer->begin(*observer, step);
  }
}

}  // namespace usm_dlpack::detail
