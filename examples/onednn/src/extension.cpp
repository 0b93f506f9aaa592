// SPDX-License-Identifier: Apache-2.0
//
// The functions that Python calls: arrays of any library to oneDNN's memory objects,
// primitives on them, and results as usm_dlpack.DLPackTensor.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <mdspan/mdspan.hpp>
#include <onednn_dlpack/sycl.hpp>
#include <usm_dlpack/nanobind.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using dnnl::memory;

namespace {

/// Where primitives run.
struct place {
  sycl::queue of;     ///< the queue that was passed
  sycl::queue queue;  ///< the same, or an in-order queue that is made for it
  dnnl::engine engine;
  dnnl::stream stream;
};

/// The place of a queue, kept for the life of the process: work of a CPU engine refers to its
/// stream, and a queue must not be destroyed before its work is done.
///
/// A primitive of a CPU engine is a host task. In an out-of-order queue DPC++ 2026.2 lets
/// `queue::memcpy` overtake a barrier behind it, so results are made on an in-order queue.
const place& place_of(const sycl::queue& queue) {
  static auto& mutex = *new std::mutex;
  static auto& engines = *new std::map<std::int32_t, dnnl::engine>;
  static auto& places = *new std::list<place>;
  const std::lock_guard lock(mutex);
  for (const place& known : places) {
    if (known.of == queue) {
      return known;
    }
  }
  const std::int32_t id = usm_dlpack::device_id(queue.get_device());
  auto engine = engines.find(id);
  if (engine == engines.end()) {
    engine = engines.emplace(id, onednn_dlpack::make_engine(id)).first;
  }
  const sycl::queue used = queue.is_in_order()
                               ? queue
                               : sycl::queue(queue.get_context(), queue.get_device(),
                                             sycl::property::queue::in_order());
  dnnl::stream stream = onednn_dlpack::make_stream(engine->second, used);
  places.push_back({queue, used, engine->second, std::move(stream)});
  return places.back();
}

/// An array, and the memory object over it, which does not keep it.
struct argument {
  usm_dlpack::managed_tensor tensor;
  dnnl::memory memory;
};

/// Takes an array of any library; the place's queue is ordered behind the array's.
argument take(nb::handle array, const place& where) {
  const nb::object tensor = nb::module_::import_("usm_dlpack").attr("from_dlpack")(array);
  const nb::object capsule = tensor.attr("__dlpack__")("stream"_a = nb::cast(where.queue),
                                                       "max_version"_a = nb::make_tuple(1, 3));
  void* held = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned");
  if (held == nullptr || PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned") != 0) {
    throw nb::python_error();
  }
  usm_dlpack::managed_tensor managed(static_cast<DLManagedTensorVersioned*>(held));
  memory made = onednn_dlpack::make_memory(*managed, where.engine);
  return {std::move(managed), std::move(made)};
}

/// Strides in C order.
memory::dims compact_strides(const memory::dims& shape) {
  memory::dims strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t r = shape.size(); r-- > 0;) {
    strides[r] = step;
    step = onednn_dlpack::detail::step_over(step, shape[r], r);
  }
  return strides;
}

/// A new array in device USM, in C order.
class result {
 public:
  result(const place& where, const memory::dims& shape, memory::data_type type)
      : desc_(shape, type, compact_strides(shape)),
        bytes_(where.queue,
               Kokkos::dextents<std::int64_t, 1>(std::max<std::int64_t>(desc_.get_size(), 1))),
        memory_(dnnl::sycl_interop::make_memory(
            desc_, where.engine, dnnl::sycl_interop::memory_kind::usm, bytes_.data())) {}

  const dnnl::memory& memory() const noexcept { return memory_; }
  std::size_t size() const { return desc_.get_size(); }

  /// Gives it to Python, with what its work reads. Nobody waits: the tensor knows the queue,
  /// and is freed after the queue's work.
  template <class... Kept>
  nb::object to_python(Kept&&... kept) && {
    const onednn_dlpack::description what(desc_);
    const DLDataType dtype = what.dtype();
    return nb::module_::import_("usm_dlpack")
        .attr("to_dlpack_tensor")(
            usm_dlpack::owned_view<view>(std::move(bytes_), std::forward<Kept>(kept)...),
            "shape"_a = nb::tuple(nb::cast(what.shape())),
            "dtype"_a = nb::make_tuple(dtype.code, dtype.bits, dtype.lanes));
  }

 private:
  using view = usm_dlpack::device_mdspan<
      Kokkos::mdspan<std::uint8_t, Kokkos::dextents<std::int64_t, 1>>>;

  memory::desc desc_;
  usm_dlpack::usm_array<view> bytes_;
  dnnl::memory memory_;
};

/// Runs a primitive without the GIL: the runtime may wait in it for the work of another queue.
template <class Make>
void run(const char* name, const place& where, const Make& make,
         const std::unordered_map<int, dnnl::memory>& memories) {
  const nb::gil_scoped_release unlocked;
  onednn_dlpack::detail::ask_onednn(
      name, "dtypes, shapes and strides that oneDNN implements together on this device",
      "reorder to a compact float32 array first",
      [&] { return dnnl::sycl_interop::execute(make(), where.stream, memories); });
}

