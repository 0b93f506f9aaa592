// SPDX-License-Identifier: Apache-2.0
//
// The functions of functions.hpp by pybind11, and those that this binding alone has.
#include <pybind11/numpy.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/pybind11.hpp>

namespace py = pybind11;
namespace nanobind = pybind11;

#include "functions.hpp"

PYBIND11_MODULE(pybind11_under_test_module, m) {
  load_package();
  add_functions(m);
  m.def("which_memory", takes<const_row>("USM"), "x"_a, "factor"_a);
  m.def("which_memory", takes<py::array>("host"), "x"_a, "factor"_a);  // converts anything
  m.def("during_a_cast", [](const py::args& arguments) {
    static_cast<void>(arguments[0].cast<row>());
    return arguments[1]();
  });
  add_methods(py::class_<row_sums>(m, "RowSums"));
  py::class_<field>(m, "Field")
      .def(py::init<vector_argument>())
      .def(py::init<const sycl::queue&, int>())
      .def_readonly("values", &field::values)
      .def("scale", &field::scale);
  py::class_<self_owned>(m, "SelfOwned")
      .def(py::init<const sycl::queue&, int>())
      .def_property_readonly("values", &self_owned::view);
}
