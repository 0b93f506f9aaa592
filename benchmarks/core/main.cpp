// SPDX-License-Identifier: Apache-2.0
//
// `count` dumps callgrind's counters after each cell, run under callgrind; `time <rounds>`
// prints the nanoseconds of a call of each cell, the fastest and the median round, in rounds
// that take turns. Either fails if a conversion allocates.
#include <cell.hpp>
#include <turns.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

std::size_t allocations = 0;

[[gnu::noinline]] void convert_nothing(const void* input) { keep(input); }

}  // namespace

// Not inlined, or g++ sees malloc's memory freed by operator delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

int main(int count_of_arguments, char** arguments) {
  cells().push_back({"nothing/any/any/any/0/ours", &convert_nothing, nullptr});
  const std::size_t before = allocations;
  for (const cell& one : cells()) {
    repeat(one, 1);
  }
  if (allocations != before) {
    std::fprintf(stderr, "allocations: expected none, found %zu\n", allocations - before);
    return 1;
  }
  if (count_of_arguments == 2 && std::string_view(arguments[1]) == "count") {
    count();
  } else if (count_of_arguments == 3) {
    time_in_turns(std::strtoul(arguments[2], nullptr, 10));
  }
  return 0;
}
