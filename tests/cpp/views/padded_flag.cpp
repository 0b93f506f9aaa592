// SPDX-License-Identifier: Apache-2.0
//
// The flag for padded elements says something of elements below a byte alone.
#include <mdspan_under_test.hpp>
#include <valid_tensor.hpp>

#include <usm_dlpack/to_mdspan.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

TEST(ToMdspan, TakesElementsOfAByteWhateverTheFlagForPaddedOnesSays) {
  usm_dlpack_test::valid_tensor valid;
  valid.tensor.dtype = {kDLInt, 8, 1};
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION, 0};
  managed.dl_tensor = valid.tensor;
  using view_type = md::mdspan<std::int8_t, md::dextents<int, 2>>;
  managed.flags = usm_dlpack::flag::is_subbyte_type_padded;
  EXPECT_EQ(usm_dlpack::to_mdspan<view_type>(managed).extent(1), 3);
  managed.flags = 0;
  EXPECT_EQ(usm_dlpack::to_mdspan<view_type>(managed).extent(1), 3);
}

}  // namespace
