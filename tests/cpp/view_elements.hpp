// SPDX-License-Identifier: Apache-2.0
//
// What a view and its DLTensor must agree on, asked of the view through mdspan's interface
// alone: extents, strides, dtype, and the address of every element.
#pragma once

#include <mdspan_under_test.hpp>

#include <usm_dlpack/core/dtype.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace usm_dlpack_test {

/// The highest rank that tests use.
inline constexpr std::size_t max_rank = 8;
using index_array = std::array<std::int64_t, max_rank>;

/// The tuple of indices that follows in C order; false behind the last.
inline bool next_indices(index_array& indices, const std::vector<std::int64_t>& extents) {
  for (std::size_t r = extents.size(); r-- > 0;) {
    if (++indices[r] < extents[r]) return true;
    indices[r] = 0;
  }
  return false;
}

/// What a view says of itself. No template, and filled by few instructions, so that hundreds
/// of view types compile in reasonable time.
struct view_facts {
  const void* view = nullptr;
  std::size_t rank = 0;
  index_array extents{};
  index_array strides{};
  std::size_t element_size = 0;
  /// The address of one element, asked of mapping and accessor.
  std::uintptr_t (*address_of)(const void* view, const index_array& indices) = nullptr;

  std::vector<std::int64_t> shape() const { return {extents.data(), extents.data() + rank}; }
  /// Of every element, in C order of the indices.
  std::vector<std::uintptr_t> addresses() const {
    std::vector<std::uintptr_t> all;
    for (const std::int64_t extent : shape()) {
      if (extent == 0) return all;
    }
    index_array indices{};
    do {
      all.push_back(address_of(view, indices));
    } while (next_indices(indices, shape()));
    return all;
  }
};

template <class View, std::size_t... R>
std::uintptr_t address_of(const View& view, const index_array& indices,
                          std::index_sequence<R...>) {
  using index_type = typename View::index_type;
  const auto at = view.mapping()(static_cast<index_type>(indices[R])...);
  auto&& element = view.accessor().access(view.data_handle(), static_cast<std::size_t>(at));
  return reinterpret_cast<std::uintptr_t>(&element);
}

/// @pre the view outlives the result
template <class View>
view_facts facts_of(const View& view) {
  view_facts facts;
  facts.view = &view;
  facts.rank = View::rank();
  facts.element_size = sizeof(typename View::element_type);
  facts.address_of = [](const void* self, const index_array& indices) {
    return usm_dlpack_test::address_of(*static_cast<const View*>(self), indices,
                                       std::make_index_sequence<View::rank()>{});
  };
  if constexpr (View::rank() != 0) {
    for (std::size_t r = 0; r < View::rank(); ++r) {
      facts.extents[r] = static_cast<std::int64_t>(view.extent(r));
      facts.strides[r] = static_cast<std::int64_t>(view.mapping().stride(r));
    }
  }
  return facts;
}

/// Expects that two views are the same in extents, in element addresses, and in the strides of
/// dimensions that have neighbours.
inline void expect_same_view(const view_facts& back, const view_facts& view) {
  EXPECT_EQ(back.shape(), view.shape());
  const std::vector<std::uintptr_t> addresses = view.addresses();
  EXPECT_EQ(back.addresses(), addresses);
  for (std::size_t r = 0; r < view.rank; ++r) {
    if (view.extents[r] > 1 && !addresses.empty()) {
      EXPECT_EQ(back.strides[r], view.strides[r]) << "dimension " << r;
    }
  }
}

/// The address of every element of a tensor, as a consumer computes it.
inline std::vector<std::uintptr_t> addresses_of(const DLTensor& tensor) {
  const std::vector<std::int64_t> extents(tensor.shape, tensor.shape + tensor.ndim);
  std::vector<std::uintptr_t> addresses;
  for (const std::int64_t extent : extents) {
    if (extent == 0) return addresses;
  }
  const auto first = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  const std::int64_t size = tensor.dtype.bits * tensor.dtype.lanes / 8;
  index_array indices{};
  do {
    std::int64_t offset = 0;
    for (std::size_t r = 0; r < extents.size(); ++r) {
      offset += indices[r] * tensor.strides[r];
    }
    addresses.push_back(first + static_cast<std::uintptr_t>(offset * size));
  } while (next_indices(indices, extents));
  return addresses;
}

/// Expects of a tensor all that a view says of itself.
inline void expect_same_elements(const DLTensor& tensor, const view_facts& facts) {
  const auto ndim = static_cast<std::size_t>(tensor.ndim);
  ASSERT_EQ(ndim, facts.rank);
  EXPECT_EQ(tensor.byte_offset, 0U);
  EXPECT_EQ(tensor.dtype.bits * tensor.dtype.lanes, static_cast<int>(8 * facts.element_size));
  if (ndim == 0) {
    EXPECT_EQ(tensor.shape, nullptr);
    EXPECT_EQ(tensor.strides, nullptr);
  } else {
    ASSERT_NE(tensor.shape, nullptr);
    ASSERT_NE(tensor.strides, nullptr);
  }
  for (std::size_t r = 0; r < ndim; ++r) {
    EXPECT_EQ(tensor.shape[r], facts.extents[r]) << "dimension " << r;
    EXPECT_EQ(tensor.strides[r], facts.strides[r]) << "dimension " << r;
  }
  EXPECT_EQ(addresses_of(tensor), facts.addresses());
}

}  // namespace usm_dlpack_test
