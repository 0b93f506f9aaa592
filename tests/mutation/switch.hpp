// SPDX-License-Identifier: Apache-2.0
//
// The switch of the faults that are compiled in: the variable USM_DLPACK_FAULT names the one
// that is on. With USM_DLPACK_FAULTS_REACHED, the numbers of those that run came to are
// written at the end of the process to a new file of that prefix.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace usm_dlpack_mutation {

inline constexpr int most = 10000;

/// Trivial, so that it outlives every static, and without a heap, whose use the tests count.
struct state {
  int fault = 0;
  const char* prefix = nullptr;
  bool reached[most] = {};
};

inline void write_reached();

inline state& current() noexcept {
  static state made = [] {
    state fresh;
    const char* fault = std::getenv("USM_DLPACK_FAULT");
    fresh.fault = fault == nullptr ? 0 : std::atoi(fault);
    fresh.prefix = std::getenv("USM_DLPACK_FAULTS_REACHED");
    if (fresh.prefix != nullptr) {
      std::atexit(write_reached);
    }
    return fresh;
  }();
  return made;
}

inline void write_reached() {
  char name[4096];
  std::snprintf(name, sizeof name, "%s%d", current().prefix, static_cast<int>(getpid()));
  if (std::FILE* file = std::fopen(name, "w")) {
    for (int fault = 0; fault < most; ++fault) {
      if (current().reached[fault]) {
        std::fprintf(file, "%d\n", fault);
      }
    }
    std::fclose(file);
  }
}

inline bool is_on(int fault) noexcept {
  state& now = current();
  now.reached[fault] = true;
  return now.fault == fault;
}

/// Whether a fault is on: never in constant evaluation.
constexpr bool on(int fault) noexcept {
  return !__builtin_is_constant_evaluated() && is_on(fault);
}

}  // namespace usm_dlpack_mutation
