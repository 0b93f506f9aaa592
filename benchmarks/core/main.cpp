// SPDX-License-Identifier: Apache-2.0
//
// `count` dumps callgrind's counters after each cell, run under callgrind; `time <rounds>`
// prints the nanoseconds of a call of each cell, the fastest and the median round, in rounds
// that take turns. Either fails if a conversion allocates.
#include <cell.hpp>

#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

std::size_t allocations = 0;
constexpr int calls_of_a_turn = 256;

[[gnu::noinline]] void convert_nothing(const void* input) { keep(input); }

[[gnu::noinline]] void repeat(const cell& one, int calls) {
  for (int call = 0; call < calls; ++call) {
    one.convert(one.input);
  }
}

void count() {
  for (const cell& one : cells()) {
    repeat(one, 2);  // the dynamic linker and the caches are warm
    CALLGRIND_ZERO_STATS;
    repeat(one, 1);
    CALLGRIND_DUMP_STATS_AT(one.name.c_str());
  }
}

void time_in_turns(std::size_t rounds) {
  using clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> spent(cells().size());
  for (auto& times : spent) {
    times.reserve(rounds);
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t number = 0; number < cells().size(); ++number) {
      const cell& one = cells()[number];
      one.convert(one.input);
      const auto start = clock::now();
      repeat(one, calls_of_a_turn);
      const std::chrono::duration<double, std::nano> turn = clock::now() - start;
      spent[number].push_back(turn.count() / calls_of_a_turn);
    }
  }
  for (std::size_t number = 0; number < cells().size(); ++number) {
    auto& times = spent[number];
    std::sort(times.begin(), times.end());
    std::printf("%s\t%.3f\t%.3f\n", cells()[number].name.c_str(), times.front(),
                times[times.size() / 2]);
  }
}

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
