// SPDX-License-Identifier: Apache-2.0
//
// Conversions from views of cuda::std's layouts: ours, CCCL's and the floor, of one layout,
// USM_DLPACK_CELLS_LAYOUT.
#include <to_dlpack_cells.hpp>

#include <cuda/mdspan>

namespace {

namespace md = cuda::std;

struct cccl {
  static constexpr const char* name = "CCCL";
  template <class View>
  [[gnu::noinline]] static void convert(const void* input) {
    using host_view =
        cuda::host_mdspan<typename View::element_type, typename View::extents_type,
                          typename View::layout_type>;
    const auto wrapper = cuda::to_dlpack_tensor(*static_cast<const host_view*>(input));
    const DLTensor tensor = wrapper.get();
    keep(tensor);
  }
};

using layout = md::USM_DLPACK_CELLS_LAYOUT;
constexpr order the_order = order::USM_DLPACK_CELLS_ORDER;
constexpr const char* layout_name = USM_DLPACK_CELLS_NAME;
float elements[4096];

template <class Extents>
auto make_mapping(const Extents& extents) {
  using mapping = typename layout::template mapping<Extents>;
  if constexpr (the_order == order::stride) {
    return mapping(typename md::layout_right::template mapping<Extents>(extents));
  } else {
    return mapping(extents);
  }
}

template <class Extents>
void add_cells(const Extents& extents, bool fixed) {
  using view = cuda::host_mdspan<float, Extents, layout>;
  using base = md::mdspan<float, Extents, layout>;
  static const base plain(elements, make_mapping(extents));
  static const view input(plain);
  const std::string group =
      group_of<typename Extents::index_type>(layout_name, fixed, Extents::rank());
  add_cell<ours>(group, plain);
  cells().push_back({group + "/CCCL", &cccl::convert<base>, &input});
  add_cell<by_hand<the_order>>(group, plain);
}

template <class Index, std::size_t... Ranks>
void add_rank(std::index_sequence<Ranks...>) {
  if constexpr (sizeof...(Ranks) != 0) {
    add_cells(
        md::dextents<Index, sizeof...(Ranks)>(static_cast<Index>(extents_of_cells[Ranks])...),
        false);
  }
  add_cells(md::extents<Index, extents_of_cells[Ranks]...>(), true);
}

template <std::size_t... Ranks>
void add_ranks(std::index_sequence<Ranks...>) {
  (add_rank<int>(std::make_index_sequence<Ranks>{}), ...);
  (add_rank<std::int64_t>(std::make_index_sequence<Ranks>{}), ...);
  (add_rank<std::size_t>(std::make_index_sequence<Ranks>{}), ...);
}

const bool added = (add_ranks(std::index_sequence<USM_DLPACK_CELLS_RANKS>{}), true);

}  // namespace
