// SPDX-License-Identifier: Apache-2.0
//
// The one place where tests choose among the mdspan implementations: `md` is the namespace
// under test. CMake's USM_DLPACK_TEST_MDSPAN (kokkos, std or cuda) defines one of the macros
// below. `md_array` is the array that its mappings take strides from, and its views indices.
#pragma once

#include <cstddef>

#if defined(USM_DLPACK_TEST_MDSPAN_STD)
#include <array>
#include <mdspan>
namespace md = std;
template <class T, std::size_t N>
using md_array = std::array<T, N>;
#elif defined(USM_DLPACK_TEST_MDSPAN_CUDA)
#include <cuda/std/array>
#include <cuda/std/mdspan>
namespace md = cuda::std;
template <class T, std::size_t N>
using md_array = cuda::std::array<T, N>;
#elif defined(USM_DLPACK_TEST_MDSPAN_KOKKOS)
#include <array>
#include <mdspan/mdspan.hpp>
namespace md = Kokkos;
template <class T, std::size_t N>
using md_array = std::array<T, N>;
#else
#error \
    "mdspan: expected one of USM_DLPACK_TEST_MDSPAN_{KOKKOS,STD,CUDA}, found none; define one"
#endif
