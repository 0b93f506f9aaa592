// SPDX-License-Identifier: Apache-2.0
//
// Conversions to views: ours and CCCL's, which has only int64 and dynamic extents; and the
// check of a tensor's structure beside them.
#include <cell.hpp>

#include <usm_dlpack/to_mdspan.hpp>

#include <cuda/mdspan>

namespace {

namespace md = cuda::std;

float elements[4096];

/// A tensor that owns its arrays, for one rank and layout.
template <std::size_t Rank>
struct input_tensor {
  std::int64_t shape[Rank + 1] = {};
  std::int64_t strides[Rank + 1] = {};
  DLTensor tensor{};

  explicit input_tensor(bool left) {
    std::int64_t product = 1;
    for (std::size_t step = 0; step < Rank; ++step) {
      const std::size_t r = left ? step : Rank - 1 - step;
      shape[r] = static_cast<std::int64_t>(extents_of_cells[r]);
      strides[r] = product;
      product *= shape[r];
    }
    tensor.data = elements;
    tensor.device = DLDevice{kDLCPU, 0};
    tensor.ndim = static_cast<std::int32_t>(Rank);
    tensor.dtype = DLDataType{kDLFloat, 32, 1};
    tensor.shape = shape;
    tensor.strides = strides;
  }
};

template <class View>
[[gnu::noinline]] void convert(const void* input) {
  const View view = usm_dlpack::to_mdspan<View>(*static_cast<const DLTensor*>(input));
  keep(view);
}

template <class Layout, std::size_t Rank>
[[gnu::noinline]] void convert_by_cccl(const void* input) {
  const auto view =
      cuda::to_host_mdspan<float, Rank, Layout>(*static_cast<const DLTensor*>(input));
  keep(view);
}

[[gnu::noinline]] void check(const void* input) {
  const auto structure = usm_dlpack::check_structure(*static_cast<const DLTensor*>(input));
  keep(structure);
}

template <class Layout, std::size_t Rank>
void add_rank(const char* layout, bool left) {
  static const input_tensor<Rank> input(left);
  const auto group = [&](const char* index) {
    return std::string("to_mdspan/") + layout + "/" + index + "/dynamic/" +
           std::to_string(Rank);
  };
  const auto add = [&](auto index) {
    using extents = md::dextents<decltype(index), Rank>;
    cells().push_back({group(index_name<decltype(index)>()) + "/ours",
                       &convert<md::mdspan<float, extents, Layout>>, &input.tensor});
  };
  add(std::int64_t{});
  cells().push_back({group("int64") + "/CCCL", &convert_by_cccl<Layout, Rank>, &input.tensor});
  add(int{});
  add(std::size_t{});
}

template <std::size_t Rank>
void add_check() {
  static const input_tensor<Rank> input(false);
  const std::string group = "check_structure/any/int64/dynamic/" + std::to_string(Rank);
  cells().push_back({group + "/ours", &check, &input.tensor});
}

template <std::size_t... Ranks>
void add_ranks(std::index_sequence<Ranks...>) {
  (add_rank<md::layout_right, Ranks>("right", false), ...);
  (add_rank<md::layout_left, Ranks>("left", true), ...);
  (add_rank<md::layout_stride, Ranks>("stride", false), ...);
  (add_check<Ranks>(), ...);
}

const bool added = (add_ranks(std::index_sequence<USM_DLPACK_CELLS_RANKS>{}), true);

}  // namespace
