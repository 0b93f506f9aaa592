// SPDX-License-Identifier: Apache-2.0
//
// One cell of the benchmark's grid: a function that converts once, what it converts, and its
// name. main.cpp counts the instructions of each, or times them in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A conversion of one subject: ours, CCCL's, or the floor, which is written by hand.
struct cell {
  std::string name;  ///< direction/layout/index type/extents/rank/subject
  void (*convert)(const void* input);
  const void* input;  ///< opaque to `convert`, so that nothing is folded away
};

/// All cells of the program, in the order in which they take turns.
inline std::vector<cell>& cells() {
  static std::vector<cell> all;
  return all;
}

/// Makes the compiler store an object, and believe that somebody read all that it points to.
template <class Object>
[[gnu::always_inline]] inline void keep(const Object& object) {
  asm volatile("" : : "r"(&object) : "memory");
}

template <class Index>
constexpr const char* index_name() {
  constexpr bool is_signed = static_cast<Index>(-1) < Index{0};
  return !is_signed ? "size_t" : sizeof(Index) == 4 ? "int32" : "int64";
}

/// The extents of every cell; a cell of rank r has the first r.
inline constexpr std::size_t extents_of_cells[] = {2, 3, 4, 2, 3, 2, 3, 2};
