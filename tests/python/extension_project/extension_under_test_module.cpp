// SPDX-License-Identifier: Apache-2.0
//
// Functions over views of USM and SYCL objects, which say what they were given.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using namespace usm_dlpack;

namespace {

template <class Element, int Rank, class Layout = Kokkos::layout_right>
using array_view = Kokkos::mdspan<Element, Kokkos::dextents<int, Rank>, Layout>;
template <class Element, int Rank>
using strided_view = array_view<Element, Rank, Kokkos::layout_stride>;
template <class Element, int Rank>
using relaxed_view = array_view<Element, Rank, layout_relaxed>;

using integers = nb::typed<nb::tuple, int, nb::ellipsis>;
using description = nb::typed<nb::tuple, int, integers, integers>;

/// Address, extents and strides: what a view is.
template <class View>
description describe(const View& view) {
  nb::list extents;
  nb::list strides;
  for (std::size_t r = 0; r < View::rank(); ++r) {
    extents.append(view.extent(r));
    strides.append(view.stride(r));
  }
  return description(nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.data_handle()),
                                    nb::tuple(extents), nb::tuple(strides)));
}

template <class View>
double sum(const View& view) {
  double all = 0;
  for (int i = 0; i < view.extent(0); ++i) {
    all += view[std::array<int, 1>{i}];
  }
  return all;
}

/// Elements of one value, for ever: a copy of them may be pending.
template <class Element>
const Element* constant(std::size_t size, Element value) {
  static std::map<std::pair<std::size_t, Element>, std::vector<Element>> all;
  return all.try_emplace({size, value}, size, value).first->second.data();
}

template <class Element>
array_view<Element, 1> fill(sycl::queue& queue, device_mdspan<array_view<Element, 1>> view,
                            Element value) {
  queue.copy(constant(view.size(), value), view.data_handle(), view.size()).wait();
  return array_view<Element, 1>(view);
}

usm_array<device_mdspan<array_view<float, 2>>> full(sycl::queue& queue, int rows, int columns,
                                                    float value) {
  usm_array<device_mdspan<array_view<float, 2>>> made(queue,
                                                      Kokkos::dextents<int, 2>(rows, columns));
  queue.copy(constant(made.view().size(), value), made.data(), made.view().size());
  return made;
}

using held = owned_view<relaxed_view<float, 1>>;
std::unique_ptr<held> kept;

std::vector<double> first_elements(
    const std::vector<shared_mdspan<array_view<float, 1>>>& all) {
  std::vector<double> first;
  for (const auto& view : all) {
    first.push_back(view[std::array<int, 1>{0}]);
  }
  return first;
}

/// Makes an array that nobody sees, which goes with the function or with the exception.
void use_scratch(sycl::queue& queue, bool fails) {
  const usm_array<device_mdspan<array_view<float, 1>>> scratch(queue,
                                                               Kokkos::dextents<int, 1>(4));
  if (fails) {
    throw std::invalid_argument("scratch: expected no failure, found one as asked for");
  }
}

/// A class with an array as a member.
struct workspace {
  usm_array<device_mdspan<array_view<float, 1>>> memory;
  explicit workspace(const sycl::queue& queue) : memory(queue, Kokkos::dextents<int, 1>(4)) {}
};

struct counter {
  std::shared_ptr<int> alive = std::make_shared<int>(0);
};

struct row_sums {
  double total = 0;
  void add(shared_mdspan<array_view<const float, 1>> row) { total += sum(row); }
};

}  // namespace

