// SPDX-License-Identifier: Apache-2.0
//
// The check of a tensor's structure.
#include <cell.hpp>
#include <input_tensor.hpp>

#include <usm_dlpack/core/structure.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace {

[[gnu::noinline]] void check(const void* input) {
  const auto structure = usm_dlpack::check_structure(*static_cast<const DLTensor*>(input));
  keep(structure);
}

void add_check(const DLTensor& input, const char* which) {
  const std::string group = std::string("check_structure/any/int64/dynamic") + which + "/" +
                            std::to_string(input.ndim);
  cells().push_back({group + "/ours", &check, &input});
}

/// A compact tensor, a slice with every second element, columns, and one whose dimensions are
/// in neither order.
template <std::size_t Rank>
void add_check() {
  static const input_tensor<Rank> compact(false);
  add_check(compact.tensor, "");
  if constexpr (Rank >= 2) {
    static const input_tensor<Rank> slice(false, 2);
    add_check(slice.tensor, ", of a slice");
    static const input_tensor<Rank> columns(true);
    add_check(columns.tensor, ", of columns");
  }
  if constexpr (Rank >= 3) {
    static input_tensor<Rank> swapped(false);
    std::swap(swapped.shape[0], swapped.shape[1]);
    std::swap(swapped.strides[0], swapped.strides[1]);
    add_check(swapped.tensor, ", of swapped dimensions");
  }
}

template <std::size_t... Ranks>
void add_ranks(std::index_sequence<Ranks...>) {
  (add_check<Ranks>(), ...);
}

const bool added = (add_ranks(std::index_sequence<USM_DLPACK_CELLS_RANKS>{}), true);

}  // namespace
