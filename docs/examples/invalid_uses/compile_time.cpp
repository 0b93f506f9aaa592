// SPDX-License-Identifier: Apache-2.0
//
// Invalid uses of the C++ interface that the compiler refuses, one for each macro.
#if defined(view_without_an_owner) || defined(array_as_a_parameter)
#include <nanobind/nanobind.h>
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/nanobind.hpp>
#else
#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>
#endif

#include <array>
#include <cstddef>
#include <vector>

using extents = Kokkos::dextents<int, 2>;
using matrix = Kokkos::mdspan<float, extents>;
[[maybe_unused]] constexpr DLDevice device{kDLOneAPI, 0};

#if defined(vector_as_view)
auto exported(const std::vector<float>& elements) {
  return usm_dlpack::to_dlpack_tensor(elements, device);
}

#elif defined(handle_that_is_no_pointer)
struct indexed_accessor {  // begins at an index into memory that only it knows
  using offset_policy = indexed_accessor;
  using element_type = float;
  using reference = float&;
  using data_handle_type = std::size_t;
  float* memory = nullptr;
  float& access(std::size_t handle, std::size_t i) const { return memory[handle + i]; }
  std::size_t offset(std::size_t handle, std::size_t i) const { return handle + i; }
};
auto exported(Kokkos::mdspan<float, extents, Kokkos::layout_right, indexed_accessor> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(accessor_that_scales)
struct doubling_accessor {  // shows twice what stands in memory
  using offset_policy = doubling_accessor;
  using element_type = float;
  using reference = float;
  using data_handle_type = float*;
  float access(float* handle, std::size_t i) const { return 2 * handle[i]; }
  float* offset(float* handle, std::size_t i) const { return handle + i; }
};
auto exported(Kokkos::mdspan<float, extents, Kokkos::layout_right, doubling_accessor> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(element_without_a_dtype)
struct pixel {
  unsigned char red, green, blue;
};
auto exported(Kokkos::mdspan<pixel, extents> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(dtype_of_another_size)
struct pixel {
  unsigned char red, green, blue;
};
template <>
struct usm_dlpack::data_type_of<pixel> {
  static constexpr DLDataType value{kDLUInt, 8, 4};  // four bytes for an object of three
};
auto exported(Kokkos::mdspan<pixel, extents> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(padded_elements_without_flags)
struct int4_in_a_byte {
  unsigned char bits;
};
template <>
struct usm_dlpack::data_type_of<int4_in_a_byte> {
  static constexpr DLDataType value{kDLInt, 4, 1};
};
auto exported(Kokkos::mdspan<int4_in_a_byte, extents> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(layout_without_strides)
struct layout_of_blocks {  // blocks of 2 by 2 elements
  template <class Extents>
  struct mapping {
    using extents_type = Extents;
    using index_type = typename Extents::index_type;
    using size_type = typename Extents::size_type;
    using rank_type = typename Extents::rank_type;
    using layout_type = layout_of_blocks;
    extents_type all{};
    const extents_type& extents() const { return all; }
    index_type operator()(index_type i, index_type j) const {
      return (i / 2 * (all.extent(1) / 2) + j / 2) * 4 + i % 2 * 2 + j % 2;
    }
    index_type required_span_size() const { return all.extent(0) * all.extent(1); }
    static constexpr bool is_always_unique() { return true; }
    static constexpr bool is_always_exhaustive() { return true; }
    static constexpr bool is_always_strided() { return false; }
    bool is_unique() const { return true; }
    bool is_exhaustive() const { return true; }
    bool is_strided() const { return false; }
  };
};
auto exported(Kokkos::mdspan<float, extents, layout_of_blocks> view) {
  return usm_dlpack::to_dlpack_tensor(view, device);
}

#elif defined(host_code_that_indexes_device_usm)
float first(const usm_dlpack::device_mdspan<matrix>& view) {
  return view[std::array<int, 2>{0, 0}];
}

#elif defined(accessor_of_no_kind)
using plain = Kokkos::default_accessor<float>;
const usm_dlpack::usm_accessor<sycl::usm::alloc::unknown, plain> accessor;

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

#elif defined(array_as_a_parameter)
void add_fill(nanobind::module_& module) {
  module.def("fill", [](usm_dlpack::usm_array<matrix>&& array) { array.data(); });
}
#endif
