// SPDX-License-Identifier: Apache-2.0
//
// The device table where something is missing: a list of devices that the runtime refuses to
// make, and a platform without a default context.
#include <usm_dlpack/usm_dlpack.hpp>

#include <refusal.hpp>

#include "new_process.hpp"
#include "usm_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace test_device_table {

using namespace usm_dlpack_test;
using usm_dlpack::errc;

TEST(DeviceTable, ASelectorThatTheRuntimeCannotReadIsRefusedWithItsText) {
  in_a_new_process({{"ONEAPI_DEVICE_SELECTOR", "no such backend"}}, [] {
    try {
      usm_dlpack::root_device(0);
      ADD_FAILURE() << "expected a conversion_error, found that nothing was thrown";
    } catch (const usm_dlpack::conversion_error& error) {
      EXPECT_EQ(error.code(), errc::runtime_error);
      EXPECT_EQ(error.field(), "device");
      EXPECT_EQ(error.expected(), "the root devices of this process");
      const std::string& found = error.found();
      const std::string before = "the exception \"";
      ASSERT_GT(found.size(), before.size() + 1);
      EXPECT_EQ(found.substr(0, before.size()), before);
      EXPECT_EQ(found.back(), '"');
      EXPECT_NE(found[before.size()], '"');
    }
  });
}

TEST(UsmImport, ARankBelowTheOneAskedForIsRefusedAsOneAboveIs) {
  std::array<std::int64_t, 2> shape{0, 3};
  std::array<std::int64_t, 2> strides{3, 1};
  const DLTensor tensor{nullptr,      {kDLOneAPI, 0}, 2, {kDLFloat, 32, 1},
                        shape.data(), strides.data(), 0};
  usm_dlpack::requirements wanted;
  wanted.ndim = 1;
  EXPECT_REFUSAL(usm_dlpack::validate(tensor, wanted), errc::rank_mismatch, "ndim",
                 "1 dimensions, as asked for", "2");
  wanted.ndim = 3;
  EXPECT_REFUSAL(usm_dlpack::validate(tensor, wanted), errc::rank_mismatch, "ndim",
                 "3 dimensions, as asked for", "2");
}

TEST(BrokenDevice, ItsPlatformIsNotTakenForThatOfAForeignContext) {
  const auto& table = usm_dlpack::detail::device_table::get();
  const sycl::context foreign(usm_dlpack::root_device(0));
  EXPECT_EQ(table.find(foreign), nullptr);
  EXPECT_NE(table.find(usm_dlpack::default_context(0)), nullptr);
}

}  // namespace test_device_table
