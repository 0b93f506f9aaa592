// SPDX-License-Identifier: Apache-2.0
//
// Functions over views of USM and SYCL objects, by pybind11.
#include <pybind11/numpy.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/pybind11.hpp>

#include "guide_functions.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace py = pybind11;

#include "caster_functions.hpp"

namespace {

using vector = device_mdspan<row>;

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
  pybind11::object values;  // a DLPackTensor, which has the queues of consumers

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
  add_lone_functions(m);
  add_overloads(m);
  add_casts(m);
  add_sycl_objects(m);
  m.def("which_memory", takes<const_row>("USM"), "x"_a, "factor"_a);
  m.def("which_memory", takes<py::array>("host"), "x"_a, "factor"_a);  // converts anything
  m.def("not_none", [](const const_row& x) { return x.extent(0); }, "x"_a.none(false));
  m.def("two_sizes", [](const py::args& arrays) {  // casts within a call
    return std::make_pair(arrays[0].cast<row>().extent(0),
                          arrays[1].cast<owned_view<row>>().view().extent(0));
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

  m.def("has_queue_or_not",
        [](std::optional<sycl::queue> queue) { return queue.has_value(); });
  m.def("cleared", [](sycl::queue& queue, const vector& x) {
    return queue.memset(x.data_handle(), 0, x.size() * sizeof(float));
  });
  m.def("check_queue", [](const sycl::queue& queue, const row& x, const row& y) {
    usm_dlpack::check_queue(queue, x, y);
  });
}
