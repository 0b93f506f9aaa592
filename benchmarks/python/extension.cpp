// SPDX-License-Identifier: Apache-2.0
//
// Functions of C++ that the benchmark calls from Python, once with the casters of nanobind.hpp
// and once with nb::ndarray; and calls in C++, beside queries of SYCL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

namespace nb = nanobind;

namespace {

template <class Element>
using view =
    usm_dlpack::device_mdspan<Kokkos::mdspan<Element, Kokkos::dextents<std::int64_t, 2>>>;
using view_type = Kokkos::mdspan<float, Kokkos::dextents<std::int64_t, 2>>;
template <class Element>
using ndarray = nb::ndarray<Element, nb::ndim<2>, nb::c_contig, nb::device::oneapi>;
constexpr std::size_t rows = 4;

/// Device memory of a 4 x 4 matrix: what functions return, and what calls in C++ exchange.
class matrix {
 public:
  explicit matrix(sycl::queue queue)
      : queue_(std::move(queue)),
        memory_(sycl::malloc_device<float>(rows * rows, queue_),
                [q = queue_](float* pointer) { sycl::free(pointer, q); }),
        view_(memory_.get(), rows, rows),
        tensor_(usm_dlpack::to_dlpack_tensor(view_, queue_)) {}

  usm_dlpack::owned_view<view_type> owned() const { return {view_, queue_, memory_}; }

  nb::ndarray<float, nb::array_api, nb::device::oneapi> as_ndarray() const {
    const std::size_t shape[2] = {rows, rows};
    const nb::capsule owner(new std::shared_ptr<float>(memory_), [](void* kept) noexcept {
      delete static_cast<std::shared_ptr<float>*>(kept);
    });
    return {memory_.get(), 2, shape, owner};
  }

  std::int64_t export_it() const {
    return repeat(
        [&] { return usm_dlpack::to_dlpack_tensor(view_, queue_).device().device_id; });
  }

  std::int64_t validate_it() const {
    const DLTensor tensor = tensor_.get();
    return repeat([&] { return usm_dlpack::validate(tensor).device_id(); });
  }

  /// Asks CUDA's driver, by the address of `cuPointerGetAttributes`, for the kind, the device
  /// and the bounds of the memory.
  std::int64_t query_cuda(std::uintptr_t function) const {
    const auto get_attributes =
        reinterpret_cast<int (*)(unsigned, int*, void**, std::uintptr_t)>(function);
    int attributes[] = {2, 8, 9, 11, 12};  // memory type, managed, ordinal, base, size
    std::uint64_t values[std::size(attributes)] = {};
    void* places[] = {&values[0], &values[1], &values[2], &values[3], &values[4]};
    return repeat([&] {
      return get_attributes(std::size(attributes), attributes, places,
                            reinterpret_cast<std::uintptr_t>(memory_.get())) == 0;
    });
  }

  /// Asks SYCL for kind and device of the first element, or of the first and the last: both
  /// are needed to trust a pointer.
  std::int64_t query(int elements) const {
    const float* const pointers[] = {view_.data_handle(),
                                     view_.data_handle() + rows * rows - 1};
    return repeat([&] {
      bool known = true;
      for (int i = 0; i < elements; ++i) {
        const sycl::context context = queue_.get_context();
        known &= sycl::get_pointer_type(pointers[i], context) == sycl::usm::alloc::device &&
                 sycl::get_pointer_device(pointers[i], context) == queue_.get_device();
      }
      return known;
    });
  }

 private:
  /// Makes many calls, so that the one from Python that makes them hardly counts.
  template <class Call>
  static std::int64_t repeat(Call&& call) {
    std::int64_t sum = 0;
    for (int done = 0; done < 20; ++done) {
      sum += static_cast<std::int64_t>(call());
    }
    return sum;
  }

  sycl::queue queue_;
  std::shared_ptr<float> memory_;
  view_type view_;
  usm_dlpack::dlpack_tensor<2> tensor_;
};

}  // namespace

NB_MODULE(benchmark_extension, module) {
  module.def("take_view", [](const view<float>& x) { return x.extent(0); });
  module.def("take_ndarray", [](const ndarray<float>& x) { return x.shape(0); });
  module.def("overloaded_view", [](const view<int>& x) { return x.extent(0); });
  module.def("overloaded_view", [](const view<float>& x) { return x.extent(0); });
  module.def("overloaded_ndarray", [](const ndarray<int>& x) { return x.shape(0); });
  module.def("overloaded_ndarray", [](const ndarray<float>& x) { return x.shape(0); });
  nb::class_<matrix>(module, "Matrix")
      .def(nb::init<sycl::queue>())
      .def("owned", &matrix::owned)
      .def("ndarray", &matrix::as_ndarray)
      .def("export", &matrix::export_it)
      .def("validate", &matrix::validate_it)
      .def("query", &matrix::query)
      .def("query_cuda", &matrix::query_cuda);
}
