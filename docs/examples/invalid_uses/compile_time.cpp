// SPDX-License-Identifier: Apache-2.0
//
// Invalid uses of the C++ interface that the compiler refuses, one for each macro.
#if defined(view_without_an_owner) || defined(array_as_a_parameter) || \
    defined(python_object_as_owner)
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#else
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>
#endif

#include <array>
#include <vector>

using extents = Kokkos::dextents<int, 2>;
using matrix = Kokkos::mdspan<float, extents>;
[[maybe_unused]] constexpr DLDevice device{kDLOneAPI, 0};

#if defined(vector_as_view)
auto exported(const std::vector<float>& elements) {
  return usm_dlpack::to_dlpack_tensor(elements, device);
}

#elif defined(element_without_a_dtype)
struct pixel {
  unsigned char red, green, blue;
};
auto exported(Kokkos::mdspan<pixel, extents> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(host_code_that_indexes_device_usm)
float first(const usm_dlpack::device_mdspan<matrix>& view) {
  return view[std::array<int, 2>{0, 0}];
}

#elif defined(array_of_const_elements)
using const_matrix = Kokkos::mdspan<const float, extents>;
auto filled(const sycl::queue& queue) {
  return usm_dlpack::usm_array<const_matrix>(queue, extents(3, 4));
}

#elif defined(queue_checked_with_a_number)
void check(const sycl::queue& queue, const matrix& view, float factor) {
  usm_dlpack::check_queue(queue, view, factor);
}

#elif defined(view_without_an_owner)
void add_rows(nanobind::module_& module) {
  module.def("rows", [](usm_dlpack::device_mdspan<matrix> view) { return view; });
}

#elif defined(python_object_as_owner)
auto exported(const matrix& view, nanobind::object self) {
  return usm_dlpack::to_managed_tensor(view, device, self);
}

#elif defined(array_as_a_parameter)
void add_fill(nanobind::module_& module) {
  module.def("fill", [](usm_dlpack::usm_array<matrix>&& array) { array.data(); });
}
#endif
