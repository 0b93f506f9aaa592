// SPDX-License-Identifier: Apache-2.0
//
// The views that functions and kernels take. Host code and kernels include this file, so that
// a view goes from one to the other as it is: as an argument of the kernel.
#pragma once

#include <sycl/sycl.hpp>  // first: in device code mdspan.hpp uses it

#include <mdspan/mdspan.hpp>
#include <usm_dlpack/usm_dlpack.hpp>

#include <cstdint>

namespace grid_kernels {

template <int Rank>
using extents = Kokkos::dextents<std::int64_t, Rank>;

/// An input: USM of any kind, and any strides, as NumPy's slices have them.
template <class Element, int Rank>
using input = Kokkos::mdspan<const Element, extents<Rank>, usm_dlpack::layout_relaxed>;

/// An output: device USM in C order.
template <class Element, int Rank>
using output = usm_dlpack::device_mdspan<Kokkos::mdspan<Element, extents<Rank>>>;

/// A result that the host reads when the kernel is done.
template <class Element>
using scalar = usm_dlpack::host_mdspan<Kokkos::mdspan<Element, Kokkos::extents<std::int64_t>>>;

}  // namespace grid_kernels
