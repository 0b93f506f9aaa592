// SPDX-License-Identifier: Apache-2.0
//
// What an nb::ndarray cannot say of a view, an owner that needs the GIL, and views and arrays
// that would have no owner or two, or be copied; each line breaks one rule, and does not
// compile.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/pybind11.hpp>

#include <utility>

namespace nb = nanobind;

struct nibble_pair {
  unsigned char bits;
};

template <>
struct usm_dlpack::data_type_of<nibble_pair> {
  static constexpr DLDataType value{kDLFloat4_e2m1fn, 4, 2};
};

namespace {

using vector_view = Kokkos::mdspan<float, Kokkos::dextents<int, 1>>;
using nibble_pair_view = Kokkos::mdspan<const nibble_pair, Kokkos::dextents<int, 1>>;

struct keeper {
  usm_dlpack::owned_view<vector_view> x;
  usm_dlpack::usm_array<vector_view> made;
  usm_dlpack::any_view any;
};

}  // namespace

NB_MODULE(refused_extension, m) {
  m.def("look", [](const nb::ndarray<nb::ro>& x) {
    static_cast<void>(usm_dlpack::to_mdspan<nibble_pair_view>(x));
  });
  m.def("owner", [](nb::object self) {
    static_cast<void>(usm_dlpack::to_managed_tensor(vector_view(), DLDevice{}, self));
  });
  m.def("view", [] { return usm_dlpack::device_mdspan<vector_view>(); });
  m.def("array", [](usm_dlpack::usm_array<vector_view>&&) {});
  m.def("copied view", [](const usm_dlpack::owned_view<vector_view>& x) { return x; });
  m.def("copied any_view", [](const usm_dlpack::any_view& x) { return x; });
  m.def("viewed any_view",
        [](usm_dlpack::any_view x) { static_cast<void>(std::move(x).as<vector_view>()); });
  nb::class_<keeper>(m, "Keeper")
      .def_ro("x", &keeper::x)
      .def_ro("made", &keeper::made)
      .def_ro("any", &keeper::any);
  pybind11::class_<keeper>(pybind11::module_(), "Keeper")
      .def_readonly("x", &keeper::x)
      .def_readonly("made", &keeper::made)
      .def_readonly("any", &keeper::any);
}
