// SPDX-License-Identifier: Apache-2.0
//
// Everything: the SYCL-free core and the headers that need SYCL.
#pragma once

#include <usm_dlpack/core.hpp>
#include <usm_dlpack/usm.hpp>
