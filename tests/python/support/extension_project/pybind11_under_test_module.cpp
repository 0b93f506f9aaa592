// SPDX-License-Identifier: Apache-2.0
//
// Functions over views of USM and SYCL objects, by pybind11.
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/pybind11.hpp>

#include "guide_functions.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace py = pybind11;
using namespace py::literals;
using namespace usm_dlpack;

namespace {

template <class Element, int Rank, class Layout = Kokkos::layout_right>
using array_view = Kokkos::mdspan<Element, Kokkos::dextents<int, Rank>, Layout>;
using row = array_view<float, 1>;
using const_row = array_view<const float, 1>;
using integers = array_view<const std::int32_t, 1>;
using doubles = array_view<const double, 1>;
using bytes = array_view<const std::uint8_t, 1>;
using rows = array_view<const float, 2>;
template <class Element>
using relaxed_view = array_view<Element, 2, layout_relaxed>;
using columns = array_view<const float, 2, Kokkos::layout_left>;
using extents = Kokkos::dextents<int, 1>;
using vector = device_mdspan<row>;

template <class View>
std::vector<std::int64_t> shape_of(const View& view) {
  std::vector<std::int64_t> shape;
  for (std::size_t r = 0; r < View::rank(); ++r) {
    shape.push_back(view.extent(r));
  }
  return shape;
}

template <class View>
auto describe(const View& view) {
  return std::make_pair(reinterpret_cast<std::uintptr_t>(view.data_handle()), shape_of(view));
}

/// An overload that says its name. Python may pass a NumPy number for the double, which
/// pybind11 converts in the second round alone.
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

std::unique_ptr<owned_view<row>> kept;

/// Values that Python sees by tensors of which this object is the owner.
struct self_owned {
  usm_array<vector> values;
  double sum = 0;

  self_owned(const sycl::queue& queue, const_row like)
      : values(queue, extents(like.extent(0))) {}
  explicit self_owned(double sum_of_nothing)
      : values(sycl::queue(), extents(0)), sum(sum_of_nothing) {}
  self_owned& add(shared_mdspan<const_row> row) {
    for (int i = 0; i < row.extent(0); ++i) {
      sum += row.data_handle()[i];
    }
    return *this;
  }
  double plus(shared_mdspan<const_row> row) const { return self_owned(sum).add(row).sum; }
};

using guide::scales;
using guide::vector;
using guide::vector_argument;

void scale_all(sycl::queue& queue, float factor, const std::vector<vector_argument>& arrays) {
  usm_dlpack::ordered_section work(queue);
  for (const vector_argument& x : arrays) {
    const long size = x.view().extent(0);
    scales.launch(work, "scale_float", size, x, factor, size);  // x is now in `work`
  }
}

struct field {
  pybind11::object values;  // a DLPackTensor, which knows the queues that consumers name

  explicit field(vector_argument x) : values(pybind11::cast(std::move(x))) {}
  field(const sycl::queue& queue, int size)
      : field(usm_dlpack::usm_array<vector>(queue, Kokkos::dextents<int, 1>(size))) {}

  void scale(float factor) const {
    const auto x = pybind11::cast<vector_argument>(values);  // waits for these queues
    const long size = x.view().extent(0);
    scales.launch(x.queue(), "scale_float", size, x, factor, size);
  }
};

void add_field(pybind11::module_& m) {
  pybind11::class_<field>(m, "Field")
      .def(pybind11::init<vector_argument>())
      .def(pybind11::init<const sycl::queue&, int>())
      .def_readonly("values", &field::values)
      .def("scale", &field::scale);
}

}  // namespace

