// SPDX-License-Identifier: Apache-2.0
//
// The constants that are written out for an older dlpack.h are those of a dlpack.h that has
// them.
#include <usm_dlpack/core/config.hpp>

namespace static_config {

using namespace usm_dlpack;

static_assert(kDLOneAPI == 14);
static_assert(type_code::float8_e3m4 == 7 && type_code::float4_e2m1fn == 17);

#if DLPACK_MINOR_VERSION >= 1
static_assert(type_code::float8_e3m4 == kDLFloat8_e3m4);
static_assert(type_code::float8_e4m3 == kDLFloat8_e4m3);
static_assert(type_code::float8_e4m3b11fnuz == kDLFloat8_e4m3b11fnuz);
static_assert(type_code::float8_e4m3fn == kDLFloat8_e4m3fn);
static_assert(type_code::float8_e4m3fnuz == kDLFloat8_e4m3fnuz);
static_assert(type_code::float8_e5m2 == kDLFloat8_e5m2);
static_assert(type_code::float8_e5m2fnuz == kDLFloat8_e5m2fnuz);
static_assert(type_code::float8_e8m0fnu == kDLFloat8_e8m0fnu);
static_assert(type_code::float6_e2m3fn == kDLFloat6_e2m3fn);
static_assert(type_code::float6_e3m2fn == kDLFloat6_e3m2fn);
static_assert(type_code::float4_e2m1fn == kDLFloat4_e2m1fn);
#endif

static_assert(flag::read_only == DLPACK_FLAG_BITMASK_READ_ONLY);
static_assert(flag::is_copied == DLPACK_FLAG_BITMASK_IS_COPIED);
#if defined(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)
static_assert(flag::is_subbyte_type_padded == DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
#endif
static_assert(flag::is_subbyte_type_padded == 4);
static_assert(flag::all == 7);

}  // namespace static_config
