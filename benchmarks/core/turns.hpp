// SPDX-License-Identifier: Apache-2.0
//
// How cells are measured: by callgrind's counters, one call each, or by time, in turns.
#pragma once

#include <cell.hpp>

#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

inline constexpr int calls_of_a_turn = 256;
inline constexpr int bytes_of_cache_line = 64;
inline constexpr int bytes_of_stack_alignment = 16;

[[gnu::noinline]] inline void repeat(const cell& one, int calls) {
  for (int call = 0; call < calls; ++call) {
    one.convert(one.input);
  }
}

/// Calls with a stack that begins some bytes lower.
template <int Place>
[[gnu::noinline]] void repeat_at(const cell& one, int calls) {
  char passed_over[(Place + 1) * bytes_of_stack_alignment];
  keep(passed_over);
  repeat(one, calls);
  keep(passed_over);
}

/// The calls of one turn, with frames at each place of a cache line that the ABI's alignment
/// of stacks allows: a store of 16 bytes that crosses the line's end takes twice as long, and
/// which one does is the luck of the callers.
inline void take_turn(const cell& one) {
  static_assert(bytes_of_cache_line / bytes_of_stack_alignment == 4, "four places");
  constexpr int calls = calls_of_a_turn / 4;
  repeat_at<0>(one, calls);
  repeat_at<1>(one, calls);
  repeat_at<2>(one, calls);
  repeat_at<3>(one, calls);
}

/// Dumps callgrind's counters after one call of each cell.
inline void count() {
  for (const cell& one : cells()) {
    repeat(one, 2);  // the dynamic linker and the caches are warm
    CALLGRIND_ZERO_STATS;
    repeat(one, 1);
    CALLGRIND_DUMP_STATS_AT(one.name.c_str());
  }
}

/// Prints the nanoseconds of each cell, those of the fastest and of the median round.
inline void print_times(std::vector<std::vector<double>>& spent) {
  for (std::size_t number = 0; number < cells().size(); ++number) {
    auto& times = spent[number];
    std::sort(times.begin(), times.end());
    std::printf("%s\t%.3f\t%.3f\n", cells()[number].name.c_str(), times.front(),
                times[times.size() / 2]);
  }
}

/// Prints how long a call of each cell takes.
inline void time_in_turns(std::size_t rounds) {
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
      take_turn(one);
      const std::chrono::duration<double, std::nano> turn = clock::now() - start;
      spent[number].push_back(turn.count() / calls_of_a_turn);
    }
  }
  print_times(spent);
}
