// SPDX-License-Identifier: Apache-2.0
//
// Invalid uses of the part of the library that asks no device: views that no DLTensor can
// describe, tensors that are not well formed, and tensors that are not the view asked for.
#include "print_refusals.hpp"

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

struct eight_int4 {  // eight elements of four bits, packed into four bytes
  std::uint32_t bits;
};
template <>
struct usm_dlpack::data_type_of<eight_int4> {
  static constexpr DLDataType value{kDLInt, 4, 8};
};

namespace {

using Kokkos::dextents;
using Kokkos::mdspan;
using usm_dlpack::check_structure;
using usm_dlpack::to_dlpack_tensor;
using usm_dlpack::to_mdspan;

constexpr DLDevice device{kDLOneAPI, 0};

// What a consumer gets: 3 by 4 elements of float32 in C order. Each use spoils one field.
struct received_tensor {
  alignas(16) std::array<float, 12> elements{};
  std::array<std::int64_t, 2> shape{3, 4};
  std::array<std::int64_t, 2> strides{4, 1};
  DLManagedTensorVersioned managed{};
  DLTensor& tensor = managed.dl_tensor;

  received_tensor() {
    managed.version = {1, 0};
    tensor.data = elements.data();
    tensor.device = device;
    tensor.ndim = 2;
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
};
using matrix = mdspan<float, dextents<int, 2>>;  // what it becomes

// --- A view that no DLTensor can describe -------------------------------------------------

// A layout whose mappings may have strides; this one stores the lower half of a matrix.
struct layout_of_halves {
  template <class Extents>
  struct mapping : Kokkos::layout_right::mapping<Extents> {
    using layout_type = layout_of_halves;
    using Kokkos::layout_right::mapping<Extents>::mapping;
    int operator()(int i, int j) const { return i * (i + 1) / 2 + j; }
    static constexpr bool is_always_unique() { return false; }
    static constexpr bool is_always_strided() { return false; }
    bool is_unique() const { return false; }
    bool is_strided() const { return false; }
  };
};

const use view_without_strides("view_without_strides", [] {
  using extents = dextents<int, 2>;
  std::array<float, 16> elements{};
  const layout_of_halves::mapping<extents> halved(extents(4, 4));
  const mdspan<float, extents, layout_of_halves> view(elements.data(), halved);
  static_cast<void>(to_dlpack_tensor(view, device));
});

const use negative_extent("negative_extent", [] {
  const mdspan<float, dextents<int, 2>> view(nullptr, 3, -1);
  static_cast<void>(to_dlpack_tensor(view, device));
});

const use stride_beyond_int64("stride_beyond_int64", [] {
  using extents = dextents<std::uint64_t, 1>;
  const std::array<std::uint64_t, 1> strides{std::uint64_t{1} << 63};
  const Kokkos::layout_stride::mapping<extents> mapping(extents(1), strides);
  const mdspan<float, extents, Kokkos::layout_stride> view(nullptr, mapping);
  static_cast<void>(to_dlpack_tensor(view, device));
});

const use first_element_out_of_reach("first_element_out_of_reach", [] {
  using extents = dextents<std::int64_t, 1>;
  const std::int64_t element_offset = std::int64_t{1} << 62;  // of elements of four bytes
  const usm_dlpack::layout_relaxed::mapping<extents> mapping(extents(4), {1}, element_offset);
  const mdspan<float, extents, usm_dlpack::layout_relaxed> view(nullptr, mapping);
  static_cast<void>(to_dlpack_tensor(view, device));
});

// --- A tensor that is not well formed -----------------------------------------------------

const use version_of_another_layout("version_of_another_layout", [] {
  received_tensor received;
  received.managed.version = {2, 0};
  static_cast<void>(to_mdspan<matrix>(received.managed));
});

const use flag_that_dlpack_does_not_define("flag_that_dlpack_does_not_define", [] {
  received_tensor received;
  received.managed.flags = 8;
  static_cast<void>(to_mdspan<matrix>(received.managed));
});

const use unknown_flag_of_your_own("unknown_flag_of_your_own", [] {
  const received_tensor received;
  const int owner = 0;
  static_cast<void>(usm_dlpack::to_managed_tensor(received.tensor, owner, 8));
});

const use mutable_view_of_read_only_memory("mutable_view_of_read_only_memory", [] {
  received_tensor received;
  received.managed.flags = usm_dlpack::flag::read_only;
  static_cast<void>(to_mdspan<matrix>(received.managed));
});

const use negative_ndim("negative_ndim", [] {
  received_tensor received;
  received.tensor.ndim = -1;
  check_structure(received.tensor);
});

const use null_shape("null_shape", [] {
  received_tensor received;
  received.tensor.shape = nullptr;
  check_structure(received.tensor);
});

const use negative_entry_of_shape("negative_entry_of_shape", [] {
  received_tensor received;
  received.shape[1] = -4;
  check_structure(received.tensor);
});

// --- A tensor that is not the view asked for ----------------------------------------------

const use view_of_another_element_type("view_of_another_element_type", [] {
  const received_tensor received;  // of float32
  static_cast<void>(to_mdspan<mdspan<double, dextents<int, 2>>>(received.tensor));
});

const use padded_elements_as_packed_ones("padded_elements_as_packed_ones", [] {
  received_tensor received;
  received.tensor.dtype = usm_dlpack::data_type_v<eight_int4>;
  received.managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  static_cast<void>(to_mdspan<mdspan<eight_int4, dextents<int, 2>>>(received.managed));
});

const use view_of_another_rank("view_of_another_rank", [] {
  const received_tensor received;  // of two dimensions
  static_cast<void>(to_mdspan<mdspan<float, dextents<int, 1>>>(received.tensor));
});

const use view_of_another_static_extent("view_of_another_static_extent", [] {
  const received_tensor received;  // 3 by 4
  static_cast<void>(to_mdspan<mdspan<float, Kokkos::extents<int, 3, 3>>>(received.tensor));
});

const use extent_beyond_the_index_type("extent_beyond_the_index_type", [] {
  received_tensor received;
  received.shape = {200, 1};
  static_cast<void>(to_mdspan<mdspan<float, dextents<std::int8_t, 2>>>(received.tensor));
});

const use product_beyond_the_index_type("product_beyond_the_index_type", [] {
  received_tensor received;
  received.shape = {100, 100};
  received.strides = {0, 0};  // a broadcast of one element
  static_cast<void>(to_mdspan<mdspan<float, dextents<std::int8_t, 2>>>(received.tensor));
});

const use padded_rows_as_compact_ones("padded_rows_as_compact_ones", [] {
  received_tensor received;
  received.shape = {3, 3};  // the first three columns of rows of four
  static_cast<void>(to_mdspan<matrix>(received.tensor));
});

const use negative_stride_in_a_unique_layout("negative_stride_in_a_unique_layout", [] {
  using strided = mdspan<float, dextents<int, 2>, Kokkos::layout_stride>;
  received_tensor received;
  received.tensor.byte_offset = 32;  // the last row is the first
  received.strides = {-4, 1};
  static_cast<void>(to_mdspan<strided>(received.tensor));
});

const use overlapping_rows_in_a_unique_layout("overlapping_rows_in_a_unique_layout", [] {
  using strided = mdspan<float, dextents<int, 2>, Kokkos::layout_stride>;
  received_tensor received;
  received.strides = {2, 1};  // rows of four elements, two elements apart
  static_cast<void>(to_mdspan<strided>(received.tensor));
});

}  // namespace
