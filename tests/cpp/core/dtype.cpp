// SPDX-License-Identifier: Apache-2.0
//
// How messages print a dtype: by name, and with the raw numbers.
#include <usm_dlpack/core/dtype.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <set>
#include <string>

namespace {

using usm_dlpack::data_type_v;
using usm_dlpack::to_string;

TEST(Dtype, PrintsNameAndRawNumbers) {
  EXPECT_EQ(to_string(data_type_v<float>), "float32 (code 2, bits 32, lanes 1)");
  EXPECT_EQ(to_string(data_type_v<const signed char>), "int8 (code 0, bits 8, lanes 1)");
  EXPECT_EQ(to_string(data_type_v<unsigned short>), "uint16 (code 1, bits 16, lanes 1)");
  EXPECT_EQ(to_string(data_type_v<std::complex<float>>),
            "complex64 (code 5, bits 64, lanes 1)");
  EXPECT_EQ(to_string(data_type_v<bool>), "bool (code 6, bits 8, lanes 1)");
}

TEST(Dtype, PrintsBfloatWithItsWidth) {
  EXPECT_EQ(to_string(DLDataType{kDLBfloat, 16, 1}), "bfloat16 (code 4, bits 16, lanes 1)");
}

TEST(Dtype, PrintsCodesThatAnOlderHeaderLacks) {
  namespace type_code = usm_dlpack::type_code;
  EXPECT_EQ(to_string(DLDataType{type_code::float8_e4m3fn, 8, 1}),
            "float8_e4m3fn (code 10, bits 8, lanes 1)");
  EXPECT_EQ(to_string(DLDataType{type_code::float4_e2m1fn, 4, 2}),
            "float4_e2m1fnx2 (code 17, bits 4, lanes 2)");
}

TEST(Dtype, PrintsLanes) {
  EXPECT_EQ(to_string(DLDataType{kDLFloat, 32, 4}), "float32x4 (code 2, bits 32, lanes 4)");
  EXPECT_EQ(to_string(DLDataType{kDLInt, 8, 0}), "int8x0 (code 0, bits 8, lanes 0)");
}

TEST(Dtype, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(to_string(DLDataType{18, 8, 1}), "unknown (code 18, bits 8, lanes 1)");
  EXPECT_EQ(to_string(DLDataType{255, 255, 65535}),
            "unknownx65535 (code 255, bits 255, lanes 65535)");
}

TEST(Dtype, PrintsAWidthThatDoesNotBelongToTheCode) {
  EXPECT_EQ(to_string(DLDataType{kDLBool, 1, 1}), "bool1 (code 6, bits 1, lanes 1)");
}

TEST(Dtype, PrintsEveryCodeDifferently) {
  std::set<std::string> printed;
  for (unsigned code = 0; code < 256; ++code) {
    printed.insert(to_string(DLDataType{static_cast<std::uint8_t>(code), 8, 1}));
  }
  EXPECT_EQ(printed.size(), 256U);
}

}  // namespace
