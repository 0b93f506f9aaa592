// SPDX-License-Identifier: Apache-2.0
//
// What an extension sees of arrays by nanobind's own nb::ndarray<nb::device::oneapi>, and
// arrays that such an extension hands out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

using taken = nb::ndarray<nb::device::oneapi>;
using taken_readonly = nb::ndarray<nb::ro, nb::device::oneapi>;
// Given to Python as an object with __dlpack__; without the tag it would be a bare capsule.
using given = nb::ndarray<nb::array_api, nb::device::oneapi>;
using given_readonly = nb::ndarray<nb::array_api, nb::ro, nb::device::oneapi>;
using on_host = nb::ndarray<nb::ro, nb::device::cpu>;
using numpy_array = nb::ndarray<nb::numpy, nb::ro, nb::device::cpu>;
using dtype_parts = std::tuple<int, int, int>;

template <class Array>
auto describe(const Array& array) {
  const std::vector<std::int64_t> shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
  const std::vector<std::int64_t> strides(array.stride_ptr(),
                                          array.stride_ptr() + array.ndim());
  const nb::dlpack::dtype dtype = array.dtype();
  return std::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), shape, strides,
                         dtype_parts(dtype.code, dtype.bits, dtype.lanes), array.device_id());
}

template <class Array>
Array hand_out(std::uintptr_t address, const std::vector<std::size_t>& shape,
               const std::vector<std::int64_t>& strides, const dtype_parts& dtype,
               int device_id, nb::handle owner) {
  const nb::dlpack::dtype parts{static_cast<std::uint8_t>(std::get<0>(dtype)),
                                static_cast<std::uint8_t>(std::get<1>(dtype)),
                                static_cast<std::uint16_t>(std::get<2>(dtype))};
  return Array(reinterpret_cast<void*>(address), shape.size(), shape.data(), owner,
               strides.data(), parts, nb::device::oneapi::value, device_id);
}

/// What NumPy sees in memory of the host, which is kept as nanobind took it.
numpy_array to_numpy(const on_host& array) {
  const nb::capsule owner(new on_host(array),
                          [](void* kept) noexcept { delete static_cast<on_host*>(kept); });
  const std::vector<std::size_t> shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
  return numpy_array(array.data(), shape.size(), shape.data(), owner, array.stride_ptr(),
                     array.dtype());
}

}  // namespace

NB_MODULE(nanobind_consumer, module) {
  module.def("to_numpy", &to_numpy);
  module.def("describe", &describe<taken>);
  module.def("describe_readonly", &describe<taken_readonly>);
  module.def("hand_out", &hand_out<given>);
  module.def("hand_out_readonly", &hand_out<given_readonly>);
}
