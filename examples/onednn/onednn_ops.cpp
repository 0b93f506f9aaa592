// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's matmul on arrays of any library, called from Python: arrays become memory objects
// without a copy, and the product is a usm_dlpack.DLPackTensor.
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <onednn_dlpack/sycl.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <list>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using dnnl::memory;
using usm_dlpack::owned_view;

namespace {

using extents = Kokkos::dextents<std::int64_t, 2>;
// Arguments: USM of any kind with any strides; oneDNN's own limits are checked by make_memory.
template <class Element>
using matrix = Kokkos::mdspan<const Element, extents, usm_dlpack::layout_relaxed>;
// Results: device USM in C order.
template <class Element>
using product = usm_dlpack::device_mdspan<Kokkos::mdspan<Element, extents>>;

/// Where primitives run.
struct place {
  sycl::queue queue;
  dnnl::engine engine;
  dnnl::stream stream;
};

/// The place of a queue, kept for the life of the process: work of a CPU engine refers to its
/// stream, and a queue must not be destroyed before its work is done.
const place& place_of(const sycl::queue& queue) {
  static auto& mutex = *new std::mutex;
  static auto& places = *new std::list<place>;
  const std::lock_guard lock(mutex);
  for (const place& known : places) {
    if (known.queue == queue) {
      return known;
    }
  }
  dnnl::engine engine = onednn_dlpack::make_engine(usm_dlpack::device_id(queue.get_device()));
  dnnl::stream stream = onednn_dlpack::make_stream(engine, queue);
  return places.emplace_back(place{queue, std::move(engine), std::move(stream)});
}

/// On the queue that is passed, or else on that of `a`. The result keeps both arrays, and
/// knows its queue.
template <class Element>
owned_view<product<Element>> matmul(owned_view<matrix<Element>> a,
                                    owned_view<matrix<Element>> b, const sycl::queue* queue) {
  const place& where = place_of(queue != nullptr ? *queue : a.queue());
  const memory x = onednn_dlpack::make_memory(*a.managed(), where.engine);
  const memory y = onednn_dlpack::make_memory(*b.managed(), where.engine);
  if (a.view().extent(1) != b.view().extent(0)) {
    throw std::invalid_argument(
        "b: expected the shape (k, n) for the shape (m, k) of a, found another; "
        "reshape the arrays");
  }
  usm_dlpack::usm_array<product<Element>> made(
      where.queue, extents(a.view().extent(0), b.view().extent(1)));
  usm_dlpack::ordered_section work(where.queue, a, b);  // behind the work on both
  if (a.view().extent(1) == 0) {                        // oneDNN would write nothing
    sycl::queue(where.queue).memset(made.data(), 0, made.size_bytes());
  } else {
    const auto out = usm_dlpack::to_dlpack_tensor(made.view(), where.queue);
    const memory z = onednn_dlpack::make_memory(out.get(), where.engine);
    onednn_dlpack::detail::ask_onednn(
        "matmul", "dtypes, shapes and strides that oneDNN implements together on this device",
        "reorder to a compact float32 array first", [&] {
          const dnnl::matmul primitive(
              {where.engine, x.get_desc(), y.get_desc(), z.get_desc()});
          primitive.execute(where.stream,
                            {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, y}, {DNNL_ARG_DST, z}});
        });
  }
  return made;
}  // `work` waits

template <class... Elements>
void add(nb::module_& m) {
  // Without the GIL: oneDNN compiles its kernels on first use.
  (m.def("matmul", &matmul<Elements>, "a"_a, "b"_a, nb::kw_only(),
         "queue"_a.none() = nb::none(), nb::call_guard<nb::gil_scoped_release>()),
   ...);
}

}  // namespace

NB_MODULE(onednn_ops, m) {
  usm_dlpack::load_package();
  add<float, sycl::half, sycl::ext::oneapi::bfloat16, double>(m);
}
