// SPDX-License-Identifier: Apache-2.0
//
// Conversions to views of one layout, USM_DLPACK_CELLS_LAYOUT: ours, the floor and CCCL's,
// which has only int64 and dynamic extents.
#include <by_hand_view.hpp>
#include <cell.hpp>
#include <input_tensor.hpp>

#include <usm_dlpack/core/to_mdspan.hpp>

#include <cuda/mdspan>

namespace {

namespace md = cuda::std;

template <class View>
[[gnu::noinline]] void convert(const void* input) {
  const View view = usm_dlpack::to_mdspan<View>(*static_cast<const DLTensor*>(input));
  keep(view);
}

template <order Order, class View>
[[gnu::noinline]] void convert_by_hand(const void* input) {
  const View view = view_by_hand<Order, View>(*static_cast<const DLTensor*>(input),
                                              std::make_index_sequence<View::rank()>{});
  keep(view);
}

template <class Layout, std::size_t Rank>
[[gnu::noinline]] void convert_by_cccl(const void* input) {
  const auto view =
      cuda::to_host_mdspan<float, Rank, Layout>(*static_cast<const DLTensor*>(input));
  keep(view);
}

/// A view's own conversion and the floor's.
template <class View, order Order, std::size_t Rank>
void add_view(const std::string& group, const input_tensor<Rank>& input) {
  cells().push_back({group + "/ours", &convert<View>, &input.tensor});
  cells().push_back({group + "/floor", &convert_by_hand<Order, View>, &input.tensor});
}

/// A view's own conversion and CCCL's, of another tensor.
template <class View, std::size_t Rank>
void add_beside_cccl(const std::string& group, const input_tensor<Rank>& input) {
  cells().push_back({group + "/ours", &convert<View>, &input.tensor});
  cells().push_back(
      {group + "/CCCL", &convert_by_cccl<typename View::layout_type, Rank>, &input.tensor});
}

template <class Layout, order Order, std::size_t... Ranks>
void add_rank(const char* layout, std::index_sequence<Ranks...>) {
  constexpr std::size_t rank = sizeof...(Ranks);
  static const input_tensor<rank> input(Order == order::left);
  static const input_tensor<rank> sliced(false, 2);
  static const input_tensor<rank> columns(true);
  const auto add = [&](auto index) {
    using index_type = decltype(index);
    using dynamic = md::dextents<index_type, rank>;
    using fixed = md::extents<index_type, extents_of_cells[Ranks]...>;
    const auto group = [&](const char* extents) {
      return std::string("to_mdspan/") + layout + "/" + index_name<index_type>() + "/" +
             extents + "/" + std::to_string(rank);
    };
    add_view<md::mdspan<float, dynamic, Layout>, Order>(group("dynamic"), input);
    if constexpr (std::is_same_v<index_type, std::int64_t>) {
      cells().push_back(
          {group("dynamic") + "/CCCL", &convert_by_cccl<Layout, rank>, &input.tensor});
      if constexpr (Order == order::stride && rank > 1) {
        using view = md::mdspan<float, dynamic, Layout>;
        add_beside_cccl<view>(group("dynamic, of a slice"), sliced);
        add_beside_cccl<view>(group("dynamic, of columns"), columns);
      }
    }
    if constexpr (rank != 0) {
      add_view<md::mdspan<float, fixed, Layout>, Order>(group("static"), input);
    }
  };
  add(int{});
  add(std::int64_t{});
  add(std::size_t{});
}

using layout = md::USM_DLPACK_CELLS_LAYOUT;
constexpr order the_order = order::USM_DLPACK_CELLS_ORDER;

template <std::size_t... Ranks>
void add_ranks(std::index_sequence<Ranks...>) {
  (add_rank<layout, the_order>(USM_DLPACK_CELLS_NAME, std::make_index_sequence<Ranks>{}), ...);
}

const bool added = (add_ranks(std::index_sequence<USM_DLPACK_CELLS_RANKS>{}), true);

}  // namespace
