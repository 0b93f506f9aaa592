// SPDX-License-Identifier: Apache-2.0
//
// Functions that an extension of either binding has: they say what they were given, or give it
// back. Include it where `py` and `nanobind`, for which the code of the pages is written, are
// this binding.
#pragma once

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/python/any_view.hpp>
#include <usm_dlpack/python/owned_view.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
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
using relaxed_view = array_view<Element, Rank, layout_relaxed>;
using row = array_view<float, 1>;
using vector = device_mdspan<row>;
using vector_argument = owned_view<vector>;
using const_row = array_view<const float, 1>;
using shared_row = shared_mdspan<const_row>;
using integers = array_view<const std::int32_t, 1>;
using bytes = array_view<const std::uint8_t, 1>;
using rows = array_view<const float, 2>;
using columns = array_view<const float, 2, Kokkos::layout_left>;
using four_rows = Kokkos::mdspan<const float, Kokkos::extents<int, 4, Kokkos::dynamic_extent>>;
using few_bytes = Kokkos::mdspan<const std::uint8_t, Kokkos::dextents<std::int8_t, 1>>;
using extents = Kokkos::dextents<int, 1>;
using held = owned_view<relaxed_view<float, 1>>;
using events = std::vector<sycl::event>;

// --- Parameters

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

