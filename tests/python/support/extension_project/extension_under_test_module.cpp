// SPDX-License-Identifier: Apache-2.0
//
// The functions of functions.hpp by nanobind, and those that this binding alone has.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>

namespace nb = nanobind;
namespace py = nanobind;

#include "functions.hpp"

namespace {

// --- Layouts and element types, which refuse arrays by their reason

template <class Element>
using strided_view = array_view<Element, 2, Kokkos::layout_stride>;
using padded_columns = array_view<const float, 2, Kokkos::Experimental::layout_left_padded<4>>;
using brain_floats = array_view<const sycl::ext::oneapi::bfloat16, 1>;

void add_layouts(nb::module_& m) {
  m.def("left", &describe<columns>, "x"_a);
  m.def("padded", &describe<padded_columns>, "x"_a);
  m.def("brain_floats", &describe<brain_floats>, "x"_a);
  m.def("strided", &describe<strided_view<float>>, "x"_a);
  m.def("writes", &describe<relaxed_view<float, 2>>, "x"_a);
  m.def("static_extent", &describe<four_rows>, "x"_a);
  m.def("small_index", &describe<few_bytes>, "x"_a);
  m.def("written_scalar", &describe<array_view<float, 0>>, "x"_a);
  m.def("of_ndarray", [](const nb::ndarray<float, nb::device::oneapi>& x) {
    return describe(to_mdspan<strided_view<float>>(x));
  });
  m.def("of_readonly_ndarray", [](const nb::ndarray<const float>& x) {
    return describe(to_mdspan<strided_view<const float>>(x));
  });
}

// --- Work that is held back, or recorded

/// Copies x into memory of the caller, behind events by which a test holds the copy back.
sycl::event copy_into_behind(sycl::queue& queue, const owned_view<const_row>& x,
                             const owned_view<row>& out, const events& depends,
                             bool in_section) {
  std::optional<ordered_section> work;
  if (in_section) {
    work.emplace(queue, x, out);
  }
  return queue.copy(x.view().data_handle(), out.view().data_handle(), x.view().size(),
                    depends);
}

/// Copies x into a new array.
owned_view<row> copied_behind(sycl::queue& queue, owned_view<const_row> x,
                              const events& depends, bool in_section) {
  usm_array<row> made(queue, x.view().extents());
  std::optional<ordered_section> work;
  if (in_section) {
    work.emplace(queue, x, made);
  }
  queue.copy(x.view().data_handle(), made.data(), x.view().size(), depends);
  return owned_view<row>(std::move(made));
}

/// A queue that records a graph until it is told to end.
struct recording {
  sycl::queue queue;
  sycl::ext::oneapi::experimental::command_graph<> graph;

  explicit recording(const sycl::queue& of)
      : queue(of), graph(of.get_context(), of.get_device()) {
    graph.begin_recording(queue);
  }
  void end() { graph.end_recording(queue); }
  void replay() {
    auto executable = graph.finalize();
    queue.ext_oneapi_graph(executable).wait();
  }
};

usm_array<vector> zeros(sycl::queue& queue, int size) {
  usm_array<vector> made(queue, extents(size));
  queue.memset(made.data(), 0, made.size_bytes());
  return made;
}

/// Makes an array that nobody sees, which goes with the function or with the exception.
void use_scratch(sycl::queue& queue, bool fails) {
  const usm_array<vector> scratch(queue, extents(4));
  if (fails) {
    throw std::invalid_argument("scratch: expected no failure, found one as asked for");
  }
}

/// Drops the last reference in a host task, as dpctl does, but submits it without the GIL.
void drop_in_task(sycl::queue& queue, nb::object x) {
  PyObject* const last = x.release().ptr();
  const nb::gil_scoped_release unlocked;
  queue.submit([&](sycl::handler& handler) {
    handler.host_task([last] {
      const nb::gil_scoped_acquire locked;
      Py_DECREF(last);
    });
  });
}

void add_work(nb::module_& m) {
  m.def("copied_behind", &copied_behind, "queue"_a, "x"_a, "depends"_a = events(),
        "in_section"_a = true);
  m.def("copy_into_behind", &copy_into_behind, "queue"_a, "x"_a, "out"_a,
        "depends"_a = events(), "in_section"_a = true);
  m.def("zeros", &zeros, nb::call_guard<nb::gil_scoped_release>());
  m.def("use_scratch", &use_scratch, "queue"_a, "fails"_a = false);
  m.def("drop_in_task", &drop_in_task);
  nb::class_<recording>(m, "Recording")
      .def(nb::init<const sycl::queue&>())
      .def("end", &recording::end)
      .def("replay", &recording::replay, nb::call_guard<nb::gil_scoped_release>());
}

// --- What nanobind has of casts, and an error that was there before a call

void add_casts_of_nanobind(nb::module_& m) {
  m.def("cast_to_view", [](nb::handle x) { return describe(nb::cast<row>(x)); });
  m.def("cast_to_queue", [](nb::handle x) { return nb::cast<sycl::queue>(x); });
  m.def("is_row", &nb::isinstance<row>, "x"_a.none());
  m.def("is_owned", &nb::isinstance<owned_view<row>>, "x"_a.none());
  m.def("is_queue", &nb::isinstance<sycl::queue>, "x"_a.none());
  m.def("try_cast_to_queue", [](nb::handle x) {
    sycl::queue queue;
    return nb::try_cast(x, queue);
  });
  m.def("try_cast_to_owned", [](nb::handle x) {
    owned_view<row> view(row{}, nullptr, sycl::queue());
    return nb::try_cast(x, view);
  });
  m.def("with_error",
        [](std::uintptr_t function, std::uintptr_t first, std::uintptr_t second) {
          PyErr_SetString(PyExc_LookupError, "from before");
          const auto call = reinterpret_cast<int (*)(void*, void*)>(function);
          call(reinterpret_cast<void*>(first), reinterpret_cast<void*>(second));
          throw nb::python_error();
        });
}

// --- Code of docs/how-to/

template <class Element>
auto scale(const char* kernel) {
  using row = Kokkos::mdspan<Element, Kokkos::dextents<long, 1>>;
  using array = usm_dlpack::owned_view<usm_dlpack::device_mdspan<row>>;
  return [kernel](sycl::queue& queue, const array& x, Element factor) {
    const long size = x.view().extent(0);
    scales.launch(queue, kernel, size, x, factor, size);
  };
}

void add_scale(nanobind::module_& m) {
  using unlocked = nanobind::call_guard<nanobind::gil_scoped_release>;
  m.def("scale", scale<float>("scale_float"), unlocked());
  m.def("scale", scale<double>("scale_double"), unlocked());
}

void add_field(nanobind::module_& m) {
  nanobind::class_<field>(m, "Field")
      .def(nanobind::init<vector_argument>())          // an array of Python
      .def(nanobind::init<const sycl::queue&, int>())  // a new one
      .def_ro("values", &field::values)                // no copy
      .def("scale", &field::scale);                    // without gil_scoped_release, too
}

const usm_dlpack::kernel_source kernels(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::single_task_kernel))
  void dot(const float* x, const float* y, float* sum, int size) {
    *sum = 0;
    for (int i = 0; i < size; ++i) { *sum += x[i] * y[i]; }
  }
)");