NB_MODULE(extension_under_test_module, m) {
  load_package();
  m.def("rank_one", &describe<array_view<float, 1>>, "x"_a);
  m.def("rank_two_const", &describe<array_view<const float, 2>>, "x"_a);
  m.def("left", &describe<array_view<const float, 2, Kokkos::layout_left>>, "x"_a);
  m.def("relaxed", &describe<relaxed_view<const float, 2>>, "x"_a);
  m.def("small_index",
        &describe<Kokkos::mdspan<const std::uint8_t, Kokkos::dextents<std::int8_t, 1>>>,
        "x"_a);
  m.def(
      "static_extent",
      &describe<Kokkos::mdspan<const float, Kokkos::extents<int, 4, Kokkos::dynamic_extent>>>,
      "x"_a);
  m.def("scalar", &describe<array_view<const double, 0>>, "x"_a);
  m.def("device_only", &describe<device_mdspan<array_view<const float, 1>>>, "x"_a);
  m.def("sum", &sum<shared_mdspan<strided_view<const float, 1>>>, "x"_a);
  m.def("explained_elements", &first_elements, "arrays"_a);
  explain_refusals(m, "explained_elements");
  m.def(
      "maybe",
      [](std::optional<array_view<const float, 1>> x) { return x ? x->extent(0) : -1; },
      "x"_a = nb::none());
  m.def(
      "maybe_pointer",
      [](const array_view<const float, 1>* x) { return x != nullptr ? x->extent(0) : -1; },
      "x"_a.none());
  m.def(
      "maybe_kept",
      [](held* x) -> std::optional<std::uintptr_t> {
        return x != nullptr
                   ? std::optional(reinterpret_cast<std::uintptr_t>(x->view().data_handle()))
                   : std::nullopt;
      },
      "x"_a.none());
  m.def(
      "rank_one_or_none", [](const array_view<const float, 1>& x) { return x.extent(0); },
      "x"_a.none());
  m.def("rank_one_or_none", [](nb::none) { return "the next overload"; }, "x"_a.none());
  m.def("first_elements", &first_elements, "arrays"_a);
  m.def(
      "explained_nested",
      [](const std::vector<std::vector<array_view<float, 1>>>& rows,
         const std::map<std::string, array_view<float, 1>>& named) {
        return rows.size() + named.size();
      },
      "rows"_a, "named"_a = nb::dict());
  explain_refusals(m, "explained_nested");

  m.def(
      "fill",
      [](sycl::queue& q, device_mdspan<array_view<float, 1>> x, float value) {
        fill(q, x, value);
        return "float32";
      },
      "queue"_a, "x"_a, "value"_a);
  m.def(
      "fill",
      [](sycl::queue& q, device_mdspan<array_view<std::int32_t, 1>> x, int value) {
        fill(q, x, value);
        return "int32";
      },
      "queue"_a, "x"_a, "value"_a);
  explain_refusals(m, "fill");
  m.def(
      "kind_of",
      [](std::optional<device_mdspan<array_view<const float, 1>>>, int) { return "device"; },
      "x"_a, "n"_a = 0);
  m.def(
      "kind_of",
      [](std::optional<shared_mdspan<array_view<const float, 1>>>, int) { return "shared"; },
      "x"_a, "n"_a = 0);
  explain_refusals(m, "kind_of");
  using floats_or_integers =
      std::variant<array_view<const float, 1>, array_view<const std::int32_t, 1>>;
  m.def(
      "count_variants",
      [](const std::vector<floats_or_integers>& arrays, int) { return arrays.size(); },
      "arrays"_a, "n"_a = 0);
  explain_refusals(m, "count_variants");
  m.def(
      "checked_fill",
      [](sycl::queue& q, device_mdspan<array_view<float, 1>> x, float value) {
        check_queue(q, x);
        fill(q, x, value);
      },
      "queue"_a, "x"_a, "value"_a);
  m.def("use_scratch", &use_scratch, "queue"_a, "fails"_a = false);
  nb::class_<workspace>(m, "Workspace").def(nb::init<const sycl::queue&>(), "queue"_a);
  m.def("full", &full, "queue"_a, "rows"_a, "columns"_a, "value"_a = 1.0f);
  m.def(
      "full_in_other_kind",
      [](sycl::queue& q, int size) {
        return usm_array<array_view<float, 1>>(q, Kokkos::dextents<int, 1>(size),
                                               sycl::usm::alloc::shared);
      },
      "queue"_a, "size"_a);
  m.def("keep", [](held x) { kept = std::make_unique<held>(std::move(x)); }, "x"_a);
  m.def("released", [](held x) {
    static_cast<void>(std::move(x).release());
    return x;
  });
  m.def("released_to_ndarray", [](held x) {
    static_cast<void>(std::move(x).release());
    return usm_dlpack::to_ndarray<nb::ndarray<float, nb::device::oneapi>>(std::move(x));
  });
  m.def("kept_queue", [] { return kept->queue(); });
  m.def("kept_flags", [] { return kept->managed()->flags; });
  m.def("kept_values", [] {
    std::vector<double> values;
    for (int i = 0; i < kept->view().extent(0); ++i) {
      values.push_back(kept->view()[std::array<int, 1>{i}]);
    }
    return values;
  });
  m.def("take_back", [] { return std::move(*std::exchange(kept, nullptr)); });
  m.def("drop_on_a_thread", [] {
    const nb::gil_scoped_release unlocked;
    std::thread([] { kept.reset(); }).join();
  });
  m.def("cast_to_view",
        [](nb::handle x) { return describe(nb::cast<array_view<float, 1>>(x)); });
  m.def("to_owned",
        [](nb::handle x) { return describe(to_owned_view<array_view<float, 1>>(x).view()); });
  m.def("cast_to_owned", [](nb::handle x) {
    const auto owned = nb::cast<owned_view<array_view<float, 1>>>(x);
    return describe(owned.view());
  });

  m.def(
      "readonly_result",
      [](sycl::queue& q, counter& c) {
        auto memory = std::shared_ptr<float>(sycl::malloc_shared<float>(3, q),
                                             [q](float* p) { sycl::free(p, q); });
        std::fill_n(memory.get(), 3, 2.0f);
        const array_view<const float, 1> view(memory.get(), 3);
        return owned_view(view, q, std::make_pair(memory, c.alive));
      },
      "queue"_a, "counter"_a);
  m.def(
      "copied",
      [](owned_view<array_view<const float, 1>> x, counter& c) {
        sycl::queue queue = x.queue().value();
        usm_array<array_view<float, 1>> made(queue, x.view().extents());
        queue.copy(x.view().data_handle(), made.data(), x.view().size());
        return owned_view<array_view<const float, 1>>(std::move(made), std::move(x), c.alive);
      },
      "x"_a, "counter"_a);
  m.def(
      "result_in_host_memory",
      [](sycl::queue& q, counter& c) {
        const auto memory = std::make_shared<std::array<float, 3>>();
        return owned_view(array_view<float, 1>(memory->data(), 3), q,
                          std::make_pair(memory, c.alive));
      },
      "queue"_a, "counter"_a);
  m.def("given_back", [](owned_view<array_view<const float, 1>> x) { return x; }, "x"_a);
  m.def(
      "device_given_back", [](owned_view<device_mdspan<array_view<float, 1>>> x) { return x; },
      "x"_a);
  m.def(
      "empty_result_at_null",
      [](sycl::queue& q) {
        const device_mdspan<array_view<float, 1>> view(nullptr, Kokkos::dextents<int, 1>(0));
        return owned_view(view, q, 0);
      },
      "queue"_a);
  m.def(
      "result_in_other_kind",
      [](sycl::queue& q, counter& c) {
        auto memory = std::shared_ptr<float>(sycl::malloc_host<float>(3, q),
                                             [q](float* p) { sycl::free(p, q); });
        const device_mdspan<array_view<float, 1>> view(memory.get(),
                                                       Kokkos::dextents<int, 1>(3));
        return owned_view(view, q, std::make_pair(memory, c.alive));
      },
      "queue"_a, "counter"_a);
  m.def(
      "result_in_other_context",
      [](sycl::queue& q) {
        auto memory = std::shared_ptr<float>(sycl::malloc_shared<float>(3, q),
                                             [q](float* p) { sycl::free(p, q); });
        return owned_view(array_view<float, 1>(memory.get(), 3), q, memory);
      },
      "queue"_a);
  nb::class_<counter>(m, "Counter")
      .def(nb::init<>())
      .def_prop_ro("alive", [](const counter& c) { return c.alive.use_count() - 1; });

  auto sums = nb::class_<row_sums>(m, "RowSums").def(nb::init<>());
  sums.def("add", &row_sums::add, "row"_a).def_ro("total", &row_sums::total);
  explain_refusals(sums, "add");
  sums.def_static("of",
                  [](shared_mdspan<array_view<const float, 1>> row) { return sum(row); });
  explain_refusals(sums, "of");

  m.def("same_queue", [](const sycl::queue& q) { return q; }, "queue"_a);
  m.def("context_of", [](sycl::queue q) { return q.get_context(); }, "queue"_a);
  m.def(
      "device_of", [](const sycl::context* c) { return c->get_devices().front(); },
      "context"_a);
  m.def("has_queue", [](const sycl::queue* q) { return q != nullptr; }, "queue"_a.none());
  m.def("queue_or_none", [](const sycl::queue&) { return "a queue"; }, "queue"_a.none());
  m.def("queue_or_none", [](nb::none) { return "the next overload"; }, "queue"_a.none());
  m.def("queue_on", [](const sycl::device& d) { return sycl::queue(d); }, "device"_a);
  m.def(
      "fill_after",
      [](sycl::queue& q, device_mdspan<array_view<float, 1>> x,
         const std::vector<sycl::event>& depends) {
        return q.copy(constant(x.size(), 3.0f), x.data_handle(), x.size(), depends);
      },
      "queue"_a, "x"_a, "depends"_a = std::vector<sycl::event>{});

  m.def(
      "step",
      [](sycl::queue&, device_mdspan<array_view<float, 1>> u,
         const array_view<const float, 1>* v, double, const std::vector<sycl::event>&) {
        return u.extent(0) + (v == nullptr ? 0 : v->extent(0));
      },
      "queue"_a, "u"_a, "v"_a.none(), "dt"_a = 1.0, "depends"_a = std::vector<sycl::event>{});
  explain_refusals(m, "step");

  m.def(
      "of_ndarray",
      [](const nb::ndarray<float, nb::device::oneapi>& x) {
        return describe(to_mdspan<strided_view<float, 2>>(x));
      },
      "x"_a);
  m.def(
      "of_readonly_ndarray",
      [](const nb::ndarray<const float>& x) {
        return describe(to_mdspan<strided_view<const float, 2>>(x));
      },
      "x"_a);
  m.def(
      "to_ndarray",
      [](owned_view<strided_view<float, 2>> x) {
        return usm_dlpack::to_ndarray<nb::ndarray<nb::array_api, float, nb::device::oneapi>>(
            std::move(x));
      },
      "x"_a);
  m.def(
      "to_readonly_ndarray",
      [](owned_view<array_view<const float, 1>> x) {
        return usm_dlpack::to_ndarray<nb::ndarray<nb::array_api, nb::ro, nb::device::oneapi>>(
            std::move(x));
      },
      "x"_a);
  m.def(
      "constant_to_ndarray",
      [](owned_view<array_view<const float, 1>> x) {
        const array_view<float, 1> view(const_cast<float*>(x.view().data_handle()),
                                        x.view().extents());
        owned_view<array_view<float, 1>> held(view, x.queue(), std::move(x).release());
        return usm_dlpack::to_ndarray<nb::ndarray<nb::array_api, nb::device::oneapi>>(
            std::move(held));
      },
      "x"_a);
  m.def(
      "to_right_ndarray",
      [](owned_view<strided_view<float, 2>> x) {
        return usm_dlpack::to_ndarray<nb::ndarray<nb::array_api, float, nb::shape<-1, 4>,
                                                  nb::c_contig, nb::device::oneapi>>(
            std::move(x));
      },
      "x"_a);
  m.def(
      "to_scalar_ndarray",
      [](owned_view<array_view<float, 0>> x) {
        return usm_dlpack::to_ndarray<
            nb::ndarray<nb::array_api, float, nb::shape<>, nb::c_contig, nb::device::oneapi>>(
            std::move(x));
      },
      "x"_a);
  m.def(
      "to_left_ndarray",
      [](owned_view<strided_view<float, 2>> x) {
        return usm_dlpack::to_ndarray<
            nb::ndarray<nb::array_api, nb::f_contig, nb::device::oneapi>>(std::move(x));
      },
      "x"_a);
}
