// SPDX-License-Identifier: Apache-2.0
//
// Functions of both bindings, which say what they were given. Include it where `py` is
// `nanobind` or `pybind11`.
#pragma once

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace py::literals;
using namespace usm_dlpack;

template <class Element, int Rank, class Layout = Kokkos::layout_right>
using array_view = Kokkos::mdspan<Element, Kokkos::dextents<int, Rank>, Layout>;
template <class Element, int Rank>
using strided_view = array_view<Element, Rank, Kokkos::layout_stride>;
template <class Element, int Rank>
using relaxed_view = array_view<Element, Rank, layout_relaxed>;
using row = array_view<float, 1>;
using const_row = array_view<const float, 1>;
using padded_columns = array_view<const float, 2, Kokkos::Experimental::layout_left_padded<4>>;
using brain_floats = array_view<const sycl::ext::oneapi::bfloat16, 1>;
using doubles = array_view<const double, 1>;
using integers = array_view<const std::int32_t, 1>;
using bytes = array_view<const std::uint8_t, 1>;
using rows = array_view<const float, 2>;
using columns = array_view<const float, 2, Kokkos::layout_left>;
using four_rows = Kokkos::mdspan<const float, Kokkos::extents<int, 4, Kokkos::dynamic_extent>>;
using few_bytes = Kokkos::mdspan<const std::uint8_t, Kokkos::dextents<std::int8_t, 1>>;
using extents = Kokkos::dextents<int, 1>;
using held = owned_view<relaxed_view<float, 1>>;

std::unique_ptr<held> kept;

/// Address, extents and strides: what a view is.
template <class View>
py::tuple describe(const View& view) {
  py::list sizes;
  py::list strides;
  for (std::size_t r = 0; r < View::rank(); ++r) {
    sizes.append(view.extent(r));
    strides.append(view.stride(r));
  }
  return py::make_tuple(reinterpret_cast<std::uintptr_t>(view.data_handle()), py::tuple(sizes),
                        py::tuple(strides));
}

/// An overload that says its name. The number may need a conversion, which happens in the
/// second round alone.
template <class Array>
auto takes(const char* name) {
  return [name](const Array&, double) { return name; };
}
/// Likewise for two arrays, by value.
template <class Array>
auto takes_two(const char* name) {
  return [name](Array, Array, double) { return name; };
}
/// Likewise, and without a number.
template <class First, class Second>
auto takes_pair(const char* name) {
  return [name](const First&, const Second&) { return name; };
}

template <class Module>
void add_lone_functions(Module& m) {
  m.def("rank_one", &describe<row>, "x"_a);
  m.def("rank_two_const", &describe<rows>, "x"_a);
  m.def("left", &describe<columns>, "x"_a);
  m.def("padded", &describe<padded_columns>, "x"_a);
  m.def("brain_floats", &describe<brain_floats>, "x"_a);
  m.def("relaxed", &describe<relaxed_view<const float, 2>>, "x"_a);
  m.def("strided", &describe<strided_view<float, 2>>, "x"_a);
  m.def("writes", &describe<relaxed_view<float, 2>>, "x"_a);
  m.def("static_extent", &describe<four_rows>, "x"_a);
  m.def("small_index", &describe<few_bytes>, "x"_a);
  m.def("scalar", &describe<array_view<const double, 0>>, "x"_a);
  m.def("written_scalar", &describe<array_view<float, 0>>, "x"_a);
  m.def("device_only", &describe<device_mdspan<const_row>>, "x"_a);
  m.def(
      "maybe", [](std::optional<const_row> x) { return x ? x->extent(0) : -1; },
      "x"_a = py::none());
  m.def(
      "maybe_pointer", [](const const_row* x) { return x != nullptr ? x->extent(0) : -1; },
      "x"_a.none());
  m.def("sizes", [](const std::vector<const_row>& arrays) {
    std::vector<int> sizes;
    for (const const_row& array : arrays) {
      sizes.push_back(array.extent(0));
    }
    return sizes;
  });
  m.def(
      "either",
      [](const std::variant<std::monostate, const_row, integers>& x) { return x.index(); },
      "x"_a.none());
  m.def("fail", [](const const_row&) { throw std::out_of_range("too far"); });
  m.def("any_as_row", [](const any_view& x) { return describe(x.as<row>("y")); }, "x"_a);
  m.def("any_writes",
        [](const any_view& x) { return describe(x.as<relaxed_view<float, 2>>()); });
  m.def("any_given_back", [](any_view x) { return x; }, "x"_a);
  m.def("given_back", [](owned_view<const_row> x) { return x; }, "x"_a);
  m.def("copied", [](const owned_view<const_row>& x) {
    usm_array<row> made(x.queue(), x.view().extents());
    const ordered_section work(made.queue(), x, made);
    sycl::queue(made.queue()).copy(x.view().data_handle(), made.data(), x.view().size());
    return made;
  });
  m.def("released", [](held x) {
    static_cast<void>(std::move(x).release());
    return x;
  });
  m.def("keep", [](held x) { kept = std::make_unique<held>(std::move(x)); }, "x"_a);
  m.def("drop_on_a_thread", [] {
    const py::gil_scoped_release unlocked;
    std::thread([] { kept.reset(); }).join();
  });
}