PYBIND11_MODULE(pybind11_under_test_module, m) {
  load_package();
  m.def("rank_one", &describe<row>, "x"_a);
  m.def("rank_two", &describe<rows>, "x"_a);
  m.def("device_only", &describe<device_mdspan<const_row>>, "x"_a);
  m.def("which", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which", takes<integers>("integers"), "x"_a, "factor"_a);
  m.def("which", takes<columns>("columns"), "x"_a, "factor"_a);
  m.def("which", takes<rows>("rows"), "x"_a, "factor"_a);
  m.def(
      "number_first", [](double, const const_row&) { return "a row"; }, "a"_a,
      "x"_a.noconvert());
  m.def(
      "number_first", [](double, const integers&) { return "integers"; }, "a"_a,
      "x"_a.noconvert());
  m.def("number_before", [](double, const const_row&) { return "a row"; });
  m.def("number_before", [](double, const integers&) { return "integers"; });
  m.def("queue_before", [](const sycl::queue&, const const_row&) { return "a row"; });
  m.def("queue_before", [](const sycl::queue&, const integers&) { return "integers"; });
  m.def("which_object", takes<const_row>("a row"), "x"_a.noconvert(), "factor"_a);
  m.def("which_object", takes<py::object>("any object"), "x"_a, "factor"_a);
  m.def("which_two", takes_two<const_row>("rows"), "x"_a, "y"_a, "factor"_a);
  m.def("which_two", takes_two<integers>("integers"), "x"_a, "y"_a, "factor"_a);
  m.def("which_list", takes<std::vector<const_row>>("rows"), "x"_a, "factor"_a);
  m.def("which_list", takes<std::vector<integers>>("integers"), "x"_a, "factor"_a);
  m.def("which_list", takes<std::vector<bytes>>("bytes"), "x"_a, "factor"_a);
  m.def("which_mixed", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which_mixed", takes<const_row>("another row"), "x"_a, "factor"_a);
  m.def("which_mixed", takes<bytes>("bytes"), "x"_a.noconvert(), "factor"_a);
  m.def("which_mixed", takes<doubles>("doubles"), "x"_a, "factor"_a);
  m.def("which_mixed", takes<integers>("integers"), "x"_a, "factor"_a);
  m.def("which_optional", takes<std::optional<const_row>>("a row"), "x"_a, "factor"_a);
  m.def("which_optional", takes<std::optional<integers>>("integers"), "x"_a, "factor"_a);
  m.def("which_pair", takes_pair<const_row, const_row>("rows"));
  m.def("which_pair", takes_pair<const_row, integers>("a row and integers"));
  m.def("which_pair", takes_pair<integers, integers>("integers"));
  m.def("with_perhaps", takes_pair<const_row, std::optional<const_row>>("rows"));
  m.def("with_perhaps", takes_pair<integers, std::optional<integers>>("integers"));
  m.def("cast_row",
        [](py::handle x) { return x.cast<owned_view<const_row>>().view().extent(0); });
  m.def("which_access", takes<relaxed_view<float>>("writes"), "x"_a, "factor"_a);
  m.def("which_access", takes<relaxed_view<const float>>("reads"), "x"_a, "factor"_a);
  m.def("strided", &describe<array_view<float, 2, Kokkos::layout_stride>>, "x"_a);
  m.def("writes", &describe<relaxed_view<float>>, "x"_a);
  m.def("any_writes", [](const any_view& x) { return describe(x.as<relaxed_view<float>>()); });
  m.def("which_any", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which_any", takes<any_view>("any array"), "x"_a, "factor"_a);
  m.def("which_any", takes<py::object>("any object"), "x"_a, "factor"_a);

  m.def(
      "maybe", [](std::optional<const_row> x) { return x ? x->extent(0) : -1; },
      "x"_a = py::none());
  m.def(
      "maybe_pointer", [](const const_row* x) { return x != nullptr ? x->extent(0) : -1; },
      "x"_a = nullptr);
  m.def("not_none", [](const const_row& x) { return x.extent(0); }, "x"_a.none(false));
  m.def("sizes", [](const std::vector<const_row>& arrays) {
    std::vector<int> sizes;
    for (const const_row& array : arrays) {
      sizes.push_back(array.extent(0));
    }
    return sizes;
  });
  m.def("two_sizes", [](const py::args& arrays) {  // casts within a call
    return std::make_pair(arrays[0].cast<row>().extent(0),
                          arrays[1].cast<owned_view<row>>().view().extent(0));
  });

  m.def("keep",
        [](owned_view<row> x) { kept = std::make_unique<owned_view<row>>(std::move(x)); });
  m.def("drop_on_a_thread", [] {
    const py::gil_scoped_release unlocked;
    std::thread([] { kept.reset(); }).join();
  });
  m.def("given_back", [](owned_view<const_row> x) { return x; }, "x"_a);
  m.def("released", [](owned_view<row> x) {
    static_cast<void>(std::move(x).release());
    return x;
  });
  m.def("copied", [](const owned_view<const_row>& x) {
    usm_array<row> made(x.queue(), x.view().extents());
    ordered_section work(made.queue(), x, made);
    sycl::queue(made.queue()).copy(x.view().data_handle(), made.data(), x.view().size());
    return made;
  });
  m.def("two_given_back", [](owned_view<const_row> x, any_view y) {
    return std::make_tuple(std::move(x), std::move(y));
  });
  m.def("elsewhere", [](const sycl::queue& queue) {
    static float memory[3];
    return owned_view(row(memory, 3), queue, 0);
  });
  m.def(
      "full",
      [](sycl::queue& queue, int size, float value) {
        usm_array<row> made(queue, extents(size), sycl::usm::alloc::shared);
        const std::vector<float> values(static_cast<std::size_t>(size), value);
        queue.copy(values.data(), made.data(), values.size()).wait();
        return made;
      },
      "queue"_a, "size"_a, "value"_a = 1.0f, py::call_guard<py::gil_scoped_release>());

  m.def("facts_of", [](const any_view& x) {
    py::dict facts;
    const DLDataType dtype = x.dtype();
    facts["dtype"] = std::vector<int>{dtype.code, dtype.bits, dtype.lanes};
    facts["shape"] = x.shape();
    facts["strides"] = x.strides();
    facts["data"] = reinterpret_cast<std::uintptr_t>(x.data());
    facts["readonly"] = x.is_read_only();
    facts["usm_type"] = usm_dlpack::to_string(x.usm_type());
    facts["device_id"] = x.device_id();
    facts["queue"] = x.queue();
    return facts;
  });
  m.def("scale_all", &scale_all);
  m.def("axpy", &guide::axpy);
  m.def("either",
        [](const std::variant<std::monostate, owned_view<row>, owned_view<doubles>>& x) {
          return x.index();
        });
  m.def(
      "cast_unlocked", [](py::handle x) { x.cast<owned_view<const_row>>(); },
      py::call_guard<py::gil_scoped_release>());
  m.def(
      "made_unlocked",
      [](const sycl::queue& queue) {
        return py::cast(usm_array<row>(queue, row::extents_type(3)));
      },
      py::call_guard<py::gil_scoped_release>());
  m.def("any_as_row", [](const any_view& x) { return describe(x.as<row>("y")); }, "x"_a);
  m.def("any_as_columns", [](const any_view& x) { return describe(x.as<columns>()); });
  m.def("any_as_shared",
        [](any_view x) { return std::move(x).as<owned_view<shared_mdspan<const_row>>>(); });
  m.def(
      "copy_any",
      [](sycl::queue& queue, const any_view& from, const any_view& to,
         const std::vector<sycl::event>& depends) {
        ordered_section work(queue, from, to);
        queue.memcpy(to.mutable_data("to"), from.data(), from.allocation().structure().nbytes,
                     depends);
      },
      "queue"_a, "x"_a, "out"_a, "depends"_a = std::vector<sycl::event>(),
      py::call_guard<py::gil_scoped_release>());

  py::class_<self_owned>(m, "SelfOwned")
      .def(py::init<const sycl::queue&, const_row>(), "queue"_a, "like"_a)
      .def(py::init<double>())
      .def("add", &self_owned::add, "row"_a, py::return_value_policy::reference_internal)
      .def("__add__", &self_owned::plus, py::is_operator())
      .def_readonly("sum", &self_owned::sum)
      .def_property_readonly("values", [](const py::object& self) {
        const auto& made = self.cast<const self_owned&>();
        return owned_view<vector>(made.values.view(), made.values.queue(), self);
      });
  add_field(m);
  m.def("kept_alive", [](const const_row&) { return self_owned(0); }, py::keep_alive<0, 1>());

  m.def("same_queue", [](const sycl::queue& queue) { return queue; }, "queue"_a);
  m.def("context_of", [](sycl::queue queue) { return queue.get_context(); });
  m.def("device_of",
        [](const sycl::context& context) { return context.get_devices().front(); });
  m.def("queue_on", [](const sycl::device& device) { return sycl::queue(device); });
  m.def("has_queue", [](const sycl::queue* queue) { return queue != nullptr; }, "queue"_a);
  m.def("has_queue_or_not",
        [](std::optional<sycl::queue> queue) { return queue.has_value(); });
  m.def(
      "wait_for", [](sycl::event event) { event.wait(); },
      py::call_guard<py::gil_scoped_release>());
  m.def("cleared", [](sycl::queue& queue, const vector& x) {
    return queue.memset(x.data_handle(), 0, x.size() * sizeof(float));
  });
  m.def("check_queue", [](const sycl::queue& queue, const row& x, const row& y) {
    usm_dlpack::check_queue(queue, x, y);
  });
  m.def("fail", [](const const_row&) { throw std::out_of_range("too far"); });
}
