// SPDX-License-Identifier: Apache-2.0
//
// Each call makes its primitive anew, because a primitive has one scratchpad and must not run
// twice at once; oneDNN keeps the compiled kernels in a cache.
#include "primitives.hpp"

#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace onednn_ops {
namespace {

using arguments = std::unordered_map<int, dnnl::memory>;

template <class Make>
sycl::event run(const char* name, const place& where, const Make& make,
                const arguments& memories, const events& after) {
  return onednn_dlpack::detail::ask_onednn(
      name, "dtypes, shapes and strides that oneDNN implements together on this device",
      "reorder to a compact float32 array first",
      [&] { return dnnl::sycl_interop::execute(make(), where.stream, memories, after); });
}

const std::unordered_map<std::string, dnnl::algorithm>& functions() {
  static const std::unordered_map<std::string, dnnl::algorithm> all = {
      {"abs", dnnl::algorithm::eltwise_abs},
      {"clip", dnnl::algorithm::eltwise_clip},
      {"exp", dnnl::algorithm::eltwise_exp},
      {"gelu_erf", dnnl::algorithm::eltwise_gelu_erf},
      {"linear", dnnl::algorithm::eltwise_linear},
      {"log", dnnl::algorithm::eltwise_log},
      {"logistic", dnnl::algorithm::eltwise_logistic},
      {"relu", dnnl::algorithm::eltwise_relu},
      {"sqrt", dnnl::algorithm::eltwise_sqrt},
      {"square", dnnl::algorithm::eltwise_square},
      {"tanh", dnnl::algorithm::eltwise_tanh},
  };
  return all;
}

/// Whether a CPU's reorder writes a data type only of f32.
bool is_made_of_f32(dnnl::memory::data_type type) {
  using known = dnnl::memory::data_type;
  return type == known::s4 || type == known::u4 || type == known::f4_e2m1 ||
         type == known::e8m0;
}

}  // namespace

dnnl::algorithm find_function(const std::string& name) {
  const auto found = functions().find(name);
  if (found == functions().end()) {
    throw std::invalid_argument("function: expected one of this module's, found \"" + name +
                                "\"; see the docstring of eltwise");
  }
  return found->second;
}

sycl::event reorder(const place& where, const dnnl::memory& x, const dnnl::memory& out,
                    const events& after) {
  const dnnl::memory::data_type from = x.get_desc().get_data_type();
  if (is_made_of_f32(out.get_desc().get_data_type()) && from != dnnl::memory::data_type::f32) {
    onednn_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, "reorder",
                                  "float32 for a result of this dtype",
                                  usm_dlpack::to_string(onednn_dlpack::to_dlpack_dtype(from)),
                                  "reorder to float32 first");
  }
  return run(
      "reorder", where,
      [&] {
        return dnnl::reorder(dnnl::reorder::primitive_desc(where.engine, x.get_desc(),
                                                           where.engine, out.get_desc()));
      },
      {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, out}}, after);
}

sycl::event matmul(const place& where, const dnnl::memory& a, const dnnl::memory& b,
                   const dnnl::memory& out, const events& after) {
  return run(
      "matmul", where,
      [&] {
        return dnnl::matmul(dnnl::matmul::primitive_desc(where.engine, a.get_desc(),
                                                         b.get_desc(), out.get_desc()));
      },
      {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, out}}, after);
}

sycl::event eltwise(const place& where, const function& applied, const dnnl::memory& x,
                    const dnnl::memory& out, const events& after) {
  return run(
      "eltwise", where,
      [&] {
        return dnnl::eltwise_forward(dnnl::eltwise_forward::primitive_desc(
            where.engine, dnnl::prop_kind::forward_inference, applied.algorithm, x.get_desc(),
            out.get_desc(), applied.alpha, applied.beta));
      },
      {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, out}}, after);
}

}  // namespace onednn_ops
