// SPDX-License-Identifier: Apache-2.0
//
// The primitives, on memory objects: submitted behind events, without a wait.
#pragma once

#include "place.hpp"

#include <sycl/sycl.hpp>

#include <string>
#include <vector>

namespace onednn_ops {

using events = std::vector<sycl::event>;

/// Converts dtype and layout. To elements of 4 bits, and to e8m0, only from f32: from others,
/// oneDNN 3.11 makes a primitive for CPUs which then writes nothing, and does not say so.
/// Arrays of 4 bits are compact in C order, with an even number of elements: oneDNN 3.11
/// computes others wrongly, or writes beside them.
/// @throws conversion_error `request_unsupported` for what oneDNN does not implement;
///         `layout_mismatch`
sycl::event reorder(const place& where, const dnnl::memory& x, const dnnl::memory& out,
                    const events& after);

/// out = a b, for the last two dimensions; the others are a batch, in which extents of 1
/// broadcast. Of layouts that oneDNN 3.11 computes wrongly, only compact ones: more than 3
/// dimensions, batches of b of one row each, and one column in `out` of 8-bit integers.
/// @throws conversion_error as `reorder`
sycl::event matmul(const place& where, const dnnl::memory& a, const dnnl::memory& b,
                   const dnnl::memory& out, const events& after);

/// An element-wise function, with up to two parameters; `out` may be `x`.
struct function {
  dnnl::algorithm algorithm;
  float alpha;
  float beta;
};

/// A function by its name in oneDNN, without `eltwise_`.
/// @throws std::invalid_argument for a name that is not among those of this file
dnnl::algorithm find_function(const std::string& name);

/// @throws conversion_error as `reorder`
sycl::event eltwise(const place& where, const function& applied, const dnnl::memory& x,
                    const dnnl::memory& out, const events& after);

}  // namespace onednn_ops
