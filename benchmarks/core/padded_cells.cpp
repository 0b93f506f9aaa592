// SPDX-License-Identifier: Apache-2.0
//
// Conversions from views of padded layouts, which CCCL has none of: ours and the floor, with
// the reference implementation of mdspan.
#include <to_dlpack_cells.hpp>

#include <mdspan/mdspan.hpp>

namespace {

namespace md = Kokkos;
constexpr std::size_t padding = 8;
float elements[16384];

template <class Layout, order Order, class Extents>
void add_cells(const char* layout, const Extents& extents, bool fixed) {
  using index_type = typename Extents::index_type;
  using view = md::mdspan<float, Extents, Layout>;
  static const view input = [&] {
    if constexpr (view::mapping_type::padding_value == md::dynamic_extent &&
                  Extents::rank() > 1) {
      return view(elements, typename view::mapping_type(extents, index_type{padding}));
    } else {
      return view(elements, typename view::mapping_type(extents));
    }
  }();
  const std::string group = group_of<index_type>(layout, fixed, Extents::rank());
  add_cell<ours>(group, input);
  add_cell<by_hand<Order>>(group, input);
}

template <class Index, std::size_t... Ranks>
void add_rank(std::index_sequence<Ranks...>) {
  namespace padded = md::Experimental;
  using dynamic = md::dextents<Index, sizeof...(Ranks)>;
  const dynamic extents(static_cast<Index>(extents_of_cells[Ranks])...);
  add_cells<padded::layout_right_padded<md::dynamic_extent>, order::right_padded>(
      "right padded", extents, false);
  add_cells<padded::layout_left_padded<md::dynamic_extent>, order::left_padded>(
      "left padded", extents, false);
  using fixed = md::extents<Index, extents_of_cells[Ranks]...>;
  add_cells<padded::layout_right_padded<padding>, order::right_padded>("right padded", fixed(),
                                                                       true);
  add_cells<padded::layout_left_padded<padding>, order::left_padded>("left padded", fixed(),
                                                                     true);
}

template <std::size_t... Ranks>
void add_ranks(std::index_sequence<Ranks...>) {
  ((Ranks == 0 ? void() : add_rank<int>(std::make_index_sequence<Ranks>{})), ...);
  ((Ranks == 0 ? void() : add_rank<std::int64_t>(std::make_index_sequence<Ranks>{})), ...);
  ((Ranks == 0 ? void() : add_rank<std::size_t>(std::make_index_sequence<Ranks>{})), ...);
}

const bool added = (add_ranks(std::index_sequence<USM_DLPACK_CELLS_RANKS>{}), true);

}  // namespace