/// The shape of a product, whose batch is that of both.
memory::dims product_shape(memory::dims shape, const memory::dims& other) {
  const std::size_t rank = shape.size();
  bool fits = rank >= 2 && other.size() == rank && shape[rank - 1] == other[rank - 2];
  for (std::size_t r = 0; fits && r + 2 < rank; ++r) {
    fits = shape[r] == other[r] || shape[r] == 1 || other[r] == 1;
    shape[r] = shape[r] == 1 ? other[r] : shape[r];
  }
  if (!fits) {
    throw std::invalid_argument(
        "b: expected the shape (..., k, n) for the shape (..., m, k) of a, and batches that are "
        "alike or 1, found another; reshape the arrays");
  }
  shape[rank - 1] = other[rank - 1];
  return shape;
}

/// Refuses batches of which oneDNN 3.11 may compute a wrong product on a CPU, and not say so.
void check_batch(const char* name, const memory::desc& desc) {
  if (desc.get_ndims() > 2 && desc.get_strides() != compact_strides(desc.get_dims())) {
    onednn_dlpack::detail::refuse(
        usm_dlpack::errc::layout_mismatch, name, "a batch of matrices in C order without gaps",
        "the strides " + onednn_dlpack::detail::listed(desc.get_strides()),
        "copy the array to a compact one first");
  }
}

/// Refuses dtypes that oneDNN 3.11 reorders wrongly on a CPU, and does not say so.
void check_reordered(const char* field, memory::data_type type) {
  using known = memory::data_type;
  if (type == known::s4 || type == known::u4 || type == known::f4_e2m1 ||
      type == known::e8m0) {
    onednn_dlpack::detail::refuse(
        usm_dlpack::errc::request_unsupported, field, "a dtype that oneDNN reorders reliably",
        usm_dlpack::to_string(onednn_dlpack::to_dlpack_dtype(type)), "use a wider dtype");
  }
}

/// oneDNN's data type of a name of `usm_dlpack.DLPackTensor.dtype`.
memory::data_type data_type_of(const std::string& name) {
  for (const auto& row : onednn_dlpack::detail::dtype_rows) {
    const std::string printed = usm_dlpack::to_string(row.dlpack);
    if (printed.substr(0, printed.find(' ')) == name) {
      return row.onednn;
    }
  }
  onednn_dlpack::detail::refuse(usm_dlpack::errc::dtype_unsupported, "dtype",
                                "the name of a data type of oneDNN", "\"" + name + "\"",
                                "pass for example \"float32\" or \"bfloat16\"");
}

nb::object matmul(const sycl::queue& queue, nb::handle left, nb::handle right,
                  const std::optional<std::string>& dtype) {
  const place& where = place_of(queue);
  argument a = take(left, where), b = take(right, where);
  const memory::desc x = a.memory.get_desc(), y = b.memory.get_desc();
  check_batch("a", x);
  check_batch("b", y);
  const memory::data_type type = dtype ? data_type_of(*dtype) : x.get_data_type();
  result made(where, product_shape(x.get_dims(), y.get_dims()), type);
  if (x.get_dims().back() == 0) {  // oneDNN would write nothing
    sycl::queue(where.queue).memset(made.memory().get_data_handle(), 0, made.size());
  } else {
    run("matmul", where,
        [&] { return dnnl::matmul({where.engine, x, y, made.memory().get_desc()}); },
        {{DNNL_ARG_SRC, a.memory},
         {DNNL_ARG_WEIGHTS, b.memory},
         {DNNL_ARG_DST, made.memory()}});
  }
  return std::move(made).to_python(std::move(a.tensor), std::move(b.tensor));
}

nb::object reorder(const sycl::queue& queue, nb::handle array,
                   const std::optional<std::string>& dtype) {
  const place& where = place_of(queue);
  argument x = take(array, where);
  const memory::desc desc = x.memory.get_desc();
  const memory::data_type type = dtype ? data_type_of(*dtype) : desc.get_data_type();
  check_reordered("x", desc.get_data_type());
  check_reordered("dtype", type);
  result made(where, desc.get_dims(), type);
  run("reorder", where,
      [&] {
        return dnnl::reorder({where.engine, desc, where.engine, made.memory().get_desc()});
      },
      {{DNNL_ARG_FROM, x.memory}, {DNNL_ARG_TO, made.memory()}});
  return std::move(made).to_python(std::move(x.tensor));
}

/// What oneDNN says of an array's memory object, its engine and its stream.
nb::dict describe(const sycl::queue& queue, nb::handle array) {
  const place& where = place_of(queue);
  const argument x = take(array, where);
  const memory::desc desc = x.memory.get_desc();
  using dnnl::sycl_interop::memory_kind;
  const bool is_usm = dnnl::sycl_interop::get_memory_kind(x.memory) == memory_kind::usm;
  nb::dict said;
  said["data_type"] = dnnl_dt2str(static_cast<dnnl_data_type_t>(desc.get_data_type()));
  said["dims"] = nb::tuple(nb::cast(desc.get_dims()));
  said["strides"] = nb::tuple(nb::cast(desc.get_strides()));
  said["handle"] = reinterpret_cast<std::uintptr_t>(x.memory.get_data_handle());
  said["memory_kind"] = is_usm ? "usm" : "buffer";
  said["device"] = nb::cast(dnnl::sycl_interop::get_device(x.memory.get_engine()));
  said["queue"] = nb::cast(dnnl::sycl_interop::get_queue(where.stream));
  return said;
}

}  // namespace

NB_MODULE(_extension, m) {
  usm_dlpack::load_package();
  m.def("matmul", &matmul, "queue"_a, "a"_a, "b"_a, "dtype"_a = nb::none());
  m.def("reorder", &reorder, "queue"_a, "x"_a, "dtype"_a = nb::none());
  m.def("describe", &describe, "queue"_a, "x"_a);
}
