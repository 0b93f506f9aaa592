// SPDX-License-Identifier: Apache-2.0
//
// What a view and its DLTensor must agree on: extents, strides, element size, and the address
// of every element, each asked of the view through mdspan's interface alone.
#pragma once

#include <valid_tensor.hpp>

#include <algorithm>

namespace usm_dlpack_test {

struct element_facts {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  std::vector<std::uintptr_t> addresses;  ///< in C order of the indices
  int element_bits = 0;
};

/// Of up to eight dimensions.
using index_array = std::array<std::int64_t, 8>;

inline std::vector<index_array> all_indices(const std::vector<std::int64_t>& shape) {
  if (std::count(shape.begin(), shape.end(), 0) != 0) return {};
  std::vector<index_array> all(1);
  for (std::size_t r = 0; r < shape.size(); ++r) {
    std::vector<index_array> finer;
    for (index_array indices : all) {
      for (indices[r] = 0; indices[r] < shape[r]; ++indices[r]) finer.push_back(indices);
    }
    all = finer;
  }
  return all;
}

template <class View, std::size_t... R>
element_facts facts_of(const View& view, std::index_sequence<R...>) {
  using index_type = typename View::index_type;
  element_facts facts{{static_cast<std::int64_t>(view.extent(R))...},
                      {static_cast<std::int64_t>(view.mapping().stride(R))...},
                      {},
                      static_cast<int>(8 * sizeof(typename View::element_type))};
  for ([[maybe_unused]] const index_array& indices : all_indices(facts.extents)) {
    const auto at = view.mapping()(static_cast<index_type>(indices[R])...);
    auto&& element = view.accessor().access(view.data_handle(), static_cast<std::size_t>(at));
    facts.addresses.push_back(reinterpret_cast<std::uintptr_t>(&element));
  }
  return facts;
}
template <class View>
element_facts facts_of(const View& view) {
  return usm_dlpack_test::facts_of(view, std::make_index_sequence<View::rank()>{});
}

/// As a consumer computes them. @pre strides are given
inline element_facts facts_of(const DLTensor& tensor) {
  element_facts facts{{tensor.shape, tensor.shape + tensor.ndim},
                      {tensor.strides, tensor.strides + tensor.ndim},
                      {},
                      tensor.dtype.bits * tensor.dtype.lanes};
  for (const index_array& indices : all_indices(facts.extents)) {
    std::int64_t offset = 0;
    for (std::size_t r = 0; r < facts.strides.size(); ++r) {
      offset += indices[r] * facts.strides[r];
    }
    facts.addresses.push_back(reinterpret_cast<std::uintptr_t>(tensor.data) +
                              tensor.byte_offset +
                              static_cast<std::uintptr_t>(offset * facts.element_bits / 8));
  }
  return facts;
}

/// Expects of a view all that its tensor says. DLPack leaves the strides of extent 1 and of an
/// empty tensor open.
inline void expect_same_elements(const DLTensor& tensor, const element_facts& view) {
  const element_facts wanted = facts_of(tensor);
  ASSERT_EQ(wanted.extents, view.extents);
  EXPECT_EQ(wanted.addresses, view.addresses);
  EXPECT_EQ(wanted.element_bits, view.element_bits);
  for (std::size_t r = 0; r < wanted.extents.size(); ++r) {
    if (wanted.extents[r] > 1 && !wanted.addresses.empty()) {
      EXPECT_EQ(wanted.strides[r], view.strides[r]) << "dimension " << r;
    }
  }
}

/// Expects that a tensor is taken, and shown as it is.
template <class View>
void expect_taken(const DLTensor& tensor) {
  const View result = to_mdspan<View>(tensor);
  expect_same_elements(tensor, facts_of(result));
}
template <class View>
void expect_taken(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  expect_taken<View>(strided_tensor(std::move(shape), std::move(strides)).tensor);
}

}  // namespace usm_dlpack_test
