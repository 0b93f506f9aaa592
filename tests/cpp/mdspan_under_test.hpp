// SPDX-License-Identifier: Apache-2.0
//
// The one place where tests choose among the mdspan implementations: `md` is the namespace
// under test. CMake's USM_DLPACK_TEST_MDSPAN (kokkos, std or cuda) defines one of the macros
// below.
#pragma once

#if defined(USM_DLPACK_TEST_MDSPAN_STD)
#include <mdspan>
namespace md = std;
#elif defined(USM_DLPACK_TEST_MDSPAN_CUDA)
#include <cuda/std/mdspan>
namespace md = cuda::std;
#elif defined(USM_DLPACK_TEST_MDSPAN_KOKKOS)
#include <mdspan/mdspan.hpp>
namespace md = Kokkos;
#else
#error \
    "mdspan: expected one of USM_DLPACK_TEST_MDSPAN_{KOKKOS,STD,CUDA}, found none; define one"
#endif
