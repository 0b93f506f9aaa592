// SPDX-License-Identifier: Apache-2.0
//
// What the compiler refuses; each line breaks one rule.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <utility>

namespace nb = nanobind;

struct nibble {  // in a byte of its own
  unsigned char bits;
};
struct nibble_pair {
  unsigned char bits;
};

template <>
struct usm_dlpack::data_type_of<nibble> {
  static constexpr DLDataType value{kDLFloat4_e2m1fn, 4, 1};
};
template <>
struct usm_dlpack::data_type_of<nibble_pair> {
  static constexpr DLDataType value{kDLFloat4_e2m1fn, 4, 2};
};

namespace {

using vector_view = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
using array = usm_dlpack::usm_array<vector_view>;
using constant_view = Kokkos::mdspan<const float, Kokkos::dextents<int, 1>>;
using nibble_view = Kokkos::mdspan<const nibble, Kokkos::dextents<int, 1>>;
using nibble_pair_view = Kokkos::mdspan<const nibble_pair, Kokkos::dextents<int, 1>>;

template <class View, class... Said>
auto show(usm_dlpack::owned_view<View>& x) {
  return usm_dlpack::to_ndarray<nb::ndarray<nb::array_api, Said...>>(std::move(x));
}

vector_view give_back(vector_view x) { return x; }
void take(array) {}
void check(const sycl::queue& queue, vector_view x) { usm_dlpack::check_queue(queue, x, 3); }
const auto show_constant = &show<constant_view, nb::device::oneapi>;
const auto show_nibbles = &show<nibble_view, nb::ro, nb::device::oneapi>;
const auto show_dtype = &show<vector_view, double, nb::device::oneapi>;
const auto show_rank = &show<vector_view, nb::ndim<2>, nb::device::oneapi>;
const auto show_device = &show<vector_view, nb::device::cpu>;
void look(const nb::ndarray<nb::ro>& x) {
  static_cast<void>(usm_dlpack::to_mdspan<nibble_pair_view>(x));
}

}  // namespace

NB_MODULE(refused_extension, m) {
  m.def("give_back", &give_back);
  m.def("take", &take);
  m.def("check", &check);
  for (const void* used :
       {reinterpret_cast<const void*>(show_constant),
        reinterpret_cast<const void*>(show_nibbles), reinterpret_cast<const void*>(show_dtype),
        reinterpret_cast<const void*>(show_rank), reinterpret_cast<const void*>(show_device),
        reinterpret_cast<const void*>(&look)}) {
    static_cast<void>(used);
  }
}
