// SPDX-License-Identifier: Apache-2.0
//
// What the compiler refuses with -DREFUSED, and takes without.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <utility>

namespace nb = nanobind;

namespace {

using vector_view = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
using kept_view = usm_dlpack::owned_view<vector_view>;
using array = usm_dlpack::usm_array<vector_view>;

#ifdef REFUSED
vector_view give_back(vector_view x) { return x; }
void take(array) {}
void check(const sycl::queue& queue, vector_view x) { usm_dlpack::check_queue(queue, x, 3); }
#else
kept_view give_back(kept_view& x) { return std::move(x); }
void take(vector_view) {}
void check(const sycl::queue& queue, vector_view x) { usm_dlpack::check_queue(queue, x); }
#endif

}  // namespace

NB_MODULE(refused_extension, m) {
  m.def("give_back", &give_back);
  m.def("take", &take);
  m.def("check", &check);
}
