// SPDX-License-Identifier: Apache-2.0
//
// Makes a program of the invalid uses of the file that includes it: each must be refused, and
// its name, code and sentence are printed, with tabs between them.
#pragma once

#include <usm_dlpack/core/error.hpp>

#include <iostream>
#include <string>
#include <vector>

/// Says that the uses below it need a process of their own.
struct in_process {
  explicit in_process(const char* name) { current() = name; }
  static std::string& current() {
    static std::string name;
    return name;
  }
};

/// An invalid use, which registers itself.
struct use {
  const char* name;
  void (*act)();
  std::string process = in_process::current();

  use(const char* named, void (*acts)()) : name(named), act(acts) { all().push_back(this); }
  static std::vector<const use*>& all() {
    static std::vector<const use*> uses;
    return uses;
  }
};

// Runs the uses of the process that the argument names, or without one, of a plain process.
int main(int count, char** arguments) {
  const std::string process = count == 2 ? arguments[1] : "";
  int status = 0;
  for (const use* one : use::all()) {
    if (one->process != process) {
      continue;
    }
    try {
      one->act();
      std::cerr << one->name << ": expected a refusal, found none\n";
      status = 1;
    } catch (const usm_dlpack::conversion_error& error) {
      std::cout << one->name << '\t' << usm_dlpack::to_string(error.code()) << '\t'
                << error.what() << '\n';
    }
  }
  return status;
}
