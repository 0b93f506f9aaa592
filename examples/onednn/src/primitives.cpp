// SPDX-License-Identifier: Apache-2.0
//
// Each call makes its primitive anew, because a primitive has one scratchpad and must not run
// twice at once; oneDNN keeps the compiled kernels in a cache.
#include "primitives.hpp"

#include <algorithm>
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

bool is_in_c_order(const dnnl::memory::dims& shape, const dnnl::memory::dims& strides) {
  dnnl::memory::dim step = 1;
  for (std::size_t r = shape.size(); r-- > 0;) {
    if (shape[r] > 1 && strides[r] != step) {
      return false;
    }
    step *= std::max<dnnl::memory::dim>(shape[r], 1);
  }
  return true;
}

/// Whether matrices are compact in C order, or each with its rows and columns swapped.
bool are_compact(const dnnl::memory::desc& matrices) {
  dnnl::memory::dims shape = matrices.get_dims(), strides = matrices.get_strides();
  if (is_in_c_order(shape, strides)) {
    return true;
  }
  std::iter_swap(shape.end() - 1, shape.end() - 2);
  std::iter_swap(strides.end() - 1, strides.end() - 2);
  return is_in_c_order(shape, strides);
}

[[noreturn]] void refuse_layout(const char* array, const char* expected,
                                const dnnl::memory::desc& desc) {
  using onednn_dlpack::detail::listed;
  onednn_dlpack::detail::refuse(usm_dlpack::errc::layout_mismatch, array, expected,
                                "the strides " + listed(desc.get_strides()) +
                                    " for the shape " + listed(desc.get_dims()),
                                array == std::string("out")
                                    ? "write to a compact array, and copy that"
                                    : "copy the array to a compact one first");
}

/// Refuses matrices of which oneDNN 3.11 computes a wrong product, or writes beside the
/// output. docs/onednn.md names the implementations.
void check_layouts(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                   const dnnl::memory::desc& out) {
  const dnnl::memory::dims shape = a.get_dims();
  const std::size_t rank = shape.size();
  const bool of_bytes = a.get_data_type() == dnnl::memory::data_type::s8 ||
                        a.get_data_type() == dnnl::memory::data_type::u8;
  for (const auto& [array, desc] : {std::pair{"a", a}, {"b", b}, {"out", out}}) {
    if (rank > 3 && !are_compact(desc)) {
      refuse_layout(array,
                    "compact matrices (C order, or the last two dimensions swapped) of more "
                    "than 3 dimensions",
                    desc);
    }
  }
  if (rank == 3 && shape[2] == 1 && b.get_dims()[0] > 1 && !are_compact(b)) {
    refuse_layout("b", "compact matrices where each has one row", b);
  }
  if (of_bytes && out.get_dims()[rank - 1] == 1 && !are_compact(out)) {
    refuse_layout("out", "compact matrices where each is one column of 8-bit products", out);
  }
}

/// Refuses elements of 4 bits that oneDNN 3.11 reads or writes wrongly, or beside which it
/// writes: it takes whole bytes, in the order of memory.
void check_packed(const char* array, const dnnl::memory::desc& desc) {
  using known = dnnl::memory::data_type;
  const known type = desc.get_data_type();
  if (type != known::s4 && type != known::u4 && type != known::f4_e2m1) {
    return;
  }
  const dnnl::memory::dims shape = desc.get_dims();
  if (std::all_of(shape.begin(), shape.end(), [](auto extent) { return extent % 2 != 0; })) {
    onednn_dlpack::detail::refuse(usm_dlpack::errc::request_unsupported, array,
                                  "an even number of elements of 4 bits",
                                  "the shape " + onednn_dlpack::detail::listed(shape),
                                  "pad the array to an even number of elements");
  }
  if (!is_in_c_order(shape, desc.get_strides())) {
    refuse_layout(array, "a compact array in C order where elements have 4 bits", desc);
  }
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
  check_packed("x", x.get_desc());
  check_packed("out", out.get_desc());
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
  check_layouts(a.get_desc(), b.get_desc(), out.get_desc());
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
