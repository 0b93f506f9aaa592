// SPDX-License-Identifier: Apache-2.0
//
// The functions that Python calls. Their parameters are views: usm_dlpack takes arrays of any
// library, proves them, and refuses what does not fit.
#include "find_kernel.hpp"
#include "views.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using namespace grid_kernels;
using usm_dlpack::owned_view;
using usm_dlpack::usm_array;
using events = std::vector<sycl::event>;

namespace {

/// A work-item for each element of a view, in groups of 64 along the last dimension; a kernel
/// leaves out those beyond the extents.
template <class View>
auto each_element_of(const View& view) {
  constexpr int rank = static_cast<int>(View::rank());
  sycl::range<rank> global, group;
  for (int r = 0; r < rank; ++r) {
    global[r] = static_cast<std::size_t>(view.extent(r));
    group[r] = 1;
  }
  group[rank - 1] = 64;
  global[rank - 1] = (global[rank - 1] + 63) / 64 * 64;
  return sycl::nd_range<rank>(global, group);
}

/// Submits a kernel, to run after some events. Does not wait.
/// @param arguments the kernel's, in its order: views, and numbers of exactly its types
/// @throws usm_dlpack::conversion_error if the queue is not of the views' device and context
template <int Rank, class... Arguments>
sycl::event launch(sycl::queue& queue, const char* kernel, const sycl::nd_range<Rank>& range,
                   const events& after, const Arguments&... arguments) {
  const auto check = [&](const auto& argument) {
    if constexpr (!std::is_arithmetic_v<std::decay_t<decltype(argument)>>) {
      usm_dlpack::check_queue(queue, argument);
    }
  };
  (check(arguments), ...);
  const sycl::kernel built = find_kernel(queue, kernel);
  return queue.submit([&](sycl::handler& handler) {
    handler.depends_on(after);
    handler.set_args(arguments...);
    handler.parallel_for(range, built);
  });
}

void require(bool holds, const char* sentence) {
  if (!holds) {
    throw std::invalid_argument(sentence);
  }
}

// Into an output, without a wait: the caller keeps both arrays alive until the event is
// complete.
template <class Element>
sycl::event laplacian(sycl::queue& queue, input<Element, 2> x, output<Element, 2> out,
                      const events& depends, const char* kernel) {
  require(x.extents() == out.extents(), "out: expected the shape of x, found another");
  return launch(queue, kernel, each_element_of(out), depends, x, out);
}

// To the host: waits, so there is nothing to keep alive.
float total(sycl::queue& queue, input<float, 1> x, const events& depends) {
  const usm_array<scalar<float>> sum(queue, scalar<float>::extents_type());
  launch(queue, "total_float32", sycl::nd_range<1>(64, 64), depends, x, sum.view()).wait();
  return sum.view()();
}

// To a new array on the queue of `a`, without a wait: the kernel runs behind what the queues
// of both have got so far, and the result keeps both alive.
owned_view<output<float, 3>> matmul(owned_view<input<float, 3>> a,
                                    owned_view<input<float, 3>> b) {
  require(a.queue() && b.queue(),
          "a, b: expected arrays with a sycl_queue, found one without");
  const auto left = a.view(), right = b.view();
  require(
      left.extent(0) == right.extent(0) && left.extent(2) == right.extent(1),
      "b: expected the shape (batch, k, n) for the shape (batch, m, k) of a, found another");
  sycl::queue queue = *a.queue(), queue_of_b = *b.queue();
  const events after{queue.ext_oneapi_submit_barrier(),
                     queue_of_b.ext_oneapi_submit_barrier()};

  usm_array<output<float, 3>> product(
      queue, extents<3>(left.extent(0), left.extent(1), right.extent(2)));
  const auto view = product.view();
  launch(queue, "matmul_float32", each_element_of(view), after, left, right, view);
  return {std::move(product), std::move(a), std::move(b)};
}

}  // namespace

NB_MODULE(_extension, m) {
  usm_dlpack::load_package();
  using unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def("set_kernel_source", &set_kernel_source, "file"_a, "include_folders"_a);

  // float32, then int32; what fits neither is refused with a sentence for each.
  m.def(
      "laplacian",
      [](sycl::queue& queue, input<float, 2> x, output<float, 2> out, const events& depends) {
        return laplacian(queue, x, out, depends, "laplacian_float32");
      },
      "queue"_a, "x"_a, "out"_a, "depends"_a = events{}, unlocked());
  m.def(
      "laplacian",
      [](sycl::queue& queue, input<std::int32_t, 2> x, output<std::int32_t, 2> out,
         const events& depends) {
        return laplacian(queue, x, out, depends, "laplacian_int32");
      },
      "queue"_a, "x"_a, "out"_a, "depends"_a = events{}, unlocked());
  usm_dlpack::explain_refusals(m, "laplacian");

  m.def("total", &total, "queue"_a, "x"_a, "depends"_a = events{}, unlocked());
  usm_dlpack::explain_refusals(m, "total");

  m.def("matmul", &matmul, "a"_a, "b"_a, unlocked());
  usm_dlpack::explain_refusals(m, "matmul");
}
