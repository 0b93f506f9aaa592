// SPDX-License-Identifier: Apache-2.0
//
// The check of a tensor's structure.
#include <cell.hpp>
#include <input_tensor.hpp>

#include <usm_dlpack/structure.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace {

[[gnu::noinline]] void check(const void* input) {
  const auto structure = usm_dlpack::check_structure(*static_cast<const DLTensor*>(input));
  keep(structure);
}

template <std::size_t Rank>
void add_check() {
  static const input_tensor<Rank> input(false);
  const std::string group = "check_structure/any/int64/dynamic/" + std::to_string(Rank);
  cells().push_back({group + "/ours", &check, &input.tensor});
}

template <std::size_t... Ranks>
void add_ranks(std::index_sequence<Ranks...>) {
  (add_check<Ranks>(), ...);
}

const bool added = (add_ranks(std::index_sequence<USM_DLPACK_CELLS_RANKS>{}), true);

}  // namespace
