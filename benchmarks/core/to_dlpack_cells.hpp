// SPDX-License-Identifier: Apache-2.0
//
// The cells of the conversion from a view, over ranks, index types, and static and dynamic
// extents; which, the program's build chooses.
#pragma once

#include <by_hand.hpp>
#include <cell.hpp>

#include <usm_dlpack/core/to_dlpack.hpp>

#include <cstddef>
#include <string>
#include <utility>

struct ours {
  static constexpr const char* name = "ours";
  template <class View>
  [[gnu::noinline]] static void convert(const void* input) {
    const auto wrapper =
        usm_dlpack::to_dlpack_tensor(*static_cast<const View*>(input), DLDevice{kDLCPU, 0});
    const DLTensor tensor = wrapper.get();
    keep(tensor);
  }
};

template <order Order>
struct by_hand {
  static constexpr const char* name = "floor";
  template <class View>
  [[gnu::noinline]] static void convert(const void* input) {
    convert_by_hand<Order>(*static_cast<const View*>(input),
                           std::make_index_sequence<View::rank()>{});
  }
};

template <class Subject, class View>
void add_cell(const std::string& group, const View& view) {
  cells().push_back({group + "/" + Subject::name, &Subject::template convert<View>, &view});
}

template <class Index>
std::string group_of(const char* layout, bool fixed, std::size_t rank) {
  return std::string("to_dlpack_tensor/") + layout + "/" + index_name<Index>() + "/" +
         (fixed ? "static" : "dynamic") + "/" + std::to_string(rank);
}
