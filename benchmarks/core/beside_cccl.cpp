// SPDX-License-Identifier: Apache-2.0
//
// Our conversions and CCCL's, of the same views and tensors. All views stand in one
// translation unit, as they do in a user's program: there a compiler inlines less than where a
// view is alone.
//
// `count`, under callgrind, dumps the instructions of one call of each cell; `time <rounds>`
// prints the nanoseconds of a call in the fastest round.
#include <cuda/mdspan>
#include <usm_dlpack/core.hpp>

#include <alloca.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace md = cuda::std;

/// One conversion: the program measures each by itself.
struct cell {
  std::string name;  ///< direction/layout/index type/extents or tensor/rank/whose
  void (*convert)(const void* input);
  const void* input;  ///< opaque to `convert`, so that nothing is computed at compile time
};
std::vector<cell> cells;

constexpr std::size_t all_extents[] = {2, 3, 4, 2, 3, 2, 3, 2};  // rank r has the first r
float elements[1 << 20];

/// Makes the compiler store an object, and assume that all it points to is read.
template <class Object>
[[gnu::always_inline]] inline void keep(const Object& object) {
  asm volatile("" : : "r"(&object) : "memory");
}

[[gnu::noinline]] void convert_nothing(const void* input) { keep(input); }

template <class View>
[[gnu::noinline]] void export_ours(const void* input) {
  const auto wrapper =
      usm_dlpack::to_dlpack_tensor(*static_cast<const View*>(input), DLDevice{kDLCPU, 0});
  const DLTensor tensor = wrapper.get();
  keep(tensor);
}

template <class View>
[[gnu::noinline]] void export_cccl(const void* input) {
  const auto wrapper = cuda::to_dlpack_tensor(*static_cast<const View*>(input));
  const DLTensor tensor = wrapper.get();
  keep(tensor);
}

template <class View>
[[gnu::noinline]] void import_ours(const void* input) {
  const auto view = usm_dlpack::to_mdspan<View>(*static_cast<const DLTensor*>(input));
  keep(view);
}

template <class View>
[[gnu::noinline]] void import_cccl(const void* input) {
  const auto view = cuda::to_host_mdspan<float, View::rank(), typename View::layout_type>(
      *static_cast<const DLTensor*>(input));
  keep(view);
}

/// Adds the exports of one view; a view of layout stride has the strides of C order.
template <class Layout, class Extents>
void add_export(const std::string& layout, const char* kind, const Extents& extents) {
  using index_type = typename Extents::index_type;
  using order =
      std::conditional_t<std::is_same_v<Layout, md::layout_stride>, md::layout_right, Layout>;
  using view = md::mdspan<float, Extents, Layout>;
  using host_view = cuda::host_mdspan<float, Extents, Layout>;
  static const view ours(elements, typename view::mapping_type(
                                       typename order::template mapping<Extents>(extents)));
  static const host_view theirs(ours);
  const std::string group = "export/" + layout +
                            (sizeof(index_type) == sizeof(int) ? "/int/" : "/int64_t/") +
                            kind + "/" + std::to_string(Extents::rank());
  cells.push_back({group + "/ours", &export_ours<view>, &ours});
  cells.push_back({group + "/CCCL", &export_cccl<host_view>, &theirs});
}

/// A tensor that owns its arrays.
template <std::size_t Rank>
struct input_tensor {
  std::int64_t shape[Rank];
  std::int64_t strides[Rank];
  DLTensor tensor{};

  /// @param is_nested whether it is every second element of a part of a larger array
  input_tensor(bool is_c_order, bool is_nested) {
    std::int64_t product = is_nested ? 2 : 1;
    for (std::size_t step = 0; step < Rank; ++step) {
      const std::size_t r = is_c_order ? Rank - 1 - step : step;
      shape[r] = static_cast<std::int64_t>(all_extents[r]);
      strides[r] = product;
      product *= shape[r] + (is_nested ? 1 : 0);
    }
    tensor.data = elements;
    tensor.device = DLDevice{kDLCPU, 0};
    tensor.ndim = static_cast<std::int32_t>(Rank);
    tensor.dtype = DLDataType{kDLFloat, 32, 1};
    tensor.shape = shape;
    tensor.strides = strides;
  }
};