float dot(const vector_argument& x, const vector_argument& y) {
  const int size = x.view().extent(0);
  if (size != y.view().extent(0)) {
    throw std::invalid_argument("dot: y: expected the size of x, found another");
  }
  usm_dlpack::usm_array<usm_dlpack::host_mdspan<row>> sum(x.queue(),
                                                          Kokkos::dextents<int, 1>(1));
  kernels.launch(x.queue(), "dot", 1, x, y, sum, size);  // done on return
  return *sum.data();
}

void add_dot(nanobind::module_& m) {  // other threads run while the kernel is built
  m.def("dot", &dot, nanobind::call_guard<nanobind::gil_scoped_release>());
}

usm_dlpack::owned_view<vector> allocated(const sycl::queue& queue, int size) {
  const std::shared_ptr<float> memory(sycl::malloc_device<float>(size, queue),
                                      [queue](float* p) { sycl::free(p, queue); });
  return {vector(memory.get(), size), queue, memory};
}

// --- A function of any array

const kernel_source axpys(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void axpy(float a, const float* x, float* y, int size) {
    const int i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
    if (i < size) { y[i] += a * x[i]; }
  }
)");

/// Adds a multiple of x to y, of the same size.
void axpy(float a, const any_view& x, const any_view& y) {
  const auto from = x.as<const_row>("x");
  const auto to = y.as<row>("y");
  ordered_section work(y.queue(), x, y);  // the views have no queue
  axpys.launch(work, "axpy", to.extents(), a, from, to, to.extent(0));
}

}  // namespace

NB_MODULE(extension_under_test_module, m) {
  load_package();
  add_functions(m);
  m.def("which_memory", takes<nb::ndarray<nb::device::cpu>>("host"), "x"_a, "factor"_a);
  m.def("which_memory", takes<const_row>("USM"), "x"_a, "factor"_a);
  // pybind11 3.1 calls `keep_alive` after an overload that does not fit, and crashes.
  m.def("kept_alive", [](const integers&) { return row_sums(); }, nb::keep_alive<0, 1>());
  m.def("keeping", [](const integers&, nb::handle) {}, nb::keep_alive<1, 2>());
  add_layouts(m);
  add_work(m);
  add_casts_of_nanobind(m);
  add_scale(m);
  add_field(m);
  add_dot(m);
  m.def("allocated", &allocated);
  m.def("axpy", &axpy);
  add_methods(nb::class_<row_sums>(m, "RowSums"));
  nb::class_<self_owned>(m, "SelfOwned", nb::is_weak_referenceable())
      .def(nb::init<const sycl::queue&, int>())
      .def_prop_ro("values", &self_owned::view)
      .def("scale", [](const self_owned& self, float factor) {
        const long size = self.values.view().extent(0);
        scales.launch(self.values.queue(), "scale_float", size, self.values, factor, size);
      });
}
