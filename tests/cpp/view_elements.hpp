// SPDX-License-Identifier: Apache-2.0
//
// What a view and its DLTensor must agree on: extents, strides, element size, and the address
// of every element, each asked of the view through mdspan's interface alone.
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
using address_of_indices = std::uintptr_t (*)(const void* source, const index_array& indices);

/// The address of every element in C order of the indices, from the address of one.
inline std::vector<std::uintptr_t> all_addresses(const std::vector<std::int64_t>& shape,
                                                 address_of_indices address_of,
                                                 const void* source) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return {};
  }
  for (const std::int64_t extent : shape) count *= extent;
  std::vector<std::uintptr_t> all;
  for (std::int64_t number = 0; number < count; ++number) {
    index_array indices{};
    std::int64_t left = number;
    for (std::size_t r = shape.size(); r-- > 0; left /= shape[r]) indices[r] = left % shape[r];
    all.push_back(address_of(source, indices));
  }
  return all;
}

/// What a view says of itself. No template, so that many view types compile in reasonable
/// time.
struct view_facts {
  const void* view = nullptr;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  std::size_t element_size = 0;
  address_of_indices address_of = nullptr;

  std::vector<std::uintptr_t> addresses() const {
    return all_addresses(extents, address_of, view);
  }
};

template <class View, std::size_t... R>
std::uintptr_t address_in(const View& view, const index_array& indices,
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
  facts.element_size = sizeof(typename View::element_type);
  facts.address_of = [](const void* self, const index_array& indices) {
    return address_in(*static_cast<const View*>(self), indices,
                      std::make_index_sequence<View::rank()>{});
  };
  if constexpr (View::rank() != 0) {
    for (std::size_t r = 0; r < View::rank(); ++r) {
      facts.extents.push_back(static_cast<std::int64_t>(view.extent(r)));
      facts.strides.push_back(static_cast<std::int64_t>(view.mapping().stride(r)));
    }
  }
  return facts;
}

/// The address of every element of a tensor, as a consumer computes it. @pre strides are given
inline std::vector<std::uintptr_t> addresses_of(const DLTensor& tensor) {
  const auto address_of = [](const void* source, const index_array& indices) {
    const auto& self = *static_cast<const DLTensor*>(source);
    std::int64_t offset = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(self.ndim); ++r) {
      offset += indices[r] * self.strides[r];
    }
    return reinterpret_cast<std::uintptr_t>(self.data) + self.byte_offset +
           static_cast<std::uintptr_t>(offset * self.dtype.bits * self.dtype.lanes / 8);
  };
  return all_addresses({tensor.shape, tensor.shape + tensor.ndim}, address_of, &tensor);
}

/// Expects of a view all that its tensor says. DLPack leaves the strides of extent 1 and of an
/// empty tensor open.
inline void expect_same_elements(const DLTensor& tensor, const view_facts& facts) {
  const std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  ASSERT_EQ(shape, facts.extents);
  const std::vector<std::uintptr_t> addresses = facts.addresses();
  EXPECT_EQ(addresses, addresses_of(tensor));
  EXPECT_EQ(tensor.dtype.bits * tensor.dtype.lanes, static_cast<int>(8 * facts.element_size));
  for (std::size_t r = 0; r < shape.size(); ++r) {
    if (shape[r] > 1 && !addresses.empty()) {
      EXPECT_EQ(facts.strides[r], tensor.strides[r]) << "dimension " << r;
    }
  }
}

}  // namespace usm_dlpack_test
