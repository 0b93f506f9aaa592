// SPDX-License-Identifier: Apache-2.0
//
// How messages print a dtype: by name, and with the raw numbers.
#include <valid_tensor.hpp>

#include <complex>

namespace test_dtype {

using namespace usm_dlpack_test;

TEST(Dtype, PrintsNameWidthLanesAndRawNumbers) {
  EXPECT_EQ(to_string(data_type_v<float>), "float32");
  EXPECT_EQ(to_string(data_type_v<const signed char>), "int8");
  EXPECT_EQ(to_string(data_type_v<std::complex<float>>), "complex64");
  EXPECT_EQ(to_string(data_type_v<bool>), "bool");
  EXPECT_EQ(to_string({kDLBool, 1, 1}), "bool1 (code 6, bits 1, lanes 1)");
  EXPECT_EQ(to_string({kDLBfloat, 16, 1}), "bfloat16");
  EXPECT_TRUE(detail::is_of_numpy(data_type_v<bool>) &&
              detail::is_of_numpy({kDLFloat, 16, 1}) &&
              detail::is_of_numpy({kDLComplex, 128, 1}));
  EXPECT_TRUE(detail::is_of_numpy_or_ml_dtypes({kDLBfloat, 16, 1}) &&
              detail::is_of_numpy_or_ml_dtypes({type_code::float8_e5m2, 8, 1}));
  const DLDataType others[] = {
      {kDLInt, 4, 1},     {kDLInt, 24, 1},          {kDLUInt, 128, 1},  {kDLFloat, 32, 2},
      {kDLFloat, 128, 1}, {kDLOpaqueHandle, 64, 1}, {kDLBfloat, 16, 2}, {kDLComplex, 32, 1}};
  for (const DLDataType other : others) {
    EXPECT_FALSE(detail::is_of_numpy_or_ml_dtypes(other)) << to_string(other);
  }
  EXPECT_FALSE(detail::is_of_numpy({kDLBfloat, 16, 1}));
  EXPECT_EQ(to_string({type_code::float8_e4m3fn, 8, 1}), "float8_e4m3fn");
  EXPECT_EQ(to_string({type_code::float4_e2m1fn, 4, 2}),
            "float4_e2m1fnx2 (code 17, bits 4, lanes 2)");
  EXPECT_EQ(to_string({kDLInt, 8, 0}), "int8x0 (code 0, bits 8, lanes 0)");
  EXPECT_EQ(to_string({18, 8, 1}), "unknown (code 18, bits 8, lanes 1)");
  EXPECT_EQ(to_string({255, 255, 65535}), "unknownx65535 (code 255, bits 255, lanes 65535)");
}

}  // namespace test_dtype