/// Adds the imports of one tensor. CCCL makes only views of int64_t and dynamic extents.
template <class Layout, std::size_t Rank>
void add_import(const std::string& layout, const char* kind, const DLTensor& tensor) {
  using view = md::mdspan<float, md::dextents<std::int64_t, Rank>, Layout>;
  const std::string group =
      "import/" + layout + "/int64_t/" + kind + "/" + std::to_string(Rank);
  cells.push_back({group + "/ours", &import_ours<view>, &tensor});
  cells.push_back({group + "/CCCL", &import_cccl<view>, &tensor});
}

template <class Layout, class Index, std::size_t... Ranks>
void add_exports(const std::string& layout, std::index_sequence<Ranks...>) {
  using dynamic = md::dextents<Index, sizeof...(Ranks)>;
  add_export<Layout>(layout, "dynamic", dynamic(static_cast<Index>(all_extents[Ranks])...));
  add_export<Layout>(layout, "static", md::extents<Index, all_extents[Ranks]...>());
}

template <class Layout, std::size_t Rank>
void add_exports(const std::string& layout) {
  add_exports<Layout, int>(layout, std::make_index_sequence<Rank>());
  add_exports<Layout, std::int64_t>(layout, std::make_index_sequence<Rank>());
}

template <std::size_t Rank>
void add_rank() {
  add_exports<md::layout_right, Rank>("right");
  add_exports<md::layout_left, Rank>("left");
  add_exports<md::layout_stride, Rank>("stride");
  static const input_tensor<Rank> compact_c(true, false);
  static const input_tensor<Rank> compact_f(false, false);
  static const input_tensor<Rank> nested_c(true, true);
  static const input_tensor<Rank> nested_f(false, true);
  add_import<md::layout_right, Rank>("right", "compact C", compact_c.tensor);
  add_import<md::layout_left, Rank>("left", "compact F", compact_f.tensor);
  add_import<md::layout_stride, Rank>("stride", "compact C", compact_c.tensor);
  add_import<md::layout_stride, Rank>("stride", "nested C", nested_c.tensor);
  if constexpr (Rank > 1) {  // otherwise the same tensors
    add_import<md::layout_stride, Rank>("stride", "compact F", compact_f.tensor);
    add_import<md::layout_stride, Rank>("stride", "nested F", nested_f.tensor);
  }
}

[[gnu::noinline]] void repeat(const cell& one, int calls) {
  for (int call = 0; call < calls; ++call) {
    one.convert(one.input);
  }
}

void count() {
  for (const cell& one : cells) {
    repeat(one, 2);  // the dynamic linker and the caches are warm
    CALLGRIND_ZERO_STATS;
    repeat(one, 1);
    CALLGRIND_DUMP_STATS_AT(one.name.c_str());
  }
}

/// Calls with a stack that begins some steps lower: a wide store across the end of a cache
/// line takes twice as long, so each cell is measured at each place of a line.
[[gnu::noinline]] void repeat_at(std::size_t place, const cell& one, int calls) {
  constexpr std::size_t alignment_of_stacks = 16;
  auto* passed_over = static_cast<char*>(alloca((place + 1) * alignment_of_stacks));
  keep(*passed_over);
  repeat(one, calls);
}

void time_in_turns(int rounds) {
  using clock = std::chrono::steady_clock;
  constexpr int calls = 64;
  constexpr std::size_t places = 4;
  std::vector<double> fastest(cells.size(), 1e9);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      repeat(cells[i], 1);
      const auto start = clock::now();
      for (std::size_t place = 0; place < places; ++place) {
        repeat_at(place, cells[i], calls);
      }
      const std::chrono::duration<double, std::nano> spent = clock::now() - start;
      fastest[i] = std::min(fastest[i], spent.count() / (calls * places));
    }
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::printf("%s\t%.3f\n", cells[i].name.c_str(), fastest[i]);
  }
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  cells.push_back({"nothing", &convert_nothing, nullptr});
  add_rank<1>();
  add_rank<2>();
  add_rank<3>();
  add_rank<4>();
  add_rank<8>();
  if (count_of_arguments == 3) {
    time_in_turns(std::atoi(arguments[2]));
  } else {
    count();
  }
  return 0;
}
