// SPDX-License-Identifier: Apache-2.0
//
// Functions over views of USM and SYCL objects, which say what they were given.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/pybind11.hpp>  // no name of theirs clashes
#include <usm_dlpack/usm_dlpack.hpp>

#include "guide_functions.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace nb = nanobind;
namespace py = nanobind;

#include "caster_functions.hpp"

namespace {

using vector = device_mdspan<row>;

template <class View>
std::vector<double> values_of(const View& view) {
  std::vector<double> values;
  for (int i = 0; i < view.extent(0); ++i) {
    values.push_back(view[std::array<int, 1>{i}]);
  }
  return values;
}

template <class View, class Element = typename View::element_type>
const char* fill(sycl::queue& queue, View x, Element value) {
  check_queue(queue, x);
  const std::vector<Element> values(x.size(), value);
  queue.copy(values.data(), x.data_handle(), x.size()).wait();
  return std::is_same_v<Element, float> ? "float32" : "int32";
}

usm_array<device_mdspan<array_view<float, 2>>> full(sycl::queue& queue, int rows, int columns,
                                                    float value) {
  usm_array<device_mdspan<array_view<float, 2>>> made(queue,
                                                      Kokkos::dextents<int, 2>(rows, columns));
  const std::vector<float> values(made.view().size(), value);
  queue.copy(values.data(), made.data(), values.size()).wait();
  return made;
}

std::vector<double> first_elements(const std::vector<shared_mdspan<row>>& all) {
  std::vector<double> first;
  for (const auto& view : all) {
    first.push_back(values_of(view).front());
  }
  return first;
}

/// Makes an array that nobody sees, which goes with the function or with the exception.
void use_scratch(sycl::queue& queue, bool fails) {
  const usm_array<device_mdspan<row>> scratch(queue, extents(4));
  if (fails) {
    throw std::invalid_argument("scratch: expected no failure, found one as asked for");
  }
}

struct counter {
  std::shared_ptr<int> alive = std::make_shared<int>(0);
};

/// Three elements that are 2, in USM of a kind, and owned with a counter.
template <class View>
owned_view<View> twos(sycl::queue& queue, const counter& c, sycl::usm::alloc kind) {
  const std::shared_ptr<float> memory(sycl::malloc<float>(3, queue, kind),
                                      [queue](float* p) { sycl::free(p, queue); });
  std::fill_n(memory.get(), 3, 2.0f);
  return {View(memory.get(), extents(3)), queue, std::make_pair(memory, c.alive)};
}

/// An array whose views the Python object itself owns, if there is one.
struct self_owned {
  usm_array<vector> values;

  self_owned(const sycl::queue& queue, int size) : values(queue, extents(size)) {}
  owned_view<vector> view() const { return {values.view(), values.queue(), nb::find(this)}; }
  void scale(float factor) const {
    const long size = values.view().extent(0);
    guide::scales.launch(values.queue(), "scale_float", size, values, factor, size);
  }
};

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

/// Lets two threads without the GIL drop what a Python object owns or keeps, each `count`
/// times in every way.
void drop_owners(sycl::queue& queue, nb::object owner, int count) {
  static float memory[3];
  const row view(memory, 3);
  std::array<std::vector<managed_tensor>, 2> of_thread;
  for (auto& owned : of_thread) {
    for (int i = 0; i < count; ++i) {
      owned.push_back(owned_view<row>(view, queue, owner).release());
      owned.push_back(to_managed_tensor(view, DLDevice{kDLCPU, 0}, python_owner(owner)));
    }
    owned.push_back(owned_view<row>(usm_array<row>(queue, extents(3))).release());
  }
  const nb::gil_scoped_release unlocked;
  std::thread other([&] { of_thread[0].clear(); });
  of_thread[1].clear();
  other.join();
}

using events = std::vector<sycl::event>;

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

struct row_sums {
  double total = 0;
  static double of(shared_mdspan<const_row> row) {
    double all = 0;
    for (const double value : values_of(row)) {
      all += value;
    }
    return all;
  }
  void add(shared_mdspan<const_row> row) { total += of(row); }
};

using guide::scales;
using guide::vector_argument;

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

void scale_all(sycl::queue& queue, float factor, const nanobind::sequence& arrays) {
  std::vector<vector_argument> vectors;  // cast first, so that a wrong one is refused first
  for (const nanobind::handle x : arrays) {
    vectors.push_back(nanobind::cast<vector_argument>(x));
  }
  usm_dlpack::ordered_section work(queue);
  for (const vector_argument& x : vectors) {
    const long size = x.view().extent(0);
    scales.launch(work, "scale_float", size, x, factor, size);  // x is now in `work`
  }
}

void add_scale_all(nanobind::module_& m) {
  m.def("scale_all", &scale_all);  // without gil_scoped_release: a cast needs the GIL
}

struct field {
  nanobind::object values;  // a DLPackTensor, which has the queues of consumers

