// SPDX-License-Identifier: Apache-2.0
//
// The flag for padded elements says something of elements below a byte alone.
#include <mdspan_under_test.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/core/layout_relaxed.hpp>
#include <usm_dlpack/core/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

template <class Element, class Layout>
void expect_taken_whatever_the_flag() {
  usm_dlpack_test::valid_tensor valid;
  valid.tensor.dtype = usm_dlpack::data_type_v<Element>;
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION, 0};
  managed.dl_tensor = valid.tensor;
  using view_type = md::mdspan<Element, md::dextents<int, 2>, Layout>;
  for (const std::uint64_t flags :
       {usm_dlpack::flag::is_subbyte_type_padded, std::uint64_t{0}}) {
    managed.flags = flags;
    EXPECT_EQ(usm_dlpack::to_mdspan<view_type>(managed).extent(1), 3);
  }
}

TEST(ToMdspan, TakesElementsOfAByteOrMoreWhateverTheFlagForPaddedOnesSays) {
  expect_taken_whatever_the_flag<std::int8_t, md::layout_right>();
  expect_taken_whatever_the_flag<float, md::layout_right>();
  // Its tensors are not looked at in one pass.
  expect_taken_whatever_the_flag<std::int8_t, usm_dlpack::layout_relaxed>();
  expect_taken_whatever_the_flag<float, usm_dlpack::layout_relaxed>();
}

}  // namespace
