// SPDX-License-Identifier: Apache-2.0
//
// The functions that Python calls. Those that end in `_into` write to an array of the caller
// and give an event; the others give a new array.
#include "arrays.hpp"
#include "primitives.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <usm_dlpack/nanobind.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using namespace onednn_ops;
using dnnl::memory;

namespace {

constexpr const char* shape_sentence =
    "b: expected the shape (..., k, n) for the shape (..., m, k) of a, and batches that are "
    "alike or 1, found another; reshape the arrays";

/// The shape of a product, whose batch is that of both.
memory::dims product_shape(const argument& a, const argument& b) {
  memory::dims shape = a.shape();
  const memory::dims other = b.shape();
  const std::size_t rank = shape.size();
  if (rank < 2 || other.size() != rank || shape[rank - 1] != other[rank - 2]) {
    throw std::invalid_argument(shape_sentence);
  }
  for (std::size_t r = 0; r + 2 < rank; ++r) {
    if (shape[r] != other[r] && shape[r] != 1 && other[r] != 1) {
      throw std::invalid_argument(shape_sentence);
    }
    shape[r] = shape[r] == 1 ? other[r] : shape[r];
  }
  shape[rank - 1] = other[rank - 1];
  return shape;
}

/// What the elements of a product add up in, unless the caller says it.
memory::data_type product_type(memory::data_type type) {
  switch (type) {
    case memory::data_type::s8:
    case memory::data_type::u8: return memory::data_type::s32;
    case memory::data_type::f8_e5m2:
    case memory::data_type::f8_e4m3: return memory::data_type::f32;
    default: return type;
  }
}

/// Runs without the GIL: the runtime may wait in it for the work of another queue.
template <class Submit>
sycl::event submit(const Submit& act) {
  const nb::gil_scoped_release unlocked;
  return act();
}

nb::object matmul_new(const sycl::queue& queue, nb::handle left, nb::handle right,
                      const std::optional<std::string>& dtype) {
  const place& where = in_order_place_of(queue);
  argument a = take(left, where, order::by_stream), b = take(right, where, order::by_stream);
  const memory::data_type type =
      dtype ? data_type_of(*dtype) : product_type(a.desc().get_data_type());
  result made(where, compact(product_shape(a, b), type));
  submit([&] {
    if (a.shape().back() == 0) {  // oneDNN leaves such a product as it is
      return sycl::queue(where.queue)
          .memset(made.data(), 0, made.memory().get_desc().get_size());
    }
    return matmul(where, a.memory, b.memory, made.memory(), {});
  });
  return std::move(made).to_python(std::move(a.tensor), std::move(b.tensor));
}

sycl::event matmul_into(const sycl::queue& queue, nb::handle left, nb::handle right,
                        nb::handle output, const events& depends) {
  const place& where = place_of(queue);
  const argument a = take(left, where, order::by_caller);
  const argument b = take(right, where, order::by_caller);
  const argument out = take(output, where, order::by_caller, true);
  if (product_shape(a, b) != out.shape()) {
    throw std::invalid_argument("out: expected the shape of the product, found another");
  }
  if (a.shape().back() == 0) {
    throw std::invalid_argument("a: expected columns, found none; fill out with zeros");
  }
  return submit([&] { return matmul(where, a.memory, b.memory, out.memory, depends); });
}

nb::object eltwise_new(const sycl::queue& queue, const std::string& name, nb::handle array,
                       float alpha, float beta) {
  const function applied{find_function(name), alpha, beta};
  const place& where = in_order_place_of(queue);
  argument x = take(array, where, order::by_stream);
  result made(where, compact(x.shape(), x.desc().get_data_type()));
  submit([&] {
    if (x.desc() == made.memory().get_desc()) {
      return eltwise(where, applied, x.memory, made.memory(), {});
    }
    // oneDNN wants both layouts alike: a compact copy first, and then in place.
    const sycl::event copied = reorder(where, x.memory, made.memory(), {});
    return eltwise(where, applied, made.memory(), made.memory(), {copied});
  });
  return std::move(made).to_python(std::move(x.tensor));
}

sycl::event eltwise_into(const sycl::queue& queue, const std::string& name, nb::handle array,
                         nb::handle output, const events& depends, float alpha, float beta) {
  const function applied{find_function(name), alpha, beta};
  const place& where = place_of(queue);
  const argument x = take(array, where, order::by_caller);
  const argument out = take(output, where, order::by_caller, true);
  return submit([&] { return eltwise(where, applied, x.memory, out.memory, depends); });
}

nb::object reorder_new(const sycl::queue& queue, nb::handle array,
                       const std::optional<std::string>& dtype) {
  const place& where = in_order_place_of(queue);
  argument x = take(array, where, order::by_stream);
  const memory::data_type type = dtype ? data_type_of(*dtype) : x.desc().get_data_type();
  result made(where, compact(x.shape(), type));
  submit([&] { return reorder(where, x.memory, made.memory(), {}); });
  return std::move(made).to_python(std::move(x.tensor));
}

sycl::event reorder_into(const sycl::queue& queue, nb::handle array, nb::handle output,
                         const events& depends) {
  const place& where = place_of(queue);
  const argument x = take(array, where, order::by_caller);
  const argument out = take(output, where, order::by_caller, true);
  return submit([&] { return reorder(where, x.memory, out.memory, depends); });
}

/// What oneDNN says of an array's memory object, its engine and its stream.
nb::dict describe(const sycl::queue& queue, nb::handle array) {
  const place& where = place_of(queue);
  const argument x = take(array, where, order::by_caller);
  const memory::desc desc = x.desc();
  const bool usm =
      dnnl::sycl_interop::get_memory_kind(x.memory) == dnnl::sycl_interop::memory_kind::usm;
  nb::dict said;
  said["data_type"] = dnnl_dt2str(static_cast<dnnl_data_type_t>(desc.get_data_type()));
  said["dims"] = nb::tuple(nb::cast(desc.get_dims()));
  said["strides"] = nb::tuple(nb::cast(desc.get_strides()));
  said["handle"] = reinterpret_cast<std::uintptr_t>(x.memory.get_data_handle());
  said["memory_kind"] = usm ? "usm" : "buffer";
  said["engine_kind"] = where.engine.get_kind() == dnnl::engine::kind::gpu ? "gpu" : "cpu";
  said["device"] = nb::cast(dnnl::sycl_interop::get_device(x.memory.get_engine()));
  said["queue"] = nb::cast(dnnl::sycl_interop::get_queue(where.stream));
  return said;
}

}  // namespace

NB_MODULE(_extension, m) {
  usm_dlpack::load_package();
  const auto none = nb::none();
  m.def("matmul", &matmul_new, "queue"_a, "a"_a, "b"_a, "dtype"_a = none);
  m.def("matmul_into", &matmul_into, "queue"_a, "a"_a, "b"_a, "out"_a, "depends"_a = events{});
  m.def("eltwise", &eltwise_new, "queue"_a, "function"_a, "x"_a, "alpha"_a = 0.0F,
        "beta"_a = 0.0F);
  m.def("eltwise_into", &eltwise_into, "queue"_a, "function"_a, "x"_a, "out"_a,
        "depends"_a = events{}, "alpha"_a = 0.0F, "beta"_a = 0.0F);
  m.def("reorder", &reorder_new, "queue"_a, "x"_a, "dtype"_a = none);
  m.def("reorder_into", &reorder_into, "queue"_a, "x"_a, "out"_a, "depends"_a = events{});
  m.def("describe", &describe, "queue"_a, "x"_a);
}
