// SPDX-License-Identifier: Apache-2.0
//
// Compiles, and exits with 0, if the installed package brings the headers and dlpack.h.
#include <usm_dlpack/core.hpp>

int main() { return usm_dlpack::data_type_v<float>.bits == 32 ? 0 : 1; }