/// What an array of any dtype and rank is.
py::tuple facts(const any_view& x) {
  const DLDataType dtype = x.dtype();  // float32: .code is kDLFloat, .bits 32, .lanes 1
  const std::vector<std::int64_t> shape = x.shape();
  const std::vector<std::int64_t> strides = x.strides();  // in elements
  const void* const first = x.data();
  return py::make_tuple(py::make_tuple(dtype.code, dtype.bits, dtype.lanes), shape, strides,
                        reinterpret_cast<std::uintptr_t>(first), x.is_read_only(),
                        usm_dlpack::to_string(x.usm_type()), x.device_id(), x.queue());
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
void add_overloads(Module& m) {
  m.def("which", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which", takes<integers>("integers"), "x"_a, "factor"_a);
  m.def("which", takes<columns>("columns"), "x"_a, "factor"_a);
  m.def("which", takes<four_rows>("four rows"), "x"_a, "factor"_a);
  m.def("which", takes<rows>("rows"), "x"_a, "factor"_a);
  m.def("which", takes<few_bytes>("few bytes"), "x"_a, "factor"_a);
  m.def("which", takes<bytes>("bytes"), "x"_a, "factor"_a);
  m.def("which_kind", takes<device_mdspan<const_row>>("device"), "x"_a, "factor"_a);
  m.def("which_kind", takes<shared_row>("shared"), "x"_a, "factor"_a);
  m.def("which_access", takes<relaxed_view<float, 2>>("writes"), "x"_a, "factor"_a);
  m.def("which_access", takes<relaxed_view<const float, 2>>("reads"), "x"_a, "factor"_a);
  m.def("which_any", takes<const_row>("a row"), "x"_a, "factor"_a);
  m.def("which_any", takes<any_view>("any array"), "x"_a, "factor"_a);
  m.def("which_object", takes<const_row>("a row"), "x"_a.noconvert(), "factor"_a);
  m.def("which_object", takes<py::object>("any object"), "x"_a, "factor"_a);
  m.def("which_optional", takes<std::optional<const_row>>("a row"), "x"_a, "factor"_a);
  m.def("which_optional", takes<std::optional<integers>>("integers"), "x"_a, "factor"_a);
  m.def("which_list", takes<std::vector<const_row>>("rows"), "x"_a, "factor"_a);
  m.def("which_list", takes<std::vector<owned_view<integers>>>("integers"), "x"_a, "factor"_a);
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

/// A class with an array as a parameter of its constructor, a method and an operator.
struct row_sums {
  double total = 0;

  row_sums() = default;
  row_sums(shared_row x, double factor) : total(factor * of(x)) {}
  static double of(shared_row x) {
    return std::accumulate(x.data_handle(), x.data_handle() + x.size(), 0.0);
  }
  double add(shared_row x) { return total += of(x); }
  double plus(shared_row x) const { return total + of(x); }
};

template <class Class>
void add_methods(Class&& sums) {
  sums.def(py::init<>())
      .def(py::init<shared_row, double>(), "x"_a, "factor"_a)
      .def("add", &row_sums::add, "row"_a)
      .def_static("of", &row_sums::of)
      .def("__add__", &row_sums::plus, "row"_a.noconvert(), py::is_operator());
}

template <class Module>
void add_parameters(Module& m) {
  m.def("rank_one", &describe<row>, "x"_a);
  m.def("rank_two_const", &describe<rows>, "x"_a);
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
  m.def("during", [](const const_row&, const py::object& act) { return act(); });
  m.def("during", [](const std::vector<const_row>&, const py::object& act) { return act(); });
  m.def("fail", [](const const_row&) { throw std::out_of_range("too far"); });
  m.def("kept_alive", [](const const_row&) { return row_sums(); }, py::keep_alive<0, 1>());

  m.def("facts", &facts);
  m.def("any_as_row", [](const any_view& x) { return describe(x.as<row>("y")); }, "x"_a);
  m.def("any_as_shared", [](any_view x) { return std::move(x).as<owned_view<shared_row>>(); });
  m.def(
      "copy_any",
      [](sycl::queue& queue, const any_view& from, const any_view& to) {
        const ordered_section work(queue, from, to);
        queue.memcpy(to.mutable_data("to"), from.data(), from.allocation().structure().nbytes);
      },
      py::call_guard<py::gil_scoped_release>());
}

// --- Owners and results

std::unique_ptr<held> kept;
/// Shared with the owner of each result that lives.
const auto alive = std::make_shared<int>(0);

/// Three elements that are 2, in USM of a kind.
template <class View>
owned_view<View> twos(const sycl::queue& queue, sycl::usm::alloc kind) {
  const std::shared_ptr<float> memory(sycl::malloc<float>(3, queue, kind),
                                      [queue](float* p) { sycl::free(p, queue); });
  std::fill_n(memory.get(), 3, 2.0f);
  return {View(memory.get(), extents(3)), queue, std::make_pair(memory, alive)};
}

owned_view<row> in_host_memory(const sycl::queue& queue) {
  static float memory[3];
  return {row(memory, 3), queue, alive};
}

usm_array<row> full(sycl::queue& queue, int size, float value) {
  usm_array<row> made(queue, extents(size), sycl::usm::alloc::shared);
  std::fill_n(made.data(), size, value);
  return made;
}

usm_array<row> copied(const owned_view<const_row>& x) {
  usm_array<row> made(x.queue(), x.view().extents());
  const ordered_section work(made.queue(), x, made);
  sycl::queue(made.queue()).copy(x.view().data_handle(), made.data(), x.view().size());
  return made;
}

/// Lets two threads without the GIL drop what a Python object owns or keeps, each `count`
/// times in every way.
void drop_owners(sycl::queue& queue, const py::object& owner, int count) {
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
  const py::gil_scoped_release unlocked;
  std::thread other([&] { of_thread[0].clear(); });
  of_thread[1].clear();
  other.join();
}

/// Lets a host task of another queue, without the GIL, drop an array. Returns its address.
std::uintptr_t drop_in_host_task(sycl::queue& queue, int size) {
  const py::gil_scoped_release unlocked;
  const auto array =
      std::make_shared<std::optional<usm_array<row>>>(usm_array<row>(queue, extents(size)));
  const auto address = reinterpret_cast<std::uintptr_t>((*array)->data());
  sycl::queue(queue.get_context(), queue.get_device())
      .submit([&](sycl::handler& handler) { handler.host_task([array] { array->reset(); }); })
      .wait();
  return address;
}

/// Lets a thread of C++ drop an array, and then others until the first is freed.
void drop_on_a_cpp_thread(sycl::queue& queue, int size) {
  const py::gil_scoped_release unlocked;
  std::thread([&] {
    const void* memory = usm_array<row>(queue, extents(size)).data();
    while (sycl::get_pointer_type(memory, queue.get_context()) != sycl::usm::alloc::unknown) {
      const usm_array<row> next(queue, extents(1));
    }
  }).join();
}

/// The strides that are read from an array of a managed tensor without strides.
std::vector<std::int64_t> strides_of_none(sycl::queue& queue) {
  managed_tensor managed =
      to_managed_tensor(usm_array<array_view<float, 2>>(queue, std::array<int, 2>{2, 3}));
  managed->dl_tensor.strides = nullptr;
  const usm_allocation proof = validate(*managed);
  return any_view(proof, queue, std::move(managed)).strides();
}

template <class Module>
void add_results(Module& m) {
  m.def("given_back", [](owned_view<const_row> x) { return x; }, "x"_a);
  m.def("any_given_back", [](any_view x) { return x; }, "x"_a);
  m.def("device_given_back", [](owned_view<vector> x) { return x; });
  m.def("two_given_back", [](owned_view<const_row> x, any_view y) {
    return std::make_tuple(std::move(x), std::move(y));
  });
  m.def("copied", &copied);
  m.def("full", &full, "queue"_a, "size"_a, "value"_a = 1.0f);
  m.def("released", [](held x) {
    static_cast<void>(std::move(x).release());
    return x;
  });
  m.def("readonly_result", [](const sycl::queue& queue) {
    return twos<const_row>(queue, sycl::usm::alloc::shared);
  });
  m.def("result_in_other_kind",
        [](const sycl::queue& queue) { return twos<vector>(queue, sycl::usm::alloc::host); });
  m.def("result_in_host_memory", &in_host_memory);
  m.def("empty_result_at_null", [](const sycl::queue& queue) {
    return owned_view(vector(nullptr, extents(0)), queue, std::monostate());
  });
  m.def("result_of_nobody", [](const sycl::queue& queue) {
    return owned_view(vector(nullptr, extents(0)), queue, py::object());
  });
  m.def("results_alive", [] { return alive.use_count() - 1; });
  m.def("keep", [](held x) { kept = std::make_unique<held>(std::move(x)); }, "x"_a);
  m.def("kept_flags", [] { return kept->managed()->flags; });
  m.def("take_back", [] { return std::move(*std::exchange(kept, nullptr)); });
  m.def("drop_on_a_thread", [] {
    const py::gil_scoped_release unlocked;
    std::thread([] { kept.reset(); }).join();
  });
  m.def("drop_owners", &drop_owners);
  m.def("drop_in_host_task", &drop_in_host_task);
  m.def("drop_on_a_cpp_thread", &drop_on_a_cpp_thread);
  m.def("strides_of_none", &strides_of_none);
}

// --- Casts

template <class Module>
void add_casts(Module& m) {
  using unlocked = py::call_guard<py::gil_scoped_release>;
  m.def(
      "to_owned", [](py::handle x) { return describe(py::cast<owned_view<row>>(x).view()); },
      "x"_a);
  m.def(
      "cast_unlocked", [](py::handle x) { py::cast<owned_view<row>>(x); }, "x"_a, unlocked());
  m.def(
      "made_unlocked",
      [](const sycl::queue& queue) { return py::cast(usm_array<row>(queue, extents(3))); },
      "queue"_a, unlocked());
}

// --- SYCL objects

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
  m.def("check_queue", [](const sycl::queue& queue, vector x) { check_queue(queue, x); });
  m.def(
      "fill_after",
      [](sycl::queue& queue, vector x, const events& depends) {
        static const std::vector<float> threes(12, 3.0f);  // for ever: a copy may be pending
        return queue.copy(threes.data(), x.data_handle(), x.size(), depends);
      },
      "queue"_a, "x"_a, "depends"_a = events());
}

// --- Code of docs/how-to/, with a kernel

const usm_dlpack::kernel_source scales(R"(
  #include <sycl/sycl.hpp>
  namespace experimental = sycl::ext::oneapi::experimental;

  template <class Element>
  void scale(Element* x, Element factor, long size) {
    const long i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
    if (i < size) { x[i] *= factor; }
  }

  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void scale_float(float* x, float factor, long size) { scale(x, factor, size); }
  extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((experimental::nd_range_kernel<1>))
  void scale_double(double* x, double factor, long size) { scale(x, factor, size); }
)");

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

/// An array whose views the Python object itself owns.
struct self_owned {
  usm_array<vector> values;

  self_owned(const sycl::queue& queue, int size) : values(queue, extents(size)) {}
  static owned_view<vector> view(const py::object& self) {
    const auto& made = py::cast<const self_owned&>(self);
    return {made.values.view(), made.values.queue(), self};
  }
};

template <class Module>
void add_functions(Module& m) {
  add_overloads(m);
  add_parameters(m);
  add_results(m);
  add_casts(m);
  add_sycl_objects(m);
  add_scale_all(m);
}

}  // namespace
