// SPDX-License-Identifier: Apache-2.0
//
// Lets Python's `explain` watch the import and export protocols.
#pragma once

namespace usm_dlpack::detail {

/// Receives the name of each protocol step as it begins, the refusing one included.
struct observer {
  void (*begin)(observer& self, const char* step);
};

/// @param watching may be null
inline void begin_step(observer* watching, const char* step) {
  if (watching != nullptr) {
    watching->begin(*watching, step);
  }
}

}  // namespace usm_dlpack::detail
