// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this folder do with their uses: each must be refused, and its code and
// sentence are printed behind its name, with tabs between them.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <initializer_list>
#include <iostream>

/// A use and its name.
struct invalid_use {
  const char* name;
  void (*act)();
};

inline int print_refusals(std::initializer_list<invalid_use> uses) {
  int status = 0;
  for (const invalid_use& use : uses) {
    try {
      use.act();
      std::cerr << use.name << ": expected a refusal, found none\n";
      status = 1;
    } catch (const usm_dlpack::conversion_error& error) {
      std::cout << use.name << '\t' << usm_dlpack::to_string(error.code()) << '\t'
                << error.what() << '\n';
    }
  }
  return status;
}
