// SPDX-License-Identifier: Apache-2.0
//
// An extension that takes arrays as nanobind's own nb::ndarray, and hands out new ones of the
// same memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <vector>

namespace nb = nanobind;

namespace {

/// Hands out a new array, which keeps the one that nanobind took.
template <class Given, class Taken>
Given from_dlpack(const Taken& array) {
  const nb::capsule owner(new Taken(array),
                          [](void* kept) noexcept { delete static_cast<Taken*>(kept); });
  const std::vector<std::size_t> shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
  return Given(array.data(), shape.size(), shape.data(), owner, array.stride_ptr(),
               array.dtype(), array.device_type(), array.device_id());
}

template <class Framework, class... Kind>
void add(nb::module_& module) {
  module.def("from_dlpack",
             &from_dlpack<nb::ndarray<Framework, Kind...>, nb::ndarray<Kind...>>);
}

}  // namespace

NB_MODULE(nanobind_consumer, module) {
  // Given to Python as an object with __dlpack__; without the tag it would be a bare capsule.
  add<nb::array_api, nb::device::oneapi>(module);
  add<nb::array_api, nb::ro, nb::device::oneapi>(module);
  add<nb::numpy, nb::ro, nb::device::cpu>(module);
}