  explicit field(vector_argument x) : values(nanobind::cast(std::move(x))) {}
  field(const sycl::queue& queue, int size)
      : field(usm_dlpack::usm_array<vector>(queue, Kokkos::dextents<int, 1>(size))) {}

  void scale(float factor) const {
    const auto x = nanobind::cast<vector_argument>(values);  // waits for these queues
    const long size = x.view().extent(0);
    scales.launch(x.queue(), "scale_float", size, x, factor, size);
  }
};

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

}  // namespace

NB_MODULE(extension_under_test_module, m) {
  for_nanobind::load_package();
  add_lone_functions(m);
  add_overloads(m);
  add_casts(m);
  add_sycl_objects(m);
  m.def("which_memory", takes<nb::ndarray<nb::device::cpu>>("host"), "x"_a, "factor"_a);
  m.def("which_memory", takes<const_row>("USM"), "x"_a, "factor"_a);
  m.def("fill", &fill<device_mdspan<row>>, "queue"_a, "x"_a, "value"_a);
  m.def("fill", &fill<device_mdspan<array_view<int, 1>>>, "queue"_a, "x"_a, "value"_a);
  m.def("fill", &fill<shared_mdspan<row>>, "queue"_a, "x"_a, "value"_a);
  m.def(
      "count_variants",
      [](const std::vector<std::variant<const_row, integers>>& arrays) {
        return arrays.size();
      },
      "arrays"_a);
  add_scale(m);
  nb::class_<row_sums>(m, "RowSums")
      .def(nb::init<>())
      .def(
          "__init__",
          [](row_sums* at, const_row row, int factor) {
            new (at) row_sums{static_cast<double>(row.extent(0) * factor)};
          },
          "row"_a, "factor"_a)
      .def("add", &row_sums::add, "row"_a)
      .def_static("of", &row_sums::of)
      .def(
          "__add__",
          [](const row_sums& s, shared_mdspan<const_row> row) {
            return s.total + row_sums::of(row);
          },
          "row"_a.noconvert(), nb::is_operator())
      .def_ro("total", &row_sums::total);
  add_field(m);
  add_dot(m);
  m.def("allocated", &allocated);
  add_scale_all(m);
  m.def("axpy", &guide::axpy);
  m.def("facts", &guide::facts);

  m.def("first_elements", &first_elements, "arrays"_a);

  m.def("kept_queue", [] { return kept->queue(); });
  m.def("kept_flags", [] { return kept->managed()->flags; });
  m.def("kept_values", [] { return values_of(kept->view()); });
  m.def("take_back", [] { return std::move(*std::exchange(kept, nullptr)); });
  m.def("cast_to_view", [](nb::handle x) { return describe(nb::cast<row>(x)); });
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
  m.def("cast_to_queue", [](nb::handle x) { return nb::cast<sycl::queue>(x); });

  nb::class_<counter>(m, "Counter")
      .def(nb::init<>())
      .def_prop_ro("alive", [](const counter& c) { return c.alive.use_count() - 1; });
  m.def("use_scratch", &use_scratch, "queue"_a, "fails"_a = false);
  m.def("full", &full, "queue"_a, "rows"_a, "columns"_a, "value"_a = 1.0f);
  m.def("drop_in_task",
        [](sycl::queue& q, nb::object x) {  // as dpctl does, but without the GIL
          PyObject* const last = x.release().ptr();
          const nb::gil_scoped_release unlocked;
          q.submit([&](sycl::handler& handler) {
            handler.host_task([last] {
              const nb::gil_scoped_acquire locked;
              Py_DECREF(last);
            });
          });
        });
  m.def(
      "zeros",
      [](sycl::queue& q, int size) {
        usm_array<device_mdspan<row>> made(q, extents(size));
        q.memset(made.data(), 0, made.size_bytes());
        return made;
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("in_shared_usm", [](sycl::queue& q, int size) {
    return usm_array<row>(q, extents(size), sycl::usm::alloc::shared);
  });
  m.def("readonly_result", [](sycl::queue& q, const counter& c) {
    return twos<const_row>(q, c, sycl::usm::alloc::shared);
  });
  m.def("result_in_other_kind", [](sycl::queue& q, const counter& c) {
    return twos<device_mdspan<row>>(q, c, sycl::usm::alloc::host);
  });
  m.def("result_in_host_memory", [](sycl::queue& q, const counter& c) {
    static float memory[3];
    return owned_view(row(memory, 3), q, c.alive);
  });
  m.def("empty_result_at_null", [](sycl::queue& q) {
    return owned_view(device_mdspan<row>(nullptr, extents(0)), q, 0);
  });
  nb::class_<recording>(m, "Recording")
      .def(nb::init<const sycl::queue&>())
      .def("end", &recording::end)
      .def("replay", &recording::replay, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<self_owned>(m, "SelfOwned", nb::is_weak_referenceable())
      .def(nb::init<const sycl::queue&, int>())
      .def_prop_ro("values", &self_owned::view)
      .def("scale", &self_owned::scale);
  m.def("kept_alive", [](const_row) { return counter(); }, nb::keep_alive<0, 1>());
  m.def("kept_alive", [](integers) { return counter(); }, nb::keep_alive<0, 1>());
  m.def("result_of_nobody", [](const sycl::queue& q) { return self_owned(q, 3).view(); });
  m.def("drop_owners", &drop_owners, "queue"_a, "owner"_a, "count"_a);
  m.def("copied_behind", &copied_behind, "queue"_a, "x"_a, "depends"_a = events(),
        "in_section"_a = true);
  m.def("copy_into_behind", &copy_into_behind, "queue"_a, "x"_a, "out"_a,
        "depends"_a = events(), "in_section"_a = true);
  m.def("device_given_back", [](owned_view<device_mdspan<row>> x) { return x; });

  m.def("with_error",
        [](std::uintptr_t function, std::uintptr_t first, std::uintptr_t second) {
          PyErr_SetString(PyExc_LookupError, "from before");
          const auto call = reinterpret_cast<int (*)(void*, void*)>(function);
          call(reinterpret_cast<void*>(first), reinterpret_cast<void*>(second));
          throw nb::python_error();
        });
  m.def(
      "fill_after",
      [](sycl::queue& q, device_mdspan<row> x, const std::vector<sycl::event>& depends) {
        static const std::vector<float> threes(12, 3.0f);  // for ever: a copy may be pending
        return q.copy(threes.data(), x.data_handle(), x.size(), depends);
      },
      "queue"_a, "x"_a, "depends"_a = std::vector<sycl::event>{});

  m.def("of_ndarray", [](const nb::ndarray<float, nb::device::oneapi>& x) {
    return describe(to_mdspan<strided_view<float, 2>>(x));
  });
  m.def("of_readonly_ndarray", [](const nb::ndarray<const float>& x) {
    return describe(to_mdspan<strided_view<const float, 2>>(x));
  });
}