template <class Module>
void add_overloads(Module& m) {
  m.def("which", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which", takes<integers>("integers"), "x"_a, "factor"_a);
  m.def("which", takes<columns>("columns"), "x"_a, "factor"_a);
  m.def("which", takes<four_rows>("four rows"), "x"_a, "factor"_a);
  m.def("which", takes<rows>("rows"), "x"_a, "factor"_a);
  m.def("which", takes<few_bytes>("few bytes"), "x"_a, "factor"_a);
  m.def("which", takes<bytes>("bytes"), "x"_a, "factor"_a);
  m.def("which_precision", takes<const_row>("float32"), "x"_a, "factor"_a);
  m.def("which_precision", takes<doubles>("float64"), "x"_a, "factor"_a);
  m.def("which_kind", takes<device_mdspan<const_row>>("device"), "x"_a, "factor"_a);
  m.def("which_kind", takes<shared_mdspan<const_row>>("shared"), "x"_a, "factor"_a);
  m.def("which_access", takes<relaxed_view<float, 2>>("writes"), "x"_a, "factor"_a);
  m.def("which_access", takes<relaxed_view<const float, 2>>("reads"), "x"_a, "factor"_a);
  m.def("which_any", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which_any", takes<any_view>("any array"), "x"_a, "factor"_a);
  m.def("which_object", takes<const_row>("a row"), "x"_a.noconvert(), "factor"_a);
  m.def("which_object", takes<py::object>("any object"), "x"_a, "factor"_a);
  m.def("which_optional", takes<std::optional<const_row>>("a row"), "x"_a, "factor"_a);
  m.def("which_optional", takes<std::optional<integers>>("integers"), "x"_a, "factor"_a);
  m.def("which_list", takes<std::vector<const_row>>("rows"), "x"_a, "factor"_a);
  m.def("which_list", takes<std::vector<integers>>("integers"), "x"_a, "factor"_a);
  m.def("which_two", takes_two<const_row>("rows"), "x"_a, "y"_a, "factor"_a);
  m.def("which_two", takes_two<integers>("integers"), "x"_a, "y"_a, "factor"_a);
  m.def("which_pair", takes_pair<const_row, const_row>("rows"));
  m.def("which_pair", takes_pair<const_row, integers>("a row and integers"));
  m.def("which_pair", takes_pair<integers, integers>("integers"));
  m.def("behind_perhaps", takes_pair<std::optional<const_row>, const_row>("rows"),
        "x"_a.none(), "y"_a);
  m.def("behind_perhaps", takes_pair<std::optional<integers>, integers>("integers"),
        "x"_a.none(), "y"_a);
  m.def("number_before", takes_pair<double, const_row>("a row"));
  m.def("number_before", takes_pair<double, integers>("integers"));
  m.def("number_first", takes_pair<double, const_row>("a row"), "a"_a, "x"_a.noconvert());
  m.def("number_first", takes_pair<double, integers>("integers"), "a"_a, "x"_a.noconvert());
}

/// Functions that cast, with the GIL and without it.
template <class Module>
void add_casts(Module& m) {
  using unlocked = py::call_guard<py::gil_scoped_release>;
  m.def(
      "to_owned", [](py::handle x) { return describe(py::cast<owned_view<row>>(x).view()); },
      "x"_a);
  m.def(
      "cast_unlocked", [](py::handle x) { py::cast<owned_view<const_row>>(x); }, "x"_a,
      unlocked());
  m.def(
      "made_unlocked",
      [](const sycl::queue& queue) { return py::cast(usm_array<row>(queue, extents(3))); },
      "queue"_a, unlocked());
}

template <class Module>
void add_sycl_objects(Module& m) {
  m.def("same_queue", [](const sycl::queue& queue) { return queue; }, "queue"_a);
  m.def("context_of", [](sycl::queue queue) { return queue.get_context(); }, "queue"_a);
  m.def("device_of", [](const sycl::context& c) { return c.get_devices().front(); });
  m.def("queue_on", [](const sycl::device& device) { return sycl::queue(device); });
  m.def(
      "has_queue", [](const sycl::queue* queue) { return queue != nullptr; },
      "queue"_a.none());
  m.def(
      "wait_for", [](sycl::event event) { event.wait(); },
      py::call_guard<py::gil_scoped_release>());
}

}  // namespace
